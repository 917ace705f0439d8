"""The facade: one memory, its turns, its answers."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebbtide import _core
from ebbtide.ann import Graphs
from ebbtide.closing import Closing
from ebbtide.config import PRESETS, Config
from ebbtide.errors import InputError
from ebbtide.forgetting import meant, outlived
from ebbtide.inputs import checked_text, interaction_id_of, positive, prepare
from ebbtide.mappings import turns_of
from ebbtide.messages import shown
from ebbtide.observing import Watch, observed
from ebbtide.opened import Opened, open_handle, settings_of
from ebbtide.pipeline import BATCH
from ebbtide.reading import Reading
from ebbtide.threads import amid_work
from ebbtide.types import Turn, WriteReport
from ebbtide.writing import Writing

if TYPE_CHECKING:
    from ebbtide.llm.seam import JsonModel

__all__ = ["Memory"]


class Memory(Reading, Closing):
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
        analyser = Analyser(config["nlp"], embedder=config.embedder, cards=cards)
        handle = _core.MemoryHandle(
            store,
            namespace,
            config=config.to_json(),
            presets={name: config.on_preset(name).to_json() for name in PRESETS},
            analyser=analyser.fingerprint,
            reindexing=reindexing,
        )
        graphs = Graphs(handle, namespace, store.path(), config["retrieval"])
        if not read_only:
            graphs.sweep()
        self._store = store
        self._owns_store = owns_store
        self._closed = False
        self._close_lock = threading.RLock()
        self._llm = llm
        opened = Opened(handle, analyser, graphs, config, Watch(namespace), not read_only, llm)
        self._writing = Writing(opened)
        super().__init__(opened, self._writing.flush)

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
            read_only: Take no lock: another process may write meanwhile. Recall sees
                what was there when it was opened, without what was erased since;
                :meth:`turns` and :meth:`export` read the rows as they are now, and
                :meth:`digest` mixes both. Open it anew to see what came since.
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
        settings = settings_of(config)
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
        """A memory that ends with the process; ``llm`` as for :meth:`open`.

        Raises:
            ConfigError: If the configuration is unusable or a model is missing.
        """
        handle = _core.StoreHandle(None, read_only=False, holder="", synchronous_full=False)
        return cls(handle, "default", settings_of(config), owns_store=True, llm=llm)

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
                without a zone it is read as UTC. Dates in the text are counted from its
                day in the offset that it has.
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
        turn = Turn(text, role, speaker, timestamp, session_id, external_id, provenance, metadata)
        return self._added(turn, wait)

    @observed("add")
    def _add_numbered(self, turn: Turn, wait: str, numbers: list[int]) -> WriteReport:
        """As ``add``; ``numbers`` gets the turn's id, whoever else writes meanwhile."""
        return self._added(turn, wait, numbers)

    def _added(self, turn: Turn, wait: str, numbers: list[int] | None = None) -> WriteReport:
        if wait not in ("complete", "journalled"):
            message = f'wait must be "complete" or "journalled", not {shown(wait)}'
            raise InputError(message, "input.field")
        prepared = prepare(turn, max_chars=self._config["limits"]["max_turn_chars"])
        if prepared is None:
            return WriteReport()
        if wait == "journalled":
            return self._writing.journal(prepared, numbers)
        return self._writing.add(prepared, numbers)

    @observed("add_many")
    def add_many(
        self,
        turns: Iterable[Turn | Mapping[str, Any]],
        *,
        progress: Callable[[int], None] | None = None,
        batch_size: int = BATCH,
    ) -> WriteReport:
        """Store turns in order, in batches; the iterable is streamed, never held whole.

        The result is the same as adding them one by one. Other writers wait for its end;
        who reads meanwhile finds what was stored so far, and the iterable may do so itself.

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
        return self._writing.add_many(turns_of(turns), progress, batch_size)

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
        with self._writing.exclusively():
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

        What is left is related as if the turn had never been there: what it superseded
        stands again, unless a third turn supersedes that.

        The file and its write-ahead log have nothing of it when this returns. Only where
        another process has the store open and reads an earlier state of it all the while,
        for more than five seconds, the log keeps the text: until the first write that finds
        the reading over, or until the store is closed, whichever is first. The logger
        ``ebbtide.erasing`` warns of it.

        An archive file (``ltm.storage_type = "file"``) is a trail that is only appended to:
        lines that were written there stay, and are yours to delete.

        Args:
            interaction_id: Its interaction id (a text is taken for an external id).
            external_id: Or your own id of it.

        Raises:
            InputError: If both are given, or neither.
            NotFoundError: If there is no such turn.
        """
        with self._writing.exclusively():
            self._writing.erase([self._resolve(interaction_id, external_id)])

    @observed("delete_all")
    def delete_all(self) -> None:
        """Erase every turn of this memory; others in the store are untouched.

        What :meth:`delete` says of other copies of an erased text holds here, too.
        """
        self._writing.erase_all()

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
        """Erase the turns that match a question, ids or a time, as :meth:`delete` erases one.

        If an error occurs, none are erased. What :meth:`delete` says of other copies of an
        erased text holds here, too.

        Args:
            query_text: Erase the turns that best answer this question. Something answers
                any question: try it with ``dry_run`` first.
            ids: Or the turns of these ids; a text is taken for an external id.
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
        with self._writing.exclusively():
            turns = meant(self, query_text, ids, limit, before)
            if not dry_run:
                self._writing.erase(_ids(turns))
            return turns

    @observed("retain")
    def retain(
        self,
        *,
        max_age: Any = None,
        max_records: int | None = None,
        now: Any = None,
        dry_run: bool = False,
    ) -> list[Turn]:
        """Erase turns beyond a greatest age or number; nothing else ever calls this.

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
        with self._writing.exclusively():
            turns = outlived(self, max_age, max_records, now)
            if not dry_run:
                self._writing.erase(_ids(turns))
            return turns

    @observed("reindex")
    def reindex(self, *, progress: Callable[[int], None] | None = None) -> int:
        """Rebuild everything derived with the current models and settings.

        Returns the number of turns read anew. Resumable: a memory that was
        interrupted goes on at its next use. An archive file
        (``ltm.storage_type = "file"``) gets the lines that it lacks.
        """
        return self._writing.reindex(progress)

    def flush(self) -> None:
        """Wait until every journalled turn is analysed and taken in."""
        self._writing.flush()

    # Keeping

    def export(self, path: str | Path) -> int:
        """Write the whole memory to a file of JSON Lines that :meth:`Store.load` reads.

        Turns, lineage, decisions and everything derived: nothing is computed anew when
        it is loaded, and the digest there is the digest here. The file is complete or
        not there at all; it takes the place of an earlier export and of nothing else.

        Returns:
            The number of rows written.

        Raises:
            StoreError: If the file cannot be written, or is something else than an export.
        """
        self.flush()
        return self._store.export(self.namespace, os.fspath(path))

    def close(self) -> None:
        """Finish what is pending and free the store; closing twice is harmless.

        An interrupt ends the waiting, and so does a signal's handler that calls this amid
        another call of the same thread: what is journalled then is safe, and analysed after
        the next opening.
        """
        amid = amid_work()
        # Who comes second waits until it is done. A fork may have a copy of the lock that
        # is held for ever.
        with nullcontext() if self._handle.forked() else self._close_lock, ExitStack() as ending:
            self._closed = True
            if self._owns_store:
                ending.callback(self._store.close)
            if not amid:
                ending.callback(self._analyser.close)
            ending.callback(self._handle.close)
            ending.callback(self._watch.close)
            self._writing.stop(finish=not amid)


def _ids(turns: list[Turn]) -> list[int]:
    return [int(turn.interaction_id or 0) for turn in turns]
