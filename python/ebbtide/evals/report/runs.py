"""The result directories of the harness, read and checked."""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ebbtide.errors import InputError
from ebbtide.evals.provenance import public_command
from ebbtide.evals.results import BUDGETS, METRICS, SESSION_METRICS
from ebbtide.extras import MissingExtraError

__all__ = [
    "BASE",
    "Key",
    "Run",
    "load_run",
    "load_runs",
    "require",
    "system_order",
]

BASE = "default"
"""The system that the others are compared with."""

Key = tuple[str, str]
"""Conversation and question id: question ids repeat between conversations."""

_DISPLAY = ("full", "last_n", "bm25", "dense", "rrf", "paper", "default", "dmf-memory")
_DATASETS = {"locomo": "LoCoMo", "longmemeval": "LongMemEval", "noise": "LoCoMo-Noise"}
_IDENTITY = ("system", "conversation", "question_id", "category", "question", "answer")
_LISTS = ("evidence", "ranked")
_NUMBERS = (
    "confidence",
    "latency_ms",
    *METRICS,
    *SESSION_METRICS,
    *(f"budget_{b}_{kind}" for b in BUDGETS for kind in ("all", "contains", "tokens")),
)
_CONVERSATION = ("system", "turns", "noise_turns", "ingest_s", "rss_mb", "llm_tokens")


