"""``ebbtide ask``: a question to a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ebbtide.cli.common import (
    ConfigOption,
    JsonOption,
    NamespaceOption,
    PresetOption,
    StoreOption,
    examples,
    reading,
    settings_from,
)
from ebbtide.cli.output import print_json, stdout, write

if TYPE_CHECKING:
    from ebbtide.memory import Memory

__all__ = ["EXAMPLES", "ask"]

EXAMPLES = examples(
    'ebbtide ask --store memory.db "Which port does the service use now?"',
    'ebbtide ask --store memory.db "What happened last week?" --query-time 2024-06-15',
    'ebbtide ask --store memory.db "Where does Ana live?" --context --max-tokens 500',
    'ebbtide ask --store memory.db "Where does Ana live?" --trace',
    'ebbtide ask --store memory.db "What has Ana painted?" --deliberation quality --trace',
)


def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question.")],
    store: StoreOption,
    namespace: NamespaceOption = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-k", min=1, help="Most turns; else the settings decide."),
    ] = None,
    query_time: Annotated[
        str | None,
        typer.Option(help="When it is asked, in ISO 8601; the newest turn's time by default."),
    ] = None,
    role: Annotated[
        str | None, typer.Option(help="Only turns of this role, such as user or assistant.")
    ] = None,
    speaker: Annotated[str | None, typer.Option(help="Only turns by this speaker.")] = None,
    session: Annotated[str | None, typer.Option(help="Only turns of this session.")] = None,
    since: Annotated[
        str | None, typer.Option(help="Only turns from this time on, in ISO 8601.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Only turns up to this time.")] = None,
    context: Annotated[
        bool, typer.Option("--context", help="Print the block of text for a prompt instead.")
    ] = False,
    trace: Annotated[
        bool, typer.Option("--trace", help="Print every candidate, its scores and its fate.")
    ] = False,
    deliberation: Annotated[
        str | None,
        typer.Option(
            help="When the whole history is scanned as well: off, quality, majority or "
            "consensus; else the settings decide."
        ),
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Most tokens of the turns, or of the context.")
    ] = None,
    config: ConfigOption = None,
    preset: PresetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask a memory: prints the turns that answer, best first.

    Works while another process writes to the store. Says that the memory may not
    know where the best turn's confidence is below 0.5.
    """
    if trace and (context or max_tokens is not None):
        raise typer.BadParameter("--trace goes with neither --context nor --max-tokens")
    filters = {
        "role": role,
        "speaker": speaker,
        "session_id": session,
        "since": since,
        "until": until,
    }
    options: dict[str, Any] = {
        "limit": limit,
        "query_time": query_time,
        "preset": preset,
        "filters": {key: value for key, value in filters.items() if value is not None},
    }
    settings = settings_from(config)
    if deliberation is not None:
        settings = settings.replace(policy={"deliberation": deliberation})
    with reading(store, namespace, settings, analysed=True) as memory:
        if context:
            _context(memory, question, max_tokens, options, as_json=as_json)
        elif trace:
            _trace(memory, question, options, as_json=as_json)
        else:
            _evidence(memory, question, max_tokens, options, as_json=as_json)


def _context(
    memory: Memory, question: str, most: int | None, options: dict[str, Any], *, as_json: bool
) -> None:
    text = memory.render_context(question, max_tokens=most, **options)
    if as_json:
        tokens = memory.count_tokens(text)
        print_json({"question": question, "context": text, "tokens": tokens})
    else:
        write(text)


def _trace(memory: Memory, question: str, options: dict[str, Any], *, as_json: bool) -> None:
    found = memory.trace(question, **options)
    if as_json:
        print_json({"question": question, **found})
        return
    from ebbtide.cli import show

    ids = {candidate["interaction_id"] for candidate in found["candidates"]}
    show.trace(stdout(), found, {number: memory.get(number) for number in sorted(ids)})


def _evidence(
    memory: Memory, question: str, most: int | None, options: dict[str, Any], *, as_json: bool
) -> None:
    from ebbtide.cli import show

    found = memory.retrieve(question, max_tokens=most, **options)
    if as_json:
        knows = show.knows(found)
        items = [item.to_dict() for item in found]
        print_json({"question": question, "knows": knows, "evidence": items})
    else:
        show.evidence(stdout(), found)
