"""``ebbtide inspect`` and ``ebbtide plot``: a memory to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ebbtide.cli.common import (
    ConfigOption,
    JsonOption,
    NamespaceOption,
    StoreOption,
    examples,
    reading,
    settings_from,
)
from ebbtide.cli.output import print_json, write
from ebbtide.messages import counted, reason

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["INSPECT_EXAMPLES", "PLOT_EXAMPLES", "inspect", "plot"]

INSPECT_EXAMPLES = examples(
    "ebbtide inspect --store memory.db --open",
    'ebbtide inspect --store memory.db --out ana.html --question "Where does Ana live now?"',
    "ebbtide inspect --store memory.db --limit 500 --json",
)
PLOT_EXAMPLES = examples(
    "ebbtide plot --store memory.db --out memory.png",
    "ebbtide plot --store memory.db --namespace ana --out ana.svg --limit 500",
)

_LIMIT = 2_000  # as in ebbtide.inspection, which is not imported for the help

LimitOption = Annotated[int, typer.Option("--limit", min=1, help="Most turns, the newest ones.")]


def inspect(
    store: StoreOption,
    namespace: NamespaceOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The page; STORE.html in this folder by default."
        ),
    ] = None,
    question: Annotated[
        list[str] | None,
        typer.Option("--question", help="Keep this question's trace in the page; repeatable."),
    ] = None,
    limit: LimitOption = _LIMIT,
    show: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser, too.")
    ] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a memory as one HTML page.

    It shows the turns, their decay, why each stayed or left, lineage and cards, and needs no
    network and no other file. With --json, what it is made of is printed, and the page
    is written only where --out names it.
    """
    from ebbtide.files import write_whole
    from ebbtide.inspection import inspection_page

    data = _gathered(store, namespace, config, limit, question or ())
    page = None if as_json and out is None and not show else out or Path(f"{store.stem}.html")
    if page is not None:
        text = inspection_page(data)
        _refuse_another_file(page)
        _save(page, store, lambda: write_whole(page, text.encode()))
        if show:
            _open(page)
    if as_json:
        print_json(data)
    else:
        _report(page, data)


def plot(
    store: StoreOption,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The picture, a .png or .svg file.")
    ],
    namespace: NamespaceOption = None,
    limit: LimitOption = _LIMIT,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Draw a memory as PNG or SVG.

    Ω over the turns, the tier of each, and the active tokens after each insertion.
    Needs matplotlib: pip install "ebbtide[plot]".
    """
    from ebbtide.inspection.plot import draw_memory

    data = _gathered(store, namespace, config, limit, ())
    _save(out, store, lambda: draw_memory(data, out))
    if as_json:
        print_json({"file": str(out), "turns": len(data["turns"]), "left_out": data["left_out"]})
    else:
        _report(out, data)


def _gathered(
    store: Path, namespace: str | None, config: Path | None, limit: int, questions: Sequence[str]
) -> dict[str, Any]:
    from ebbtide.inspection import gather

    settings = settings_from(config)
    # Only a question needs the models, and turns that are analysed.
    with reading(store, namespace, settings, analysed=bool(questions)) as memory:
        return gather(memory, limit=limit, questions=questions, store=store.name)


def _save(file: Path, store: Path, save: Callable[[], object]) -> None:
    """Write a file, but never over the store it was read from."""
    from ebbtide.errors import InputError

    try:
        if file.exists() and file.samefile(store):
            message = f"{file} is the store itself; choose another name with --out"
            raise InputError(message, "input.field")
        save()
    except OSError as error:
        message = f"cannot write {file}: {reason(error)}; choose another name with --out"
        raise InputError(message, "input.field") from error


def _refuse_another_file(page: Path) -> None:
    """A page takes the place of an earlier one, and of no other file."""
    from ebbtide.errors import InputError

    beginning = b""
    try:
        if page.is_file():
            with page.open("rb") as there:
                beginning = there.read(_BEGINNING).lower()
    except OSError as error:
        message = f"{page} cannot be read: {reason(error)}; choose another name with --out"
        raise InputError(message, "input.field") from error
    if beginning and not beginning.startswith(b"<!doctype html"):
        message = f"{page} is another file already; choose another name with --out"
        raise InputError(message, "input.field")


_BEGINNING = 16
"""Bytes that tell a page."""


def _open(page: Path) -> None:
    import webbrowser

    from ebbtide.cli.output import stderr

    if not webbrowser.open(page.resolve().as_uri()):
        stderr().print(f"note: no browser was found; open {page} yourself")


def _report(file: Path | None, data: dict[str, Any]) -> None:
    shown, older = len(data["turns"]), data["left_out"]
    rest = f"; {older:,} older ones are left out (--limit)" if older else ""
    write(f"wrote {file}: {counted(shown, 'turn')}{rest}")
