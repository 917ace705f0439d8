"""``ebbtide bench``: how fast it is on this machine."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ebbtide.cli.common import JsonOption, examples
from ebbtide.cli.output import print_json, stderr, write

__all__ = ["EXAMPLES", "bench"]

EXAMPLES = examples(
    "ebbtide bench",
    "ebbtide bench --section add --section recall --turns 2000",
    "ebbtide bench --out bench.json",
)


class Section(StrEnum):
    """What is measured."""

    START_UP = "start-up"
    REPLAY = "replay"
    ADD = "add"
    RECALL = "recall"
    KERNELS = "kernels"


def bench(
    section: Annotated[
        list[Section] | None,
        typer.Option("--section", help="What to measure; everything by default. May be repeated."),
    ] = None,
    turns: Annotated[
        int, typer.Option("--turns", min=50, help="Turns of a replay, records at recall.")
    ] = 600,
    rounds: Annotated[
        int, typer.Option("--rounds", min=1, help="Values a median is of, where each takes long.")
    ] = 5,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also write the figures there, as JSON.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how fast it is on this machine.

    Start-up, replay, adding, recalling and the kernels, on generated turns; a minute or
    two. Figures of different machines or of a busy one do not compare.
    """
    from dataclasses import asdict

    from ebbtide.bench import Figure, Machine, run
    from ebbtide.bench.report import markdown, spoken, write_json
    from ebbtide.files import writing

    command = f"ebbtide bench --turns {turns} --rounds {rounds}"
    command += "".join(f" --section {one}" for one in section or ())

    def say(figure: Figure) -> None:
        stderr().print(f"{figure.section}: {figure.name}: {spoken(figure.value)} {figure.unit}")

    figures = run([one.value for one in section or ()], rounds=rounds, turns=turns, progress=say)
    machine = Machine.here()
    if out is not None:
        with writing(out):
            write_json(out, figures, machine, command)
    if as_json:
        rows = [figure.to_dict() for figure in figures]
        print_json({"command": command, "machine": asdict(machine), "figures": rows})
    else:
        write(markdown(figures, machine, command))
