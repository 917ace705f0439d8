"""One batch of conversations becomes one part: what a worker does."""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ebbtide.config import Config
from ebbtide.distributed.sources import Reader, Source
from ebbtide.distributed.tables import Table
from ebbtide.errors import ExternalError, InputError, StoreError
from ebbtide.files import into_place
from ebbtide.memory import Memory
from ebbtide.replay import ReplaySummary, replay
from ebbtide.transcripts import TurnReader
from ebbtide.types import Turn, WriteReport

__all__ = [
    "Done",
    "Sent",
    "Task",
    "is_store",
    "own_code",
    "part_paths",
    "perform",
    "sent",
    "write_files",
]

_LONGEST_NAME = 120
"""Of a store file, in bytes; what is longer ends with a hash."""

_SQLITE = b"SQLite format 3\0"
_STORE = b"ebbt"
"""``application_id`` of a store; see ``rust/core/src/store/schema.rs``."""

_TIERS = ("healthy", "unstable", "critical")
_REASONS = ("hard_kill", "budget", "skip")
_EVICTIONS = {"evict_kill", "evict_budget", "skip"}


class Sent:
    """A conversation that was read where its file is, for a worker that has no such file.

    It is what ``ebbtide.transcripts.TurnReader`` is: the same turns, the same places,
    and at the end the same error.
    """

    def __init__(self, place: str) -> None:
        """Nothing in it yet; ``place`` is where an error before the first turn stands."""
        self.place = place
        self.local = False
        self.skipped = 0
        self.turns: list[tuple[Turn, str, bool]] = []
        self.failure: tuple[str, str, str] | None = None

    def __iter__(self) -> Iterator[Turn]:
        """The turns from the start."""
        for turn, place, local in self.turns:
            self.place, self.local = place, local
            yield turn
        if self.failure is not None:
            message, code, self.place = self.failure
            raise InputError(message, code)


def sent(reader: Reader, source: Source) -> Sent | InputError:
    """Read a conversation to its end, or to where it is unusable; its file may be as a whole."""
    try:
        turns = reader.turns(source)
    except InputError as error:
        return error
    found = Sent(turns.place)
    try:
        for turn in turns:
            found.turns.append((turn, turns.place, turns.local))
    except InputError as error:
        found.failure = (str(error), error.code, turns.place)
    found.skipped = turns.skipped
    return found


@dataclass(frozen=True, slots=True)
class Task:
    """A batch, with all that a worker has to know.

    Attributes:
        number: From 0; names the part.
        sources: Its conversations, in order.
        config: Settings of every memory.
        data_sha256: Of names and data of the conversations.
        code: What :func:`own_code` says where it is asked for.
        stores: Keep each memory in a store file.
        out: Where the part goes; None where the worker is to send it back.
        given: The conversations themselves, where the worker is not to read files.
    """

    number: int
    sources: tuple[Source, ...]
    config: Config
    data_sha256: str
    code: Mapping[str, Any]
    stores: bool
    out: Path | None
    given: tuple[Sent | InputError, ...] | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a batch.

    Attributes:
        number: The batch's.
        conversations: How many.
        files: Contents of the part's files by their path in the output directory; empty
            where the worker wrote them itself.
    """

    number: int
    conversations: int
    files: Mapping[str, bytes] = field(default_factory=dict)


# The models are one to a process, and a core is what a batch is worth: a worker with
# several threads makes its batches one after the other.
_one_at_a_time = threading.Lock()


@functools.cache
def _reader() -> Reader:
    """A process's own: the batches that it gets of one file come in order."""
    return Reader()


def part_paths(number: int) -> dict[str, str]:
    """Paths of a part in the output directory; ``conversations`` is written last."""
    return {
        "turns": f"turns/{number:06}.parquet",
        "stores": f"stores/{number:06}",
        "conversations": f"conversations/{number:06}.parquet",
    }


def perform(task: Task) -> Done:
    """Make a batch's part.

    Raises:
        ExternalError: ``worker.failed``: this process runs other code than the one that
            asks.
        StoreError: The part, or a memory of it, cannot be written.
    """
    _check_code(task)
    with _one_at_a_time, _writing(task.number), _folder(task.out) as folder:
        paths = {name: folder / path for name, path in part_paths(task.number).items()}
        for path in paths.values():
            path.parent.mkdir(parents=True)
        with (
            Table(paths["turns"], "turns", task.data_sha256) as rows,
            Table(paths["conversations"], "conversations", task.data_sha256) as table,
        ):
            for number, source in enumerate(task.sources):
                store = _new_store(paths["stores"], source) if task.stores else None
                given = task.given[number] if task.given is not None else None
                with _memory(store, task.config) as memory:
                    row, found = _replayed(memory, source, given)
                    rows.add(found)
                row["store"] = store.relative_to(folder).as_posix() if store is not None else None
                table.add([row])
        _without_leftovers(paths["stores"])
        if task.out is not None:
            deliver(folder, task.out, task.number)
            return Done(task.number, len(task.sources))
        files = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        return Done(task.number, len(task.sources), files)


def own_code(config: Config) -> dict[str, Any]:
    """Hashes and versions of what this process would replay with, its models too."""
    from ebbtide.evals.provenance import code, fingerprint

    return code() | {"analyser": fingerprint(config)}


def _check_code(task: Task) -> None:
    own = own_code(task.config)
    if own != task.code:
        different = ", ".join(sorted(name for name in own if own[name] != task.code.get(name)))
        message = (
            f"a worker does not run the code of the process that asks ({different} differ); "
            "install the same ebbtide, models, Python and libraries there"
        )
        raise ExternalError(message, "worker.failed")