@dataclass(frozen=True)
class Run:
    """One run: its manifest, its questions and its conversations.

    Attributes:
        folder: Where it was read from.
        manifest: ``manifest.json`` as it stands.
        manifest_sha256: SHA-256 of that file, hexadecimal.
        columns: ``rows.parquet`` by column, one entry a (system, question).
        conversations: ``conversations.parquet``, one mapping a (system, conversation).
        clean: The questions asked of the same conversations without their noise, or None.
        suffix: Tells runs of the same data apart in headings and file names;
            empty for the first.
    """

    folder: Path
    manifest: dict[str, Any]
    manifest_sha256: str
    columns: dict[str, list[Any]]
    conversations: list[dict[str, Any]]
    clean: Run | None = None
    suffix: str = ""

    @property
    def title(self) -> str:
        """Heading of the run: dataset and file, such as ``LoCoMo: dev5.json.gz``."""
        dataset = str(self.manifest["dataset"])
        again = f", run {self.suffix}" if self.suffix else ""
        return f"{_DATASETS.get(dataset, dataset)}: {self.manifest['data']}{again}"

    @property
    def slug(self) -> str:
        """The run's name in file names and anchors: lower case letters, digits, hyphens."""
        stem = str(self.manifest["data"]).split(".")[0]
        dataset = str(self.manifest["dataset"])
        name = stem if stem.lower().startswith(dataset) else f"{dataset}-{stem}"
        kept = "".join(c if c.isascii() and c.isalnum() else "-" for c in name.lower())
        words = [word for word in kept.split("-") if word]
        return "-".join([*words, self.suffix] if self.suffix else words)

    @cached_property
    def systems(self) -> list[str]:
        """Systems that answered a question, in display order."""
        return system_order(set(self.columns["system"]))

    @cached_property
    def _places(self) -> dict[str, dict[Key, int]]:
        """Row of each question, by system, in the order of the keys."""
        found: dict[str, dict[Key, int]] = {name: {} for name in self.systems}
        for row, (system, key) in enumerate(zip(self.columns["system"], self._keys, strict=True)):
            if key in found[system]:
                raise _bad(self.folder, f"question {key[1]!r} is there twice for {system!r}")
            found[system][key] = row
        return {name: dict(sorted(rows.items())) for name, rows in found.items()}

    @property
    def _keys(self) -> Iterable[Key]:
        return zip(self.columns["conversation"], self.columns["question_id"], strict=True)

    def keys(self, system: str) -> list[Key]:
        """The questions that a system answered, sorted."""
        return list(self._places[system])

    @cached_property
    def questions(self) -> list[Key]:
        """Every question of the run, sorted."""
        return sorted(set(self._keys))

    def column(self, system: str, name: str) -> dict[Key, Any]:
        """A column of one system, null where not defined, in the order of the keys."""
        values = self.columns[name]
        return {key: values[row] for key, row in self._places[system].items()}

    def numbers(self, system: str, name: str) -> list[float]:
        """The values of a column where they are defined, in the order of the keys."""
        return [float(v) for v in self.column(system, name).values() if v is not None]

    @cached_property
    def about(self) -> dict[Key, dict[str, Any]]:
        """Category, question, answer and abstention of every question, by key."""
        names = ("category", "question", "answer", "abstention")
        found: dict[Key, dict[str, Any]] = {}
        for row, key in enumerate(self._keys):
            found.setdefault(key, {name: self.columns[name][row] for name in names})
        return dict(sorted(found.items()))

    @property
    def command(self) -> str:
        """The command lines that made the run, as the manifest has them, one a line."""
        given = self.manifest.get("options", {}).get("command")
        if isinstance(given, str) and given.strip():
            return given.strip()
        systems = " ".join(f"--system {shlex.quote(name)}" for name in self.systems)
        data = shlex.quote(str(self.manifest["data"]))
        return f"ebbtide eval {self.manifest['dataset']} --data {data} {systems} --out DIR"

    @property
    def public_command(self) -> str:
        """The command lines without anyone's folders; see :func:`public_command`."""
        return "\n".join(map(_public_line, self.command.splitlines()))

    @property
    def machine(self) -> str:
        """Version, machine and date in one line."""
        machine = self.manifest.get("machine", {})
        versions = self.manifest.get("versions", {})
        parts = [f"ebbtide {self.manifest['ebbtide']}"]
        parts += [f"{name} {versions[name]}" for name in sorted(versions)]
        parts += [str(machine[name]) for name in ("system", "processor") if machine.get(name)]
        if machine.get("cores"):
            parts.append(f"{machine['cores']} core{'s' * (machine['cores'] != 1)}")
        if machine.get("memory_gib"):
            parts.append(f"{machine['memory_gib']:.1f} GiB")
        if self.manifest.get("date"):
            parts.append(str(self.manifest["date"]))
        return ", ".join(parts)

    @property
    def counts(self) -> str:
        """Questions, those left out, conversations and turns in one sentence."""
        turns: dict[str, tuple[int, int]] = {}
        for row in self.conversations:
            turns.setdefault(row["conversation"], (row["turns"] or 0, row["noise_turns"] or 0))
        total = sum(count for count, _ in turns.values())
        noise = sum(count for _, count in turns.values())
        among = f" ({noise:,} of them noise)" if noise else ""
        return (
            f"{self.manifest['questions']:,} questions, {self.manifest['left_out']:,} left out, "
            f"{self.manifest['unresolved']:,} evidence references unresolved; "
            f"{len(turns):,} conversations, {total:,} turns{among}."
        )


def system_order(names: Iterable[str]) -> list[str]:
    """Names of systems in display order: the known ones first, then by name."""
    rank = {name: place for place, name in enumerate(_DISPLAY)}
    return sorted(set(names), key=lambda name: (rank.get(name, len(rank)), name))


def load_runs(folders: Sequence[Path]) -> list[Run]:
    """Read several runs, in the order given; runs of the same data are numbered.

    Raises:
        InputError: ``input.field``: no folder was given; or as :func:`load_run` does.
        ConfigError: ``config.model_missing``: pyarrow is not installed.
    """
    if not folders:
        raise InputError("a report needs at least one run directory", "input.field")
    runs: list[Run] = []
    seen: dict[str, int] = {}
    for folder in folders:
        run = load_run(folder)
        count = seen[run.slug] = seen.get(run.slug, 0) + 1
        runs.append(run if count == 1 else _again(run, count))
    return runs


