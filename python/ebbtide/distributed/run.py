"""Replay of many transcripts: what is to do, what is done, and how it is told.

DIR/plan.json                what is being run; a second call goes on with it
DIR/turns/N.parquet          one row a turn, of one batch of conversations
DIR/conversations/N.parquet  one row a conversation; there once the batch is done
DIR/stores/N/NAME.db         their memories, a store file each
DIR/report.json              counts, failures and one digest of all
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ebbtide.config import Config
from ebbtide.cores import usable_cores
from ebbtide.errors import InputError, StoreError
from ebbtide.inputs import positive
from ebbtide.messages import reason
from ebbtide.opened import settings_of

if TYPE_CHECKING:
    from ebbtide.distributed.engines import Engine
    from ebbtide.distributed.sources import Source
    from ebbtide.distributed.work import Task

__all__ = ["BATCH", "ENGINES", "FILES", "Failure", "ReplayReport", "replay_many"]

ENGINES = ("local", "dask")
FILES = ("paths", "content")

BATCH = 16
"""Conversations to a part, unless another number is asked for."""

_FOLDERS = ("turns", "conversations", "stores", "tmp")


@dataclass(frozen=True, slots=True)
class Failure:
    """A conversation that could not be replayed, or not to its end.

    Attributes:
        conversation: Its name.
        code: The error's.
        message: What is wrong, and where.
    """

    conversation: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What a replay of many transcripts came to.

    Attributes:
        out: The directory.
        conversations: How many, those that failed too.
        turns: Turns stored.
        batches: Parts in the directory.
        kept: Of these, how many an earlier run had made.
        failures: Conversations that were not replayed to their end, in order.
        digest: SHA-256 over names and digests of all conversations, in order.
        seconds: Wall-clock time of this run.
    """

    out: Path
    conversations: int
    turns: int
    batches: int
    kept: int
    failures: tuple[Failure, ...]
    digest: str
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-able data."""
        return {
            **asdict(self),
            "out": str(self.out),
            "failures": [asdict(failure) for failure in self.failures],
            "seconds": round(self.seconds, 3),
        }


def replay_many(
    sources: str | Path | Iterable[str | Path],
    out: str | Path,
    *,
    config: Config | str | Path | None = None,
    engine: str = "local",
    scheduler: str | None = None,
    workers: int | None = None,
    batch: int = BATCH,
    stores: bool = True,
    split_by: str | None = None,
    files: str | None = None,
    fresh: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> ReplayReport:
    """Replay many transcripts, each conversation into a memory of its own.

    Run again with the same arguments it goes on where it stopped: parts that are there
    are kept, those with a failure in them are made anew. Every digest is that of
    :func:`ebbtide.replay.replay`, whatever the engine and the number of workers.

    Args:
        sources: Transcript files, directories of them, and patterns; what is in ``out``
            is none.
        out: Directory of the results.
        config: Settings of every memory: a :class:`~ebbtide.Config`, or the path of a TOML
            file.
        engine: ``"local"``: processes of this machine. ``"dask"``: the workers of a
            Dask cluster (extra ``dask``).
        scheduler: Address of that cluster; without one it is started on 127.0.0.1.
        workers: Processes; one a core by default. 1 makes all of it in this process
            under ``"local"``; more need the guard ``if __name__ == "__main__":``.
        batch: Conversations to a part, 1 or more.
        stores: Keep the memories; otherwise only the tables are left.
        split_by: A field, like ``session_id``, that tells apart the conversations of a
            JSON Lines file.
        files: ``"paths"``: workers read the files and write the parts, under the same
            paths as this process. ``"content"``: they are sent what they need and send
            their parts back. By default the latter where ``scheduler`` is named.
        fresh: Start over in a directory that holds another run.
        progress: Told the conversations that are done, and how many there are.

    Raises:
        InputError: If there is nothing at or in a source, an argument is unusable, or ``out``
            holds a run of other data, settings or code.
        StoreError: ``store.locked``: another run is at work in ``out``.
        ExternalError: ``worker.failed``: no cluster, or workers with other code.
        MissingExtraError: Without the extra ``dask``, which has Parquet in it too.
    """
    from ebbtide.distributed.sources import find_files, list_sources

    start = time.perf_counter()
    _check(engine, scheduler, files, workers, batch)
    settings = settings_of(config)
    count = workers or usable_cores()
    runner = _engine(engine, scheduler, count)
    by_path = (files or ("content" if scheduler else "paths")) == "paths"
    folder = Path(os.path.abspath(out))  # noqa: PTH100
    several = isinstance(sources, Iterable) and not isinstance(sources, str | bytes)
    given: Any = sources if several else [sources]
    found = find_files(given, but=folder)
    with _alone(folder):
        listed = list(list_sources(found, split_by))
        if not listed:
            raise InputError(f"{found[0]} holds no conversation", "input.transcript")
        plan = _identity(settings, listed, batch, stores, split_by)
        work = _Run(folder, listed, settings, batch, stores, plan["code"], fresh=fresh)
        work.claim(plan)
        work.make(runner, by_path, progress)
        return work.report(start)


def _check(
    engine: str, scheduler: str | None, files: str | None, workers: int | None, batch: int
) -> None:
    if engine not in ENGINES:
        raise InputError(f'engine must be "local" or "dask", not {engine!r}', "input.field")
    if scheduler is not None and engine != "dask":
        raise InputError('a scheduler goes with engine "dask"', "input.field")
    if files is not None and files not in FILES:
        raise InputError(f'files must be "paths" or "content", not {files!r}', "input.field")
    for name, value in (("workers", workers), ("batch", batch)):
        if value is not None:
            positive(name, value)


def _engine(name: str, scheduler: str | None, workers: int) -> Engine:
    from ebbtide.distributed import engines

    if name == "dask":
        from ebbtide.distributed.cluster import DaskEngine

        return DaskEngine(scheduler, workers)
    return engines.Here() if workers == 1 else engines.LocalEngine(workers)


def _opened(out: Path) -> IO[str]:
    try:
        out.mkdir(parents=True, exist_ok=True)
        return (out / ".lock").open("w")
    except OSError as error:
        message = f"{out} is no directory to write to: {reason(error)}; name another"
        raise StoreError(message, "store.open") from error


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Keep other runs out of the directory."""
    import fcntl

    with _opened(out) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            message = f"another replay is at work in {out}; wait for it, or name another --out"
            raise StoreError(message, "store.locked") from error
        yield