@contextmanager
def _writing(number: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"part {number} cannot be written: {error}; make room and run it again"
        raise StoreError(message, "store.open") from error


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    """A folder for what is being made, in the output directory so that it can be moved there."""
    if out is not None:
        (out / "tmp").mkdir(parents=True, exist_ok=True)
    parent = None if out is None else out / "tmp"
    with tempfile.TemporaryDirectory(dir=parent, ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextmanager
def _memory(store: Path | None, config: Config) -> Iterator[Memory]:
    opened = Memory.in_memory(config=config) if store is None else Memory.open(store, config=config)
    with opened as memory:
        yield memory


def _new_store(folder: Path, source: Source) -> Path:
    folder.mkdir(exist_ok=True)
    store = folder / _store_name(source.conversation)
    if store.exists():
        # What it holds would be taken for the beginning of this conversation.
        message = (
            f"two conversations of one part would share the store {store.name}, the second being "
            f"{source.conversation!r} of {source.file}; give their files other names"
        )
        raise StoreError(message, "store.open")
    return store


def _store_name(conversation: str) -> str:
    """A file name of its own for every conversation, whatever is in its name."""
    name = quote(conversation, safe=" ")
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}-{sha256(conversation.encode()).hexdigest()[:16]}"
    return f"{name}.db"


def is_store(path: Path) -> bool:
    """Whether a store is there, and as long as its first page says.

    No more than that: to read all of every store takes the disk as long as to write them.
    """
    try:
        with path.open("rb") as file:
            head = file.read(100)
            length = file.seek(0, os.SEEK_END)
    except OSError:
        return False
    if len(head) < 100 or not head.startswith(_SQLITE) or head[68:72] != _STORE:
        return False
    page, pages = int.from_bytes(head[16:18], "big"), int.from_bytes(head[28:32], "big")
    return length >= (65536 if page == 1 else page) * pages  # 1 stands for the largest page


def _without_leftovers(stores: Path) -> None:
    """A closed store is one file; its lock has nobody to keep out."""
    for path in list(stores.iterdir()) if stores.is_dir() else []:
        if not path.name.endswith(".db"):  # which may be all of a name
            path.unlink() if path.is_file() else shutil.rmtree(path)


def _replayed(
    memory: Memory, source: Source, given: Sent | InputError | None
) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """The conversation's row, and its turns' rows."""
    evicted: dict[int, str] = {}
    last = ReplaySummary(memory.namespace)

    def note(summary: ReplaySummary, report: WriteReport) -> None:
        nonlocal last
        last = summary
        evicted.update((one.interaction_id, one.reason) for one in report.evicted)

    failure: InputError | None = None
    turns: TurnReader | None = None
    try:
        if isinstance(given, InputError):
            raise given
        turns = given or _reader().turns(source)
        # In this thread: of the workers there is one a core.
        last = replay(memory, turns, workers=0, progress=note)
    except InputError as error:
        failure = error
        # How far it was read when the last turn was stored is a matter of chance.
        last.skipped = turns.skipped if turns is not None else 0
    stats = memory.stats()
    row: dict[str, Any] = {
        "conversation": source.conversation,
        "file": source.file,
        "turns": stats["turns"],
        "skipped": last.skipped,
        "duplicates": last.duplicates,
        **{name: stats[name] for name in ("active", "archived", "active_tokens", "relations")},
        **{name: stats["tiers"].get(name, 0) for name in _TIERS},
        **{name: last.evictions[name] for name in _REASONS},
        "superseded": last.superseded,
        "digest": memory.digest(),
        "error_code": None if failure is None else failure.code,
        # Not where it is on this machine: the tables are the same wherever they are made.
        "error": None if failure is None else str(failure).replace(str(source.path), source.file),
    }
    return row, _turn_rows(memory, source.conversation, evicted)


def _turn_rows(
    memory: Memory, conversation: str, evicted: Mapping[int, str]
) -> Iterator[dict[str, Any]]:
    for turn in memory.turns():
        told = memory.explain(turn.interaction_id)
        superseding = [one["newer"] for one in told["newer"] if one["relation"] != "conflicts_with"]
        moments = [one["at"] for one in told["decisions"] if one["kind"] in _EVICTIONS]
        yield {
            "conversation": conversation,
            "turn": turn.interaction_id,
            "external_id": turn.external_id,
            "record_id": turn.record_id,
            "session_id": turn.session_id,
            "tokens": turn.tokens,
            "omega": told["score"]["omega"],
            "effective": told["now"].get("effective"),
            "tier": told["now"].get("tier"),
            "state": turn.state,
            "validity": turn.validity,
            "evicted_by": evicted.get(turn.interaction_id or 0),
            "evicted_at": moments[-1] if moments else None,
            "superseded_by": min(superseding, default=None),
        }


def deliver(folder: Path, out: Path, number: int) -> None:
    """Move a part to where it belongs; the conversations, which mark it as done, come last."""
    for path in part_paths(number).values():
        made, place = folder / path, out / path
        if made.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            if place.is_dir():
                place.replace(folder / "before")  # of a try that was cut short
            into_place(made, place)


def write_files(files: Mapping[str, bytes], out: Path, number: int) -> None:
    """Put down a part that a worker sent back."""
    with _writing(number), _folder(out) as folder:
        for name, data in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        deliver(folder, out, number)
