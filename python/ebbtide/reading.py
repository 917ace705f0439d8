"""How a memory is read: what answers a question, and what is stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ebbtide.asking import Asking, overruled
from ebbtide.errors import NotFoundError
from ebbtide.inputs import checked_text, positive, turn_named, turns_asked
from ebbtide.observing import observed
from ebbtide.opened import PAGE
from ebbtide.threads import in_passing
from ebbtide.types import Episode, Fact, RenderedContext, RetrievedEvidence, Turn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ebbtide.config import Config
    from ebbtide.opened import Opened

__all__ = ["Reading"]


class Reading:
    """The read-only methods of a memory."""

    def __init__(self, opened: Opened, flush: Callable[[], None]) -> None:
        """Read an open memory.

        Args:
            opened: The memory.
            flush: Called before a read, so that everything added is there.
        """
        self._handle = opened.handle
        self._analyser = opened.analyser
        self._graphs = opened.graphs
        self._config = opened.config
        self._watch = opened.watch
        self._flush = flush
        self._asking = Asking(opened, flush)

    @property
    def config(self) -> Config:
        """The configuration it was opened with."""
        return self._config

    @property
    def namespace(self) -> str:
        """The memory's name within its store."""
        return self._watch.namespace

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
            query_time: When it is asked, for "last week" and the like, which count from
                its day in the offset that it has; the newest turn's time by default,
                never the machine's clock. Turns later than it are still found.
            preset: ``"default"`` or ``"paper"``; the memory's own by default.
            filters: ``role``, ``speaker``, ``session_id``, ``since``, ``until``,
                ``metadata`` (a mapping of fields that must be equal, as JSON has it:
                1 is 1.0, and True is not). What supports evidence meets them too.

        Raises:
            InputError: If the question or an argument is unusable.
        """
        asked = self._asking.ask(query_text, limit, query_time, preset, filters)
        if max_tokens is not None:
            max_tokens = positive("max_tokens", max_tokens)
        ruled = overruled(self._asking.ruling(asked))
        found = self._handle.recall(asked.query, trace=False, overruled=ruled, **asked.options)
        evidence = [RetrievedEvidence._from_core(row) for row in found["evidence"]]
        return evidence if max_tokens is None else _within(evidence, max_tokens)

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
            filters: What the evidence must match; the active conversation is shown
                whatever they are.

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
            ``duplicate``, ``cut`` (past the limit), ``first_stage`` (not read: others
            were nearer), ``shadow`` (the gate's fallback), or the filter that dropped it.
            ``deliberation`` is None where the policy is off, else what its gates saw,
            whether the question escalated, what the scan of the history found, and
            under ``llm`` what a language model did.

        Raises:
            InputError: If the question or an argument is unusable.
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
            if ruling is not None and ruling.facts is not None:
                deliberation["scan"] |= ruling.read
        return {
            "frame": asked.query[0],
            "candidates": found["candidates"],
            "evidence": [RetrievedEvidence._from_core(row).to_dict() for row in found["evidence"]],
            "deliberation": deliberation,
        }

    def turns(
        self,
        *,
        state: str | None = None,
        first: int = 0,
        metadata: Mapping[str, Any] | None = None,
    ) -> Iterator[Turn]:
        """Stored turns in id order, optionally only ``active`` or ``archived`` ones.

        Args:
            state: ``active``, ``archived`` or None for both.
            first: The interaction id to begin with.
            metadata: Only turns whose metadata has these values in these fields. They are
                looked up, not read through.

        Raises:
            InputError: For another state, an unusable id or condition.
        """
        first, wanted = turns_asked(state, first, metadata)
        archived = None if state is None else state == "archived"
        while page := self._handle.page(first, PAGE, archived, wanted):
            yield from map(Turn._from_core, page)
            first = page[-1]["interaction_id"] + 1

    def get(
        self, interaction_id: int | str | None = None, *, external_id: str | None = None
    ) -> Turn:
        """One stored turn, by interaction id or external id, one of them.

        Raises:
            InputError: If both are given, or neither.
            NotFoundError: If there is no such turn.
        """
        return Turn._from_core(self._handle.get(self._resolve(interaction_id, external_id)))

    def history(
        self, interaction_id: int | str | None = None, *, external_id: str | None = None
    ) -> list[Turn]:
        """The turns that a turn is related to by lineage, itself included, in id order.

        Raises:
            InputError: If both ids are given, or neither.
            NotFoundError: If there is no such turn.
        """
        rows = self._handle.history(self._resolve(interaction_id, external_id))
        return [Turn._from_core(row) for row in rows]

    def explain(
        self, interaction_id: int | str | None = None, *, external_id: str | None = None
    ) -> dict[str, Any]:
        """The life of one turn: signals, score terms, decisions, lineage, where it stands.

        Returns:
            ``turn`` (as stored), ``signals`` (what was read in it), ``cards``, ``score``
            (the terms of Ω, eq. 8-12), ``now`` (state, tier, effective score, half-life),
            ``newer`` and ``older`` (relations of lineage), ``decisions`` in their order;
            with the policies on ``gate`` and ``recurrence``. Of a turn that is still to be
            analysed only ``turn`` and ``analysis``: ``"pending"``.

        Raises:
            InputError: If both ids are given, or neither.
            NotFoundError: If there is no such turn.
        """
        found: dict[str, Any] = self._handle.explain(self._resolve(interaction_id, external_id))
        metadata = found["turn"]["metadata"]
        found["turn"]["metadata"] = None if metadata is None else json.loads(metadata)
        return found

    def episodes(self) -> list[Episode]:
        """The episodes, oldest first: what recurred, gathered.

        Empty unless ``[policy] consolidation`` is ``"recurrence"``.
        """
        self._flush()
        return [Episode._from_core(row) for row in self._handle.episodes()]

    def facts(self, *, superseded: bool = False) -> list[Fact]:
        """Details that the episodes leave out, oldest first.

        Args:
            superseded: Also those that a later fact took the place of.
        """
        self._flush()
        every = [Fact._from_core(row) for row in self._handle.facts()]
        return [fact for fact in every if superseded or fact.superseded_by is None]

    def unit_cosines(self) -> NDArray[np.float64]:
        """Cosine of every pair of units, float64 [n·(n − 1) / 2].

        What the thresholds of recurrence consolidation are calibrated with; empty
        unless it is on.
        """
        self._flush()
        return self._handle.unit_cosines()

    def stats(self) -> dict[str, Any]:
        """The memory in numbers.

        Returns:
            ``namespace``; ``turns``, of them ``active``, ``archived`` and ``pending`` (still
            to be analysed); ``next_id``; ``active_tokens``, ``token_budget``,
            ``over_budget_tokens``; ``tiers``, ``validity`` and ``decisions`` as counts by
            name; ``relations``, ``cards``, ``vectors``; the fingerprints ``analyser`` and
            ``token_counter``; ``graph``; with the policies on ``gate``, ``recurrence``, ``llm``.
        """
        found: dict[str, Any] = self._handle.stats()
        found["graph"] = self._graphs.state
        return found

    def digest(self) -> str:
        """SHA-256 of the logical state, in hex: equal whenever the same turns went in."""
        self._flush()
        return self._handle.digest()

    def count_tokens(self, text: str) -> int:
        """Tokens of a text by this memory's counter.

        Raises:
            InputError: If it is no text, or no valid Unicode.
        """
        return self._handle.count_tokens(checked_text("text", text))

    def __len__(self) -> int:
        """Number of stored turns."""
        return self._handle.len()

    def warm_up(self, *, wait: bool = True) -> None:
        """Load the models and compile the rules now rather than at the first turns.

        Args:
            wait: False returns at once and does it in a thread meanwhile; what goes wrong
                there is told by the first turn or question.

        Raises:
            ConfigError: If a model is not installed.
        """
        if wait:
            self._analyser.warm_up()
        else:
            in_passing(partial(self._analyser.warm_up, beside_others=True))

    def _resolve(self, interaction_id: int | str | None, external_id: str | None) -> int:
        named = turn_named(interaction_id, external_id)
        if isinstance(named, int):
            return named
        found = self._handle.find_external(named)
        if found is None:
            raise NotFoundError(f"there is no turn with external id {named!r}", "not_found.turn")
        return found


def _within(evidence: list[RetrievedEvidence], max_tokens: int) -> list[RetrievedEvidence]:
    """The best whole turns that fit together; one that is too long is passed over."""
    kept: list[RetrievedEvidence] = []
    left = max_tokens
    for item in evidence:
        tokens = item.turn.tokens or 0
        if tokens <= left:
            left -= tokens
            kept.append(replace(item, rank=len(kept) + 1))
    return kept
