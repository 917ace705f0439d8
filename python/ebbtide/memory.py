"""The facade: one memory, its turns, its answers."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebbtide import _core
from ebbtide.ann import Graphs
from ebbtide.asking import Asking, overruled
from ebbtide.closing import Closing
from ebbtide.config import PRESETS, Config
from ebbtide.errors import InputError, NotFoundError
from ebbtide.inputs import (
    Prepared,
    checked_text,
    interaction_id_of,
    positive,
    prepare,
    shown,
)
from ebbtide.observing import Observer, observed
from ebbtide.pipeline import (
    BATCH,
    BackgroundFlush,
    Intake,
    analysed,
    for_core,
    stored_input,
    take_in,
    text_of,
)
from ebbtide.types import (
    Episode,
    Fact,
    RenderedContext,
    RetrievedEvidence,
    Turn,
    WriteReport,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ebbtide.analysis.ahead import Readers
    from ebbtide.analysis.analyser import Analyser
    from ebbtide.llm.seam import JsonModel

__all__ = ["Memory"]

_PAGE = 256


class Memory(Closing):
    """A deterministic memory of one conversation, user or agent.

    Open one with :meth:`open` or :meth:`in_memory`; use it as a context manager.
    It may be shared by threads: writes queue up, reads go on.

    Example:
        >>> with Memory.in_memory() as memory:
        ...     _ = memory.add("I moved to Porto in May.", speaker="Ana")
        ...     memory.retrieve("Where does Ana live?")[0].turn.text
        'I moved to Porto in May.'
    """

    _observer: Observer | None = None

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
        from ebbtide.llm.part import WritingPart

        checked_text("namespace", namespace)
        cards = bool(config["retrieval"]["enable_card_semantic"])
        self._analyser: Analyser = Analyser(config["nlp"], embedder=config.embedder, cards=cards)
        self._config = config
        self._owns_store = owns_store
        self._store = store
        self._namespace = namespace
        self._read_only = read_only
        presets = {name: config.on_preset(name).to_json() for name in PRESETS}
        self._handle = _core.MemoryHandle(
            store,
            namespace,
            config=config.to_json(),
            presets=presets,
            analyser=self._analyser.fingerprint,
            reindexing=reindexing,
        )
        self._graphs = Graphs(self._handle, namespace, store.path(), config["retrieval"])
        if not read_only:
            self._graphs.sweep()
        # Whoever needs both takes them in this order: only one thread analyses
        # journalled turns, and journalling does not wait for it.
        self._flush_lock = threading.RLock()
        self._write_lock = threading.RLock()
        self._part = WritingPart(config["policy"], llm)
        self._asking = Asking(
            self._handle,
            self._analyser,
            self._graphs,
            config,
            flush=self.flush,
            writable=not read_only,
            llm=llm,
        )
        self._background: BackgroundFlush | None = None

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
            llm: A language model that takes part where ``[policy]`` says so: in
                ``deliberation``, and with ``rpe.utility`` and ``recurrence.writer``
                ``"llm"``; where it fails, the deterministic rules decide.

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

    @observed("add")
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
        prepared = prepare(turn, max_chars=self._config["limits"]["max_turn_chars"])
        if prepared is None:
            return WriteReport()
        if wait == "journalled":
            return self._journal(prepared)
        if external_id is not None and self._handle.find_external(external_id) is not None:
            return WriteReport(duplicates=1) + self._store_batch([])
        analysis = self._analyser.analyse([text_of(prepared)])[0]
        return self._store_batch([for_core(prepared, analysis, self._part.assess(prepared))])

    @observed("journal")
    def _journal(self, prepared: Prepared) -> WriteReport:
        self._handle.check_process()
        with self._write_lock:
            _, report = self._handle.journal([prepared])
            background = self._background or BackgroundFlush(self.flush)
            self._background = background
        background.wake()
        return WriteReport._from_core(report)

    @observed("add_many")
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
        positive("batch_size", batch_size)
        reports: list[WriteReport] = []
        done = 0
        with self._exclusively(), closing(self._readers()) as readers:
            reports.append(self._store_batch([]))
            for _, report, seen in take_in(self._intake().read(turns), readers, batch_size):
                reports.append(report)
                done += seen
                if progress is not None:
                    progress(done)
        return WriteReport.total(reports)

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        """Nobody else writes, and nothing journalled is left."""
        self._handle.check_process()
        with self._flush_lock, self._write_lock:
            self.flush()
            yield

    def _intake(self) -> Intake:
        return Intake(
            self._handle.find_external,
            self._store_batch,
            self._config["limits"]["max_turn_chars"],
            self._part.assess,
        )

    def _readers(self, workers: int = 1) -> Readers:
        """Threads that analyse with this memory's models, or processes with their own.

        With 0 workers it is done in the calling thread.
        """
        if workers == 0:
            from ebbtide.analysis.ahead import HereReaders

            return HereReaders(self._analyser)
        if workers == 1:
            from ebbtide.analysis.ahead import ThreadReaders

            return ThreadReaders(self._analyser)
        from ebbtide.analysis.processes import ProcessReaders

        return ProcessReaders(
            self._config["nlp"],
            embedder=self._config.embedder,
            cards=bool(self._config["retrieval"]["enable_card_semantic"]),
            workers=workers,
        )

    @observed("store")
    def _store_batch(self, batch: list[tuple[Any, ...]]) -> WriteReport:
        reports = [self._store_part(part) for part in self._part.parts(batch)]
        return WriteReport.total(reports)

    def _store_part(self, part: list[tuple[Any, ...]]) -> WriteReport:
        with self._exclusively():
            report = self._handle.add(part)
            self._graphs.settle()
        # Readers need not wait for a language model; whoever writes next does.
        with self._write_lock:
            self._part.settle(self._handle)
        return WriteReport._from_core(report)

    @observed("relate")
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
        checked_text("relation", relation)
        with self._exclusively():
            newer, older = interaction_id_of(newer), interaction_id_of(older)
            return WriteReport._from_core(self._handle.relate(newer, relation, older))

    @observed("delete")
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
        with self._exclusively():
            self._handle.delete(self._resolve(interaction_id, external_id))
            self._graphs.settle()

    @observed("delete_all")
    def delete_all(self) -> None:
        """Erase every turn of this memory; others in the store are untouched."""
        with self._exclusively():
            self._handle.delete_all()
            self._graphs.forget()

    @observed("forget")
    def forget(
        self,
        query_text: str | None = None,
        *,
        ids: Iterable[int | str] | int | str | None = None,
        limit: int = 1,
        before: Any = None,
        dry_run: bool = False,
    ) -> list[Turn]:
        """Erase turns that are described rather than named, as :meth:`delete` erases one.

        All of them go, or after an error none.

        Args:
            query_text: Those that answer a question, as :meth:`retrieve` finds them.
                It finds something for any question: try it with ``dry_run`` first.
            ids: Or those of these ids; a text is taken for an external id.
            limit: With a question, how many at most.
            before: Only those whose own time is earlier; one without a time stays.
                Alone, every such turn.
            dry_run: Erase nothing.

        Returns:
            The turns that went, or would go, in id order.

        Raises:
            InputError: If nothing says which turns, or a question and ids both do.
            NotFoundError: If there is no turn of an id.
        """
        from ebbtide.forgetting import meant

        with self._exclusively():
            return self._erase(meant(self, query_text, ids, limit, before), dry_run)

    @observed("retain")
    def retain(
        self,
        *,
        max_age: Any = None,
        max_records: int | None = None,
        now: Any = None,
        dry_run: bool = False,
    ) -> list[Turn]:
        """Erase what is older or more than is to be kept; only ever when asked.

        First the turns that are too old go, by their own time and not by when they
        were stored; then of the rest the first ones in id order. Active turns go as
        archived ones do.

        Args:
            max_age: Greatest age, a ``timedelta`` or seconds; a turn without a time
                has none.
            max_records: Most turns that stay, at least 1.
            now: The moment that age is reckoned from; needed with ``max_age``, since
                a memory asks no clock.
            dry_run: Erase nothing.

        Returns:
            The turns that went, or would go, in id order.

        Raises:
            InputError: If there is no rule, or ``now`` is missing.
        """
        from ebbtide.forgetting import outlived

        with self._exclusively():
            return self._erase(outlived(self, max_age, max_records, now), dry_run)

    def _erase(self, turns: list[Turn], dry_run: bool) -> list[Turn]:
        if turns and not dry_run:
            self._handle.delete_many([int(t.interaction_id or 0) for t in turns])
            self._graphs.settle()
        return turns

    @observed("reindex")
    def reindex(self, *, progress: Callable[[int], None] | None = None) -> int:
        """Rebuild everything derived with the current models and settings.

        Returns the number of turns read anew. Resumable: a memory that was
        interrupted goes on at its next use.
        """
        with self._flush_lock:
            with self._write_lock:
                self._handle.begin_reindex()
                self._graphs.forget()
            return self._drain(progress)

    def flush(self) -> None:
        """Wait until every journalled turn is analysed and taken in."""
        self._handle.check_process()
        if not self._read_only:
            with self._flush_lock:
                self._drain()

    def _drain(self, progress: Callable[[int], None] | None = None) -> int:
        done = 0

        def note(turns: int) -> None:
            nonlocal done
            done += turns
            if progress is not None:
                progress(done)

        self._part.settle_leftovers(self._handle, self._write_lock)
        while pending := self._handle.pending():
            self._complete(pending, note)
        return done

    @observed("flush")
    def _complete(self, pending: list[int], note: Callable[[int], None]) -> WriteReport:
        """Analyse journalled turns and take them in; ``note`` gets the size of each batch."""
        reports: list[WriteReport] = []
        turns = ((number, stored_input(self._handle.get(number))) for number in pending)
        known = set(self._handle.assessed()) if self._part.judges else set()
        assess = partial(self._part.assess_pending, known)
        with closing(self._readers()) as readers:
            for batch in analysed(turns, readers, assess):
                with self._write_lock:
                    for part in self._part.parts(batch):
                        report = self._handle.complete_pending(part)
                        reports.append(WriteReport._from_core(report))
                        self._part.settle(self._handle)
                    self._graphs.settle()
                note(len(batch))
        return WriteReport.total(reports)

    # Reading

    @observed("recall")
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
        asked = self._asking.ask(query_text, limit, query_time, preset, filters)
        ruled = overruled(self._asking.ruling(asked))
        found = self._handle.recall(asked.query, trace=False, overruled=ruled, **asked.options)
        evidence = [RetrievedEvidence._from_core(row) for row in found["evidence"]]
        if max_tokens is None:
            return evidence
        return _within(evidence, positive("max_tokens", max_tokens))

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

    @observed("render")
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
        ``render.max_tokens`` by default). Evidence is served first, then with
        consolidation on the episodes and facts in their share; active turns get what
        is left, newest first, printed in order.

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
        asked = self._asking.ask(query_text, limit, query_time, preset, filters)
        if max_tokens is not None:
            max_tokens = positive("max_tokens", max_tokens)
        text, shown, tokens = self._handle.render(
            asked.query,
            max_tokens=max_tokens,
            include_active=include_active,
            overruled=overruled(self._asking.ruling(asked)),
            **asked.options,
        )
        return RenderedContext(text, tuple(shown), tokens)

    @observed("trace")
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
        asked = self._asking.ask(query_text, limit, query_time, preset, filters)
        if answer is not None:
            answer = checked_text("answer", answer)
        ruling = self._asking.ruling(asked, answers=True)
        ruled = overruled(ruling, answer)
        found = self._handle.recall(asked.query, trace=True, overruled=ruled, **asked.options)
        deliberation = found["deliberation"]
        if deliberation is not None:
            deliberation["llm"] = None if ruling is None else ruling.to_dict()
        return {
            "frame": asked.query[0],
            "candidates": found["candidates"],
            "evidence": [RetrievedEvidence._from_core(row).to_dict() for row in found["evidence"]],
            "deliberation": deliberation,
        }

    def turns(self, *, state: str | None = None, first: int = 0) -> Iterator[Turn]:
        """Stored turns in id order, optionally only ``active`` or ``archived`` ones.

        Args:
            state: ``active``, ``archived`` or None for both.
            first: The interaction id to begin with.
        """
        if state not in (None, "active", "archived"):
            message = f'state must be "active" or "archived", not {shown(state)}'
            raise InputError(message, "input.field")
        first = interaction_id_of(first)
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

    def export(self, path: str | Path) -> int:
        """Write the whole memory to a file of JSON Lines that :meth:`Store.load` reads.

        Turns, lineage, decisions and everything derived: nothing is computed anew when
        it is loaded, and the digest there is the digest here. The file is complete or
        not there at all.

        Returns:
            The number of rows written.

        Raises:
            StoreError: If the file cannot be written.
        """
        self.flush()
        return self._store.export(self._namespace, os.fspath(path))

    def episodes(self) -> list[Episode]:
        """What recurred, gathered; in order of their making.

        Empty unless ``[policy] consolidation`` is ``"recurrence"``.
        """
        self.flush()
        return [Episode._from_core(row) for row in self._handle.episodes()]

    def facts(self, *, superseded: bool = False) -> list[Fact]:
        """Details that the episodes leave out, in order of their making.

        Args:
            superseded: Also those that a later fact took the place of.
        """
        self.flush()
        every = [Fact._from_core(row) for row in self._handle.facts()]
        return [fact for fact in every if superseded or fact.superseded_by is None]

    def unit_cosines(self) -> NDArray[np.float64]:
        """Cosine of every pair of units, float64 [n·(n − 1) / 2].

        What the thresholds of recurrence consolidation are calibrated with; empty
        unless it is on.
        """
        self.flush()
        return self._handle.unit_cosines()

    def stats(self) -> dict[str, Any]:
        """The memory in numbers: turns by state, tiers, tokens, decisions, graph segments."""
        found: dict[str, Any] = self._handle.stats()
        found["graph"] = self._graphs.state
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
        background, self._background = self._background, None
        # A fork has a copy of the locks, and not the thread.
        if background is not None and not self._handle.forked():
            background.stop()
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.closed()
        self._handle.close()
        self._analyser.close()
        if self._owns_store:
            self._store.close()

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
        return interaction_id_of(interaction_id)


def _config(config: Config | str | Path | None) -> Config:
    if config is None:
        return Config()
    return config if isinstance(config, Config) else Config.load(config)


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
