"""``ebbtide config``: show and check settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ebbtide.cli.common import JsonOption, PresetOption, examples, settings_from
from ebbtide.cli.output import print_json, write

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Show or check a configuration.",
    epilog=examples("ebbtide config show > settings.toml", "ebbtide config check settings.toml"),
)

FileArgument = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="A TOML file; the preset alone without it.")
]


@app.command(
    epilog=examples("ebbtide config show", "ebbtide config show settings.toml --preset paper")
)
def show(
    file: FileArgument = None, preset: PresetOption = None, as_json: JsonOption = False
) -> None:
    """Every setting with its value, as TOML."""
    values = settings_from(file, preset).to_dict()
    if as_json:
        print_json(values)
        return
    sections = [
        "\n".join(lines) for section, keys in values.items() for lines in _sections(section, keys)
    ]
    write("\n\n".join(sections))


@app.command(epilog=examples("ebbtide config check settings.toml"))
def check(
    file: FileArgument = None, preset: PresetOption = None, as_json: JsonOption = False
) -> None:
    """Check that a configuration can be used.

    Its keys, their types and ranges, and that the models it names are installed.
    Names the keys that are accepted without an effect.
    """
    from ebbtide.analysis.analyser import Analyser

    settings = settings_from(file, preset)
    # Raises what opening a memory would.
    models = Analyser(settings["nlp"]).fingerprint
    notes = settings.notes()
    if as_json:
        print_json({"ok": True, "notes": notes, "models": models})
        return
    for note in notes:
        write(f"note: {note}")
    write(f"{file or f'preset {settings.name}'}: ok")


def _sections(name: str, keys: Mapping[str, Any]) -> Iterator[list[str]]:
    """The lines of a section, then those of each section in it."""
    plain = [
        f"{key} = {json.dumps(value)}"
        for key, value in keys.items()
        if not isinstance(value, Mapping)
    ]
    yield [f"[{name}]", *plain]
    for key, value in keys.items():
        if isinstance(value, Mapping):
            yield from _sections(f"{name}.{key}", value)
