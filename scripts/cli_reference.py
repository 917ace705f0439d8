"""Write docs/cli.md and docs/cli-eval.md from the command line itself.

python scripts/cli_reference.py writes the pages; with --check it exits with 1 if one is
stale. What each command does from Python is written by hand, in scripts/cli_twins.md, and a
command without its twin is an error.
"""

from __future__ import annotations

import inspect
import re
import sys
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any

import typer
from typer.models import OptionInfo

from ebbtide.cli.app import app

__all__ = ["PAGES", "TWINS", "Command", "commands", "main", "render", "twins"]

ROOT = Path(__file__).resolve().parent.parent
TWINS = ROOT / "scripts" / "cli_twins.md"
PAGES = {"cli": ROOT / "docs" / "cli.md", "eval": ROOT / "docs" / "cli-eval.md"}

_NOTE = (
    "<!-- Written by scripts/cli_reference.py from the command line and scripts/cli_twins.md; "
    "do not edit. -->"
)
_HEAD = {
    "cli": f"""\
# Command line and Python

{_NOTE}

Every command of `ebbtide`, and beside it the Python that does the same. The
[`ebbtide eval` commands](cli-eval.md) have a page of their own. The Python blocks belong
together, in this order, and so do the commands. The file is the
[example conversation](../examples/README.md).

`--json` prints one JSON document on standard output; progress, notes and errors go to
standard error. The status is 0, or 1 (an error, or nothing by that name), 2 (usage or
configuration), 130 (interrupted). `ebbtide --version` prints the version and the models'
fingerprint, `ebbtide --install-completion` sets up completion in your shell, and
`ebbtide COMMAND --help` is this page in the terminal. `python -m ebbtide` is the same command.
""",
    "eval": f"""\
# ebbtide eval and Python

{_NOTE}

The commands that measure, each beside the Python that does the same. What they measure is
in [evaluation](evaluation.md); the other commands are [here](cli.md). They need
`pip install "ebbtide[eval]"`, and a data set's own file. So that the Python below runs as it
is, it begins by writing a LoCoMo file of two sessions.

```python
import json
from pathlib import Path

said = [
    [("Ada", "I adopted a cat called Miso."), ("Ben", "Lovely, Ada!")],
    [("Ada", "I moved to Porto last week."), ("Ben", "How is the new flat?")],
]
conversation = {{"speaker_a": "Ada", "speaker_b": "Ben"}}
for number, turns in enumerate(said, start=1):
    conversation[f"session_{{number}}_date_time"] = f"1:56 pm on {{number}} May, 2023"
    conversation[f"session_{{number}}"] = [
        {{"speaker": speaker, "dia_id": f"D{{number}}:{{place}}", "text": text}}
        for place, (speaker, text) in enumerate(turns, start=1)
    ]
asked = [("What is the cat called?", "Miso", "D1:1"), ("Where did Ada move?", "Porto", "D2:1")]
questions = [
    {{"question": question, "answer": answer, "evidence": [evidence], "category": 4}}
    for question, answer, evidence in asked
]
sample = {{"sample_id": "made", "conversation": conversation, "qa": questions}}
data = Path("locomo10.json")
data.write_text(json.dumps([sample]), encoding="utf-8")
```
""",
}


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its words (``ebbtide eval locomo``), its function and its parameters."""

    name: str
    function: Any

    @property
    def help(self) -> str:
        """The help text, paragraphs as lines of Markdown."""
        return inspect.getdoc(self.function) or ""

    def parameters(self) -> Iterator[tuple[str, Any, Any, Any]]:
        """(name, type, what Typer was told of it, default), in order."""
        hints = typing.get_type_hints(self.function, include_extras=True)
        for name, parameter in inspect.signature(self.function).parameters.items():
            kind, info = typing.get_args(hints[name])
            yield name, kind, info, parameter.default


def commands(of: typer.Typer = app, prefix: str = "ebbtide") -> Iterator[Command]:
    """Every command, in the order of the help."""
    for registered in of.registered_commands:
        function = registered.callback
        assert function is not None
        name = registered.name or function.__name__.replace("_", "-")
        yield Command(f"{prefix} {name}", function)
    for group in of.registered_groups:
        assert group.typer_instance is not None
        yield from commands(group.typer_instance, f"{prefix} {group.name}")


def twins(text: str) -> dict[str, str]:
    """Sections of the file of twins by their heading, the command."""
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    return {name: body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def render(which: str) -> str:
    """One of the pages, whole.

    Raises:
        ValueError: If a command has no twin, or a twin has no command.
    """
    written = twins(TWINS.read_text(encoding="utf-8"))
    present = list(commands())
    names = [command.name for command in present]
    for name in {*names, *written}:
        if name not in written or name not in names:
            raise ValueError(f"{name} stands in the command line or in {TWINS.name}, not in both")
    shown = [one for one in present if one.name.startswith("ebbtide eval ") == (which == "eval")]
    return "\n".join([_HEAD[which], *(_section(one, written[one.name]) for one in shown)])


def _section(command: Command, twin: str) -> str:
    shell = re.search(r"^```sh\n(.*?)^```\n\n(?=```python\n)", twin, re.MULTILINE | re.DOTALL)
    used = re.compile(rf"^{re.escape(command.name)}( |$)", re.MULTILINE)
    if shell is None or not used.search(shell.group(1)):
        raise ValueError(f"{command.name} needs its sh block, then Python, in {TWINS.name}")
    python = re.compile(r"```python\n.*?^```$(\n\n```text\n.*?^```$)?", re.MULTILINE | re.DOTALL)
    match = python.match(twin, shell.end())
    assert match is not None
    beside, after = twin[shell.start() : match.end()], twin[match.end() :].strip()
    lines = [f"## {command.name}", "", command.help, ""]
    lines += ['<div class="beside" markdown>', "", beside, "", "</div>", ""]
    lines += [after, ""] if after else []
    lines += [
        "| option | default | meaning |",
        "|---|---|---|",
        *map(_row, command.parameters()),
        "",
    ]
    return "\n".join(lines)


def _row(parameter: tuple[str, Any, Any, Any]) -> str:
    name, kind, info, default = parameter
    if isinstance(info, OptionInfo):
        shown, needed = _option(name, kind, info), default is inspect.Parameter.empty
    else:
        shown, needed = f"`{info.metavar or name.upper()}`", default is inspect.Parameter.empty
    value = "required" if needed else "" if default in (None, False) else f"`{_plain(default)}`"
    meaning = [str(info.help or "")]
    least, most = info.min, info.max
    if least is not None:
        meaning.append(f"At least {least}{f', at most {most}' if most is not None else ''}.")
    return f"| {shown} | {value} | {' '.join(meaning).replace('|', chr(92) + '|')} |"


def _option(name: str, kind: Any, info: OptionInfo) -> str:
    """``--limit N, -k N``; what Typer derives from the name where nothing was declared."""
    declared = [word for word in info.param_decls or () if word.startswith("-")]
    if info.default not in (None, ...) and str(info.default).startswith("-"):
        declared.insert(0, str(info.default))  # the first of them is kept as the default
    if not any(word.startswith("--") for word in declared):
        declared.insert(0, f"--{name.replace('_', '-')}")
    value = info.metavar or _value(kind)
    words = f"`{'`, `'.join(declared)}`"
    return f"{words} `{value}`" if value else words


def _value(kind: Any) -> str:
    """What stands for the value: its type, or its choices."""
    inner = [part for part in typing.get_args(kind) if part is not NoneType]
    if inner:
        return _value(inner[0])
    if kind is bool:
        return ""
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " | ".join(str(member.value) for member in kind).replace("|", "\\|")
    return {int: "N", float: "NUMBER", Path: "PATH"}.get(kind, "TEXT")


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value.value if isinstance(value, Enum) else value)


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` say whether they are fresh."""
    stale = 0
    for which, page in PAGES.items():
        text = render(which)
        if "--check" not in arguments:
            page.write_text(text, encoding="utf-8")
        elif not page.is_file() or page.read_text(encoding="utf-8") != text:
            print(f"docs/{page.name} is stale; run: python scripts/cli_reference.py")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