def _identity(
    config: Config, sources: Sequence[Source], batch: int, stores: bool, split_by: str | None
) -> dict[str, Any]:
    """What makes two runs the same, but for the data, which each part remembers itself."""
    from ebbtide.distributed.work import own_code

    return {
        "what": "replay of many transcripts",
        "settings": config.to_dict(),
        "code": own_code(config),
        "batch": batch,
        "stores": stores,
        "split_by": split_by,
        "conversations": len(sources),
        "names_sha256": _hash(source.conversation for source in sources),
    }


def _hash(texts: Iterable[str]) -> str:
    digest = sha256()
    for text in texts:
        # Lengths in front keep two lists from reading like one.
        digest.update(len(text).to_bytes(8, "little") + text.encode())
    return digest.hexdigest()


class _Run:
    """One call's work."""

    def __init__(
        self,
        out: Path,
        sources: Sequence[Source],
        config: Config,
        batch: int,
        stores: bool,
        code: dict[str, Any],
        *,
        fresh: bool,
    ) -> None:
        self._out = out
        self._sources = sources
        self._config = config
        self._stores = stores
        self._code = code
        self._fresh = fresh
        self._batches = [
            tuple(sources[first : first + batch]) for first in range(0, len(sources), batch)
        ]
        self._kept: set[int] = set()
        self._lost: dict[int, tuple[Failure, ...]] = {}

    def claim(self, identity: dict[str, Any]) -> None:
        """Make the directory this run's; find out what is done.

        Raises:
            InputError: It holds another run's parts.
        """
        from ebbtide.distributed.work import part_paths
        from ebbtide.evals.parts import claim
        from ebbtide.files import writing

        claim(self._out, identity, fresh=self._fresh, folders=_FOLDERS)
        shutil.rmtree(self._out / "tmp", ignore_errors=True)  # of workers that were killed
        for number in range(len(self._batches)):
            if self._is_done(number):
                self._kept.add(number)
            else:
                marked = self._out / part_paths(number)["conversations"]
                with writing(marked):
                    marked.unlink(missing_ok=True)

    def _is_done(self, number: int) -> bool:
        from ebbtide.distributed.tables import data_of, is_whole, read_rows
        from ebbtide.distributed.work import part_paths

        paths = {name: self._out / path for name, path in part_paths(number).items()}
        found = data_of(paths["conversations"])
        # What somebody removed or damaged is made anew with the rest of its part.
        if found is None or found != data_of(paths["turns"]):
            return False
        if not all(is_whole(paths[kind], kind, found) for kind in ("turns", "conversations")):
            return False
        rows = read_rows(paths["conversations"])
        if any(row["error"] is not None for row in rows) or not self._has_stores(rows):
            return False
        if found != self._data(number):
            first = self._batches[number][0].conversation
            message = (
                f"{self._out} holds a replay of other data (batch {number}, from {first}, "
                "differs); name another directory with --out, or start over there with --fresh"
            )
            raise InputError(message, "input.field")
        return True

    def _has_stores(self, rows: Sequence[Mapping[str, Any]]) -> bool:
        from ebbtide.distributed.work import is_store

        return not self._stores or all(
            row["store"] is not None and is_store(self._out / row["store"]) for row in rows
        )

    def _data(self, number: int) -> str:
        return _hash(
            text
            for source in self._batches[number]
            for text in (source.conversation, source.data_sha256)
        )

    def make(
        self, engine: Engine, by_path: bool, progress: Callable[[int, int], None] | None
    ) -> None:
        """Have every part made that is not there."""
        from ebbtide.distributed.engines import Lost
        from ebbtide.distributed.work import write_files

        told = progress or (lambda done, of: None)
        done = sum(len(self._batches[number]) for number in self._kept)
        told(done, len(self._sources))
        if len(self._kept) == len(self._batches):
            return
        with closing(engine.run(self._tasks(by_path))) as results:
            for result in results:
                if isinstance(result, Lost):
                    self._give_up(result.task)
                    done += len(result.task.sources)
                else:
                    if result.files:
                        write_files(result.files, self._out, result.number)
                    done += result.conversations
                told(done, len(self._sources))
        shutil.rmtree(self._out / "tmp", ignore_errors=True)

    def _tasks(self, by_path: bool) -> Iterator[Task]:
        from ebbtide.distributed.sources import Reader
        from ebbtide.distributed.work import Task, sent

        reader = Reader()
        for number, sources in enumerate(self._batches):
            if number in self._kept:
                continue
            given = None if by_path else tuple(sent(reader, source) for source in sources)
            yield Task(
                number,
                sources,
                self._config,
                self._data(number),
                self._code,
                self._stores,
                self._out if by_path else None,
                given,
            )

    def _give_up(self, task: Task) -> None:
        from ebbtide.distributed.engines import TRIES

        message = (
            f"the worker of its batch ended on its own {TRIES} times, mostly for want of memory; "
            "run it again to try anew"
        )
        self._lost[task.number] = tuple(
            Failure(source.conversation, "worker.failed", message) for source in task.sources
        )

    def report(self, start: float) -> ReplayReport:
        """Read the parts and sum them up."""
        from ebbtide.distributed.tables import read_rows
        from ebbtide.distributed.work import part_paths
        from ebbtide.files import write_json

        turns = 0
        failures: list[Failure] = []
        digests: list[str] = []
        for number in range(len(self._batches)):
            if number in self._lost:
                failures += self._lost[number]
                continue
            for row in read_rows(self._out / part_paths(number)["conversations"]):
                turns += row["turns"]
                digests += [row["conversation"], row["digest"]]
                if row["error"] is not None:
                    failures.append(Failure(row["conversation"], row["error_code"], row["error"]))
        found = ReplayReport(
            out=self._out,
            conversations=len(self._sources),
            turns=turns,
            batches=len(self._batches) - len(self._lost),
            kept=len(self._kept),
            failures=tuple(failures),
            digest=_hash(digests),
            seconds=time.perf_counter() - start,
        )
        stable = {k: v for k, v in found.to_dict().items() if k not in ("out", "seconds", "kept")}
        write_json(self._out / "report.json", stable)
        return found
