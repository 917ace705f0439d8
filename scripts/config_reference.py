"""Write docs/configuration.md from the annotated defaults that the engine embeds.

python scripts/config_reference.py writes the page; with --check it exits with 1 if the
page is stale.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebbtide import _core

__all__ = ["PAGE", "Setting", "main", "render", "sections"]

PAGE = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"

_HEAD = """\
# Configuration

<!-- Written by scripts/config_reference.py from the defaults of the engine; do not edit. -->

Every setting has a default; a file names only what it changes. The file is TOML:

```toml
[capacity]
token_budget = 1024

[retrieval]
final_recall_limit = 5
```

Load it, start from a preset, or change single keys in code:

```python
from pathlib import Path

import ebbtide

Path("ebbtide.toml").write_text("[capacity]\\ntoken_budget = 1024\\n", encoding="utf-8")
config = ebbtide.Config.load("ebbtide.toml")
paper = ebbtide.Config.preset("paper")
small = ebbtide.Config.preset("default").replace(capacity={"token_budget": 512})
print(config["capacity"]["token_budget"], paper["capacity"]["protect_last"])
with ebbtide.Memory.in_memory(config=small) as memory:
    print(memory.config["capacity"]["token_budget"])
```

```text
1024 0
512
```

An unknown section or key is an error that names the nearest known one; a value of
the wrong type or out of its range is an error too ([error codes](errors.md)); a number
with a point lies in [-1000000, 1000000], so that no score is infinite. The
DMF paper's own files load unchanged. On the command line `ebbtide config show` prints
the settings in force and `ebbtide config check FILE` checks a file.

There are two presets. `default` is what you get without choosing; `paper` is the
behaviour of the DMF paper. The column *paper* shows its value where it differs. What
the scoring terms mean is in [concepts](concepts.md), the recall settings in
[recall](recall.md).
"""


@dataclass(frozen=True, slots=True)
class Setting:
    """One key: its section, default, value in the paper preset, and description."""

    section: str
    key: str
    default: Any
    paper: Any
    description: str


def sections(defaults: str) -> Iterator[tuple[str, str]]:
    """Sections of the annotated defaults with their descriptions, in order."""
    for match in re.finditer(r"^((?:#.*\n)*)\[([\w.]+)\]", defaults, re.MULTILINE):
        yield match.group(2), _words(match.group(1))


def settings(defaults: str) -> Iterator[Setting]:
    """Every key of the annotated defaults, in order.

    Raises:
        ValueError: If a key has no comment above it.
    """
    values = tomllib.loads(defaults)
    paper = json.loads(_core.load_config("paper", ""))
    section = ""
    comment: list[str] = []
    for line in defaults.splitlines():
        if line.startswith("#"):
            comment.append(line)
            continue
        if match := re.match(r"\[([\w.]+)\]", line):
            section = match.group(1)
        elif match := re.match(r"(\w+)\s*=", line):
            key = match.group(1)
            if not comment:
                raise ValueError(f"[{section}] {key} has no description in the defaults")
            default = _section(values, section)[key]
            set_by_paper = _section(paper, section)[key]
            yield Setting(section, key, default, set_by_paper, _words("\n".join(comment)))
        comment.clear()


def _section(values: dict[str, Any], path: str) -> dict[str, Any]:
    """A section by its name, ``policy.rpe`` being the one in ``policy``."""
    for name in path.split("."):
        values = values[name]
    return values


def render() -> str:
    """The whole page."""
    defaults = _core.default_config()
    rows = list(settings(defaults))
    parts = [_HEAD]
    for section, description in sections(defaults):
        parts.append(f"\n## [{section}]\n\n{description}\n")
        parts.append("\n| key | type | default | paper | meaning |\n|---|---|---|---|---|\n")
        parts += [_row(s) for s in rows if s.section == section]
    return "".join(parts)


def _row(s: Setting) -> str:
    paper = "" if s.paper == s.default else f"`{_literal(s.paper)}`"
    meaning = s.description.replace("|", "\\|")
    return f"| `{s.key}` | {_kind(s)} | `{_literal(s.default)}` | {paper} | {meaning} |\n"


def _kind(s: Setting) -> str:
    value = s.default
    if s.key == "entity_labels":
        return '`"all"` or list of text'
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int):
        return "whole number"
    if isinstance(value, float):
        return "number"
    return f"list of {len(value)} numbers" if isinstance(value, list) else "text"


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _words(comment: str) -> str:
    return " ".join(line.lstrip("# ").strip() for line in comment.splitlines()).strip()


def main(arguments: list[str]) -> int:
    """Write the page, or with ``--check`` say whether it is fresh."""
    page = render()
    if "--check" in arguments:
        if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page:
            return 0
        print("docs/configuration.md is stale; run: python scripts/config_reference.py")
        return 1
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