def load_run(folder: Path) -> Run:
    """Read one run.

    Args:
        folder: What ``ebbtide eval --out`` wrote: ``manifest.json``, ``rows.parquet``
            and ``conversations.parquet``.

    Raises:
        InputError: ``input.transcript``: a file is missing or unreadable;
            ``input.field``: a field or column is missing, a question is there
            twice, or a number is not finite.
        ConfigError: ``config.model_missing``: pyarrow is not installed.
    """
    folder = Path(folder)
    text = _manifest_bytes(folder)
    manifest = _manifest(folder, text)
    columns = _rows(folder / "rows.parquet")
    rows = _table(folder / "conversations.parquet", (*_CONVERSATION, "conversation", "state_bytes"))
    names = list(rows)
    conversations = [dict(zip(names, row, strict=True)) for row in zip(*rows.values(), strict=True)]
    conversations.sort(key=lambda row: (row["system"], row["conversation"]))
    digest = hashlib.sha256(text).hexdigest()
    clean = None
    if (folder / "clean.parquet").is_file():
        clean = Run(folder, manifest, digest, _rows(folder / "clean.parquet"), [])
    run = Run(folder, manifest, digest, columns, conversations, clean)
    if not run.systems:
        raise _bad(folder, "rows.parquet has no rows")
    for system in run.systems:
        run.keys(system)
    return run


def require(module: str) -> Any:
    """Import an optional package.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.split(".")[0]
        if error.name is None or error.name.split(".")[0] != package:
            raise
        raise MissingExtraError(error, "eval") from error


def _public_line(line: str) -> str:
    try:
        return public_command(shlex.split(line))
    except ValueError:
        return line


def _again(run: Run, count: int) -> Run:
    return replace(run, suffix=str(count))


def _bad(folder: Path, what: str, code: str = "input.field") -> InputError:
    return InputError(f"{folder.name}: {what}; run `ebbtide eval` again", code)


def _manifest_bytes(folder: Path) -> bytes:
    if not folder.is_dir():
        raise InputError(
            f"no run directory {str(folder)!r}; give what `ebbtide eval --out` wrote",
            "input.transcript",
        )
    missing = [
        name
        for name in ("manifest.json", "rows.parquet", "conversations.parquet")
        if not (folder / name).is_file()
    ]
    if missing:
        raise InputError(
            f"{folder.name} lacks {', '.join(missing)}; "
            "give a directory that a finished `ebbtide eval --out` wrote",
            "input.transcript",
        )
    return (folder / "manifest.json").read_bytes()


def _manifest(folder: Path, text: bytes) -> dict[str, Any]:
    try:
        manifest = json.loads(text)
    except ValueError as error:
        raise _bad(folder, f"manifest.json is not JSON ({error})", "input.transcript") from error
    needed = ("ebbtide", "dataset", "data", "digest", "questions", "left_out", "unresolved")
    missing = [n for n in needed if not isinstance(manifest, dict) or n not in manifest]
    if missing:
        raise _bad(folder, f"manifest.json lacks {', '.join(missing)}")
    found: dict[str, Any] = manifest
    return found


def _rows(path: Path) -> dict[str, list[Any]]:
    columns = _table(path, (*_IDENTITY, "abstention", *_LISTS, *_NUMBERS))
    _check_finite(path, columns)
    columns["category"] = ["none" if c is None else str(c) for c in columns["category"]]
    return columns


def _table(path: Path, names: Sequence[str]) -> dict[str, list[Any]]:
    parquet, arrow = require("pyarrow.parquet"), require("pyarrow")
    try:
        there = set(parquet.read_schema(path).names)
        missing = [name for name in names if name not in there]
        if missing:
            raise _bad(path.parent, f"{path.name} lacks the columns {', '.join(missing)}")
        table = parquet.read_table(path, columns=list(names))
    except arrow.ArrowException as error:
        what = f"{path.name} is not readable Parquet ({error})"
        raise _bad(path.parent, what, "input.transcript") from error
    columns: dict[str, list[Any]] = table.to_pydict()
    return columns


def _check_finite(path: Path, columns: dict[str, list[Any]]) -> None:
    for name in _NUMBERS:
        for row, value in enumerate(columns[name]):
            if value is not None and not math.isfinite(value):
                key = columns["question_id"][row]
                raise _bad(path.parent, f"{path.name}: {name} of question {key!r} is not finite")
