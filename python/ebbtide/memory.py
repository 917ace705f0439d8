"""The facade: one memory, its turns, its answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ebbtide import _core
from ebbtide.config import PRESETS, Config
from ebbtide.errors import EbbtideError, InputError, NotFoundError
from ebbtide.inputs import (
    Prepared,
    checked_text,
    filters_for_core,
    prepare,
    query_moment,
    shown,
    turn_from,
)
from ebbtide.types import RenderedContext, RetrievedEvidence, Turn, WriteReport

if TYPE_CHECKING:
    from ebbtide.analysis.analyser import Analyser, Analysis
    from ebbtide.llm.deliberation import Line, Ruling
    from ebbtide.llm.seam import JsonModel

__all__ = ["BATCH", "Memory"]

BATCH = 64
"""Turns analysed and committed together by ``add_many``."""

_PAGE = 256

_IDS = 2**40
"""Interaction ids stay below; in a store's keys the bits above name the memory."""


class Memory:
    """A deterministic memory of one conversation, user or agent.

    Open one with :meth:`open` or :meth:`in_memory`; use it as a context manager.
    It may be shared by threads: writes queue up, reads go on.

    Example:
        >>> with Memory.in_memory() as memory:
        ...     _ = memory.add("I moved to Porto in May.", speaker="Ana")
        ...     memory.retrieve("Where does Ana live?")[0].turn.text
        'I moved to Porto in May.'
    """

    def __init__(
        self,
        store: _core.StoreHandle,
        namespace: str,
        config: Config,
        *,
        owns_store: bool,
        read_only: bool = False,
        reindexing: bool = False,
        llm: JsonModel | None = None,
    ) -> None:
        """Attach to an open store; use :meth:`open` or :meth:`in_memory` instead."""
        from ebbtide.analysis.analyser import Analyser

        checked_text("namespace", namespace)
        cards = bool(config["retrieval"]["enable_card_semantic"])
        self._analyser: Analyser = Analyser(config["nlp"], embedder=config.embedder, cards=cards)
        self._config = config
        self._owns_store = owns_store
        self._store = store
        self._namespace = namespace
        self._read_only = read_only
        self._presets = {name: config.on_preset(name) for name in PRESETS}
        self._handle = _core.MemoryHandle(
            store,
            namespace,
            config=config.to_json(),
            presets={name: preset.to_json() for name, preset in self._presets.items()},
            analyser=self._analyser.fingerprint,
            reindexing=reindexing,
        )
        self._llm = llm
        self._write_lock = threading.RLock()
        self._worker: _Worker | None = None

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        namespace: str = "default",
        config: Config | str | Path | None = None,
        read_only: bool = False,
        reindexing: bool = False,
        llm: JsonModel | None = None,
    ) -> Memory:
        """Open a memory in a store file, creating both where they are missing.

        Args:
            path: The store file.
            namespace: Which memory of the store.
            config: A :class:`Config`, or the path of a TOML file.
            read_only: Read what was there when it was opened; takes no lock, and
                may be open while another process writes.
            reindexing: Open it although it was made with another model or token
                counter, because :meth:`reindex` comes next.
            llm: A language model that takes part where ``[policy] deliberation`` is
                on; where it fails, the deterministic rules decide.

        Raises:
            StoreError: If the file is locked by another writer (named in the
                message), is no ebbtide store, or cannot be opened.
            FingerprintError: If the store was made with another model or token counter.
            ConfigError: If the configuration is unusable or a model is missing.
            NotFoundError: If ``read_only`` and there is no such store or memory.
        """
        from ebbtide.store import open_handle

        settings = _config(config)
        handle = open_handle(path, settings, read_only=read_only)
        try:
            return cls(
                handle,
                namespace,
                settings,
                owns_store=True,
                read_only=read_only,
                reindexing=reindexing,
                llm=llm,
            )
        except BaseException:
            handle.close()
            raise

    @classmethod
    def in_memory(
        cls, *, config: Config | str | Path | None = None, llm: JsonModel | None = None
    ) -> Memory:
        """A memory that ends with the process; ``llm`` as for :meth:`open`."""
        handle = _core.StoreHandle(None, read_only=False, holder="", synchronous_full=False)
        return cls(handle, "default", _config(config), owns_store=True, llm=llm)

    @property
    def config(self) -> Config:
        """The configuration it was opened with."""
        return self._config

    @property
    def namespace(self) -> str:
        """The memory's name within its store."""
        return self._namespace

    # Writing

    def add(
        self,
        text: str,
        *,
        role: str = "user",
        speaker: str | None = None,
        timestamp: Any = None,
        session_id: str | None = None,
        external_id: str | None = None,
        provenance: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        wait: str = "complete",
    ) -> WriteReport:
        """Store one turn; when this returns it survives a killed process.

        Args:
            text: What was said, kept byte for byte. A block that
                ``render_context`` made is taken out: it is not said anew.
            role: ``user``, ``assistant``, ``system``, ``tool`` or another label.
            speaker: The speaker's name.
            timestamp: ISO 8601 text, datetime, date or seconds since 1970;
                without a zone it is read as UTC.
            session_id: The session it belongs to.
            external_id: Your own id; a known one makes the call a no-op with
                ``duplicates=1``.
            provenance: Keys of the paper's eq. 10, such as ``is_user_correction``.
            metadata: Anything else, JSON-able.
            wait: ``"complete"`` analyses before returning; ``"journalled"``
                returns once the raw turn is safe and analyses in the background.

        Raises:
            InputError: If the turn is unusable; nothing was stored.
            StoreError: If it could not be written; nothing was stored.
        """
        if wait not in ("complete", "journalled"):
            message = f'wait must be "complete" or "journalled", not {shown(wait)}'
            raise InputError(message, "input.field")
        turn = Turn(text, role, speaker, timestamp, session_id, external_id, provenance, metadata)
        prepared = self._prepare(turn)
        if prepared is None:
            return WriteReport()
        with self._write_lock:
            if wait == "journalled":
                _, report = self._handle.journal([prepared])
                self._background().wake()
                return WriteReport._from_core(report)
            self.flush()
            return self._store_batch([prepared])

    def add_many(
        self,
        turns: Iterable[Turn | Mapping[str, Any]],
        *,
        progress: Callable[[int], None] | None = None,
        batch_size: int = BATCH,
    ) -> WriteReport:
        """Store turns in order, in batches; the iterable is streamed, never held whole.

        The result is the same as adding them one by one.

        Args:
            turns: :class:`Turn` objects, mappings with the same names (``content``
                for ``text``, ``name`` for ``speaker``, ``id`` for ``external_id``),
                or OpenAI chat messages with content parts and tool calls.
            progress: Called after each batch with the turns handled so far.
            batch_size: Turns analysed and committed together; the result does
                not depend on it.

        Raises:
            InputError: Naming the turn that is unusable; those before it were kept.
        """
        _positive("batch_size", batch_size)
        with self._write_lock:
            self.flush()
            report = self._store_batch([])
            done = 0
            iterator = iter(turns)
            while True:
                batch, failure, seen = self._take(iterator, batch_size, done)
                report += self._store_batch(batch)
                done += seen
                if failure is not None:
                    raise failure
                if not seen:
                    return report
                if progress is not None:
                    progress(done)

    def _take(
        self, turns: Iterator[Turn | Mapping[str, Any]], size: int, done: int
    ) -> tuple[list[Prepared], Exception | None, int]:
        """Up to ``size`` checked turns, and the error that ended them early."""
        batch: list[Prepared] = []
        seen = 0
        while seen < size:
            try:
                item = next(turns)
            except StopIteration:
                break
            except Exception as error:
                # The caller's iterator failed: what it gave before that is kept.
                return batch, error, seen
            try:
                prepared = self._prepare(turn_from(item))
            except EbbtideError as error:
                place = done + seen
                kept = f"the {place} before it were kept" if place else "nothing came before it"
                message = f"turn {place + 1} of this call: {error}; {kept}"
                return batch, type(error)(message, error.code), seen
            seen += 1
            if prepared is not None:
                batch.append(prepared)
        return batch, None, seen

    def _prepare(self, turn: Turn) -> Prepared | None:
        return prepare(turn, max_chars=self._config["limits"]["max_turn_chars"])

    def _store_batch(self, batch: Sequence[Prepared]) -> WriteReport:
        # A known external id needs no analysis; the core would refuse it again.
        fresh: list[Prepared] = []
        duplicates = 0
        seen: set[str] = set()
        for turn in batch:
            external = turn.external_id
            if external is not None:
                if external in seen or self._handle.find_external(external) is not None:
                    duplicates += 1
                    continue
                seen.add(external)
            fresh.append(turn)
        report = self._handle.add(self._analysed(fresh))
        return WriteReport(duplicates=duplicates) + WriteReport._from_core(report)

    def _analysed(self, batch: Sequence[Prepared]) -> list[tuple[Any, ...]]:
        from ebbtide.analysis.facts import TurnText

        texts = [TurnText(t.text, t.role, t.speaker, t.moment) for t in batch]
        analyses: list[Analysis] = self._analyser.analyse(texts) if texts else []
        return [
            (turn, a.facts, list(a.passages), list(a.card_vectors))
            for turn, a in zip(batch, analyses, strict=True)
        ]

    def relate(self, newer: int, relation: str, older: int) -> WriteReport:
        """Say how one turn relates to an older one.

        Args:
            newer: Interaction id of the relating turn.
            relation: ``supersedes``, ``corrects``, ``invalidates`` (all three
                suppress the older one) or ``conflicts_with``.
            older: Interaction id of the other.

        Raises:
            InputError: For an unknown relation, or one that would close a cycle.
            NotFoundError: If there is no such turn.
        """
        with self._write_lock:
            self.flush()
            checked_text("relation", relation)
            newer, older = _interaction_id(newer), _interaction_id(older)
            return WriteReport._from_core(self._handle.relate(newer, relation, older))

    def delete(
        self,
        interaction_id: int | str | None = None,
        *,
        external_id: str | None = None,
    ) -> None:
        """Erase one turn: text, vectors, postings, cards, decisions, free pages.

        Args:
            interaction_id: Its interaction id (a text is taken for an external id).
            external_id: Or your own id of it.

        Raises:
            NotFoundError: If there is no such turn.
        """
        with self._write_lock:
            self.flush()
            self._handle.delete(self._resolve(interaction_id, external_id))

    def delete_all(self) -> None:
        """Erase every turn of this memory; others in the store are untouched."""
        with self._write_lock:
            self.flush()
            self._handle.delete_all()

    def reindex(self, *, progress: Callable[[int], None] | None = None) -> int:
        """Rebuild everything derived with the current models and settings.

        Returns the number of turns read anew. Resumable: a memory that was
        interrupted goes on at its next use.
        """
        with self._write_lock:
            self._handle.begin_reindex()
            return self._drain(progress)

    def flush(self) -> None:
        """Wait until every journalled turn is analysed and taken in."""
        if self._read_only:
            return
        with self._write_lock:
            if self._handle.pending():
                self._drain()

    def _drain(self, progress: Callable[[int], None] | None = None) -> int:
        done = 0
        with self._write_lock:
            while pending := self._handle.pending()[:BATCH]:
                turns = [self._handle.get(i) for i in pending]
                batch = [_stored_input(turn) for turn in turns]
                analysed = self._analysed(batch)
                self._handle.complete_pending(list(zip(pending, analysed, strict=True)))
                done += len(pending)
                if progress is not None:
                    progress(done)
        return done

    def _background(self) -> _Worker:
        if self._worker is None:
            self._worker = _Worker(self)
        return self._worker

    # Reading

    def retrieve(
        self,
        query_text: str,
        *,
        limit: int | None = None,
        max_tokens: int | None = None,
        query_time: Any = None,
        preset: str | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> list[RetrievedEvidence]:
        """Turns that answer a question, best first, one item a source turn.

        Args:
            query_text: The question.
            limit: How many; with preset ``default`` exactly so many, where the
                memory has them. None: the preset's limit, cut where the score
                falls off.
            max_tokens: Most tokens of the turns together; whole turns only.
            query_time: When it is asked, for "last week" and the like; the
                newest turn's time by default, never the clock. Hides nothing.
            preset: ``"default"`` or ``"paper"``; the memory's own by default.
            filters: ``role``, ``speaker``, ``session_id``, ``since``, ``until``,
                ``metadata`` (a mapping of fields that must be equal).

        Raises:
            InputError: If the question or an argument is unusable.
        """
        query, options = self._query(query_text, limit, query_time, preset, filters)
        ruling = self._ruling(query_text, query, options)
        found = self._handle.recall(query, trace=False, overruled=_overruled(ruling), **options)
        evidence = [RetrievedEvidence._from_core(row) for row in found["evidence"]]
        if max_tokens is None:
            return evidence
        return _within(evidence, _positive("max_tokens", max_tokens))

    def render_context(
        self,
        query_text: str,
        *,
        max_tokens: int | None = None,
        include_active: bool = True,
        query_time: Any = None,
        preset: str | None = None,
        limit: int | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> str:
        """Evidence and the active conversation as one block of text for a prompt.

        The ``text`` of :meth:`context`, whose arguments it takes.
        """
        return self.context(
            query_text,
            max_tokens=max_tokens,
            include_active=include_active,
            query_time=query_time,
            preset=preset,
            limit=limit,
            filters=filters,
        ).text

    def context(
        self,
        query_text: str,
        *,
        max_tokens: int | None = None,
        include_active: bool = True,
        query_time: Any = None,
        preset: str | None = None,
        limit: int | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> RenderedContext:
        """Evidence and the active conversation as a block, with what it shows.

        Never more than ``max_tokens`` by :meth:`count_tokens` (the configured
        ``render.max_tokens`` by default). Evidence is served first; active turns
        get what is left, newest first, printed in order.

        Args:
            query_text: The question.
            max_tokens: Most tokens of the block.
            include_active: Whether the active conversation follows the evidence.
            query_time: As for :meth:`retrieve`, like the rest.
            preset: ``"default"`` or ``"paper"``.
            limit: Most evidence.
            filters: What the evidence must match.

        Raises:
            InputError: If the question or an argument is unusable.
        """
        query, options = self._query(query_text, limit, query_time, preset, filters)
        if max_tokens is not None:
            max_tokens = _positive("max_tokens", max_tokens)
        ruling = self._ruling(query_text, query, options)
        text, shown, tokens = self._handle.render(
            query,
            max_tokens=max_tokens,
            include_active=include_active,
            overruled=_overruled(ruling),
            **options,
        )
        return RenderedContext(text, tuple(shown), tokens)

    def trace(
        self,
        query_text: str,
        *,
        limit: int | None = None,
        query_time: Any = None,
        preset: str | None = None,
        filters: Mapping[str, Any] | None = None,
        answer: str | None = None,
    ) -> dict[str, Any]:
        """How a question is answered: its frame, and every candidate's scores and fate.

        Args:
            query_text: The question.
            limit: As for :meth:`retrieve`, like the others.
            query_time: When it is asked.
            preset: ``"default"`` or ``"paper"``.
            filters: What the evidence must match.
            answer: An answer that the evidence must bear out, for the policy
                ``quality``: its numbers, dates and names.

        Returns:
            ``{"frame", "candidates", "evidence", "deliberation"}``; a candidate's
            ``fate`` is ``kept``, ``joined`` (another form of a kept turn),
            ``duplicate``, ``cut`` (past the limit), or the filter that dropped it.
            ``deliberation`` is None where the policy is off, else what its gates saw,
            whether the question escalated, what the scan of the history found, and
            under ``llm`` what a language model did.
        """
        query, options = self._query(query_text, limit, query_time, preset, filters)
        if answer is not None:
            answer = checked_text("answer", answer)
        ruling = self._ruling(query_text, query, options, answers=True)
        found = self._handle.recall(
            query, trace=True, overruled=_overruled(ruling, answer), **options
        )
        deliberation = found["deliberation"]
        if deliberation is not None:
            deliberation["llm"] = None if ruling is None else ruling.to_dict()
        return {
            "frame": query[0],
            "candidates": found["candidates"],
            "evidence": [RetrievedEvidence._from_core(row).to_dict() for row in found["evidence"]],
            "deliberation": deliberation,
        }

    def _ruling(
        self,
        question: str,
        query: tuple[Any, ...],
        options: Mapping[str, Any],
        *,
        answers: bool = False,
    ) -> Ruling | None:
        """What the language model decides for a question; None where it has no part."""
        policy = self._config["policy"]["deliberation"]
        if self._llm is None or policy == "off":
            return None
        from ebbtide.llm import deliberation

        fast = {**options, "limit": options["limit"] or deliberation.TOP}
        judges = policy == "quality"
        # The votes of retrievers need no language model: they are taken first.
        plain = (False, None, None) if judges else None
        found = self._handle.recall(query, trace=False, overruled=plain, **fast)
        escalate = None if judges else found["deliberation"]["escalated"]
        recalled = [_line(row["turn"]) for row in found["evidence"]]
        return deliberation.deliberate(
            self._llm,
            question,
            recalled,
            lambda: (_line(row) for row in self._rows(options)),
            self._config["deliberation"],
            judges=judges,
            escalate=escalate,
            answers=answers,
        )

    def _rows(self, options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Stored turns as the core gives them, in id order, those that the filters let in."""
        first = 0
        while page := self._handle.history_page(first, _PAGE, options["filters"]):
            yield from page
            first = page[-1]["interaction_id"] + 1

    def _query(
        self,
        text: str,
        limit: int | None,
        query_time: Any,
        preset: str | None,
        filters: Mapping[str, Any] | None,
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        most = self._config["limits"]["max_query_chars"]
        if not isinstance(text, str) or not text.strip():
            raise InputError("a question needs text", "input.field")
        if len(text) > most:
            message = f"the question has {len(text):,} characters, the limit is {most:,}"
            raise InputError(message, "input.too_long")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            message = f"the question is not valid Unicode at character {error.start}"
            raise InputError(message, "input.unicode") from error
        if limit is not None:
            limit = _positive("limit", limit)
        if preset is not None and preset not in PRESETS:
            Config(preset)  # raises the error that names the presets
        self.flush()
        settings = self._presets[preset] if preset else self._config
        question = self._analyser.question(
            text,
            query_time=query_moment(query_time, self._handle.newest_time()),
            speakers=self._handle.speakers(),
            bare=not settings["retrieval"]["late_interaction"],
        )
        query = (question.frame.to_dict(), question.vector, question.tokens, question.token_terms)
        options = {"limit": limit, "preset": preset, "filters": filters_for_core(filters)}
        return query, options

    def turns(self, *, state: str | None = None) -> Iterator[Turn]:
        """Stored turns in id order, optionally only ``active`` or ``archived`` ones."""
        if state not in (None, "active", "archived"):
            message = f'state must be "active" or "archived", not {shown(state)}'
            raise InputError(message, "input.field")
        first = 0
        while page := self._handle.page(first, _PAGE):
            for row in page:
                if state is None or row["state"] == state:
                    yield Turn._from_core(row)
            first = page[-1]["interaction_id"] + 1

    def get(
        self, interaction_id: int | str | None = None, *, external_id: str | None = None
    ) -> Turn:
        """One stored turn, by interaction id or external id.

        Raises:
            NotFoundError: If there is no such turn.
        """
        return Turn._from_core(self._handle.get(self._resolve(interaction_id, external_id)))

    def history(
        self, interaction_id: int | str | None = None, *, external_id: str | None = None
    ) -> list[Turn]:
        """The turns that a turn is related to by lineage, itself included, in id order."""
        rows = self._handle.history(self._resolve(interaction_id, external_id))
        return [Turn._from_core(row) for row in rows]

    def explain(
        self, interaction_id: int | str | None = None, *, external_id: str | None = None
    ) -> dict[str, Any]:
        """The life of one turn: signals, score terms, decisions, lineage, where it stands."""
        found: dict[str, Any] = self._handle.explain(self._resolve(interaction_id, external_id))
        metadata = found["turn"]["metadata"]
        found["turn"]["metadata"] = None if metadata is None else json.loads(metadata)
        return found

    def stats(self) -> dict[str, Any]:
        """The memory in numbers: turns by state, tiers, tokens, decisions."""
        found: dict[str, Any] = self._handle.stats()
        return found

    def digest(self) -> str:
        """SHA-256 of the logical state, in hex: equal whenever the same turns went in."""
        self.flush()
        return self._handle.digest()

    def count_tokens(self, text: str) -> int:
        """Tokens of a text by this memory's counter."""
        return self._handle.count_tokens(checked_text("text", text))

    def __len__(self) -> int:
        """Number of stored turns."""
        return self._handle.len()

    def warm_up(self) -> None:
        """Load the models now rather than at the first turn or question."""
        self._analyser.warm_up()

    def close(self) -> None:
        """Finish what is pending and free the store; closing twice is harmless."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.stop()
        self._handle.close()
        if self._owns_store:
            self._store.close()

    def __enter__(self) -> Self:
        """Use as a context manager: closed at the end."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def _resolve(self, interaction_id: int | str | None, external_id: str | None) -> int:
        if isinstance(interaction_id, str):
            external_id, interaction_id = interaction_id, None
        if external_id is not None:
            checked_text("external_id", external_id)
            found = self._handle.find_external(external_id)
            if found is None:
                message = f"there is no turn with external id {external_id!r}"
                raise NotFoundError(message, "not_found.turn")
            return found
        return _interaction_id(interaction_id)


class _Worker:
    """Analyses journalled turns in the background."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._wanted = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="ebbtide-analyse", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """There is something to analyse."""
        self._wanted.set()

    def stop(self) -> None:
        """Finish what is pending, then end."""
        self._stopping = True
        self._wanted.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping:
            self._wanted.wait()
            self._wanted.clear()
            try:
                self._memory.flush()
            except EbbtideError:
                # The turns stay journalled; the next call that needs their
                # analysis tries again and raises the error where it is seen.
                continue


def _overruled(ruling: Ruling | None, answer: str | None = None) -> tuple[Any, ...] | None:
    """A ruling as the core takes it: whether to escalate, what was found, the answer."""
    if ruling is None:
        return None if answer is None else (None, None, answer)
    return ruling.escalate, ruling.facts, ruling.answer if answer is None else answer


def _line(row: Mapping[str, Any]) -> Line:
    from ebbtide.llm.deliberation import Line

    said = f"{row['speaker'] or row['role']}: {row['text']}"
    return Line(row["interaction_id"], f"[{row['timestamp']}] {said}" if row["timestamp"] else said)


def _config(config: Config | str | Path | None) -> Config:
    if config is None:
        return Config()
    return config if isinstance(config, Config) else Config.load(config)


def _stored_input(row: Mapping[str, Any]) -> Prepared:
    """A stored turn as the analysis takes it."""
    from ebbtide.inputs import Stamp

    turn = Turn._from_core(row)
    stamp = None
    if row["timestamp"] is not None:
        stamp = Stamp(row["timestamp"], row["utc_micros"], row["naive_timestamp"])
    return Prepared(
        text=turn.text,
        role=turn.role,
        speaker=turn.speaker,
        stamp=stamp,
        session_id=turn.session_id,
        external_id=turn.external_id,
        provenance=None if turn.provenance is None else json.dumps(dict(turn.provenance)),
        metadata=row["metadata"],
        received_at=0,
        moment=turn.utc,
    )


def _positive(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        message = f"{name} must be a whole number of at least 1, not {shown(value)}"
        raise InputError(message, "input.field")
    return min(value, 2**31 - 1)  # more than any memory holds


def _interaction_id(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        message = "name a turn by its interaction id (0 or more) or its external id"
        raise InputError(message, "input.field")
    if value >= _IDS:
        raise NotFoundError(f"there is no turn {shown(value)}", "not_found.turn")
    return value


def _within(evidence: list[RetrievedEvidence], max_tokens: int) -> list[RetrievedEvidence]:
    """The best whole turns that fit together; one that is too long is passed over."""
    kept: list[RetrievedEvidence] = []
    left = max_tokens
    for item in evidence:
        tokens = item.turn.tokens or 0
        if tokens <= left:
            left -= tokens
            kept.append(item)
    return kept
