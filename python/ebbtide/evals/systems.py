"""Systems that remember a conversation and answer from it, under one interface.

All of them see the same text, "Speaker: text", and the dense ones the same
embedding model. What a system has no rendering of its own for is printed one line
a turn, as ebbtide prints it, best first, whole turns only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ebbtide import _core
from ebbtide.config import PRESETS, Config
from ebbtide.errors import InputError
from ebbtide.evals.datasets import Conversation, DatasetTurn, Question
from ebbtide.evals.peers.system import PEERS
from ebbtide.evals.system import Context, Ranking, System
from ebbtide.memory import Memory

__all__ = [
    "PEERS",
    "POLICIES",
    "READERS",
    "SYSTEMS",
    "Context",
    "Options",
    "Ranking",
    "System",
    "check_system",
    "evidence_limit",
    "open_system",
    "take_in",
    "warm_up",
]

SYSTEMS = ("full", "last_n", "bm25", "dense", "rrf", "paper", "default")
"""Names that :func:`open_system` knows, in the order of reports; and :data:`POLICIES`,
:data:`PEERS`."""

POLICIES: Mapping[str, tuple[str, Mapping[str, Mapping[str, Any]]]] = {
    "rpe": ("default", {"policy": {"gate": "rpe"}}),
    "rpe-paper": ("paper", {"policy": {"gate": "rpe"}, "retrieval": {"fusion": "rrf"}}),
    "recurrence": ("default", {"policy": {"consolidation": "recurrence"}}),
    "deliberate": ("default", {"policy": {"deliberation": "quality"}}),
    "majority": ("default", {"policy": {"deliberation": "majority"}}),
    "consensus": ("default", {"policy": {"deliberation": "consensus"}}),
}
"""Presets with a policy switched on, by name: the preset, and what is changed.

``rpe`` is the RPE gate before the default ranking, ``rpe-paper`` with the D-MEM paper's
own recall; ``recurrence`` gathers what recurs; the others scan the whole history for
questions that the first answer does not settle."""

READERS = ("dense", "rrf", *PRESETS, *POLICIES)
"""Systems that read turns with ebbtide's analyser, from its cache where there is one."""

_BATCH = 256
_COUNTER = "cl100k_base"
_FUSION = 60
"""k of reciprocal rank fusion (Cormack et al. 2009)."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a system is opened with.

    Attributes:
        changes: Settings on top of the preset, for ebbtide's systems.
        cache: An analysis cache, or None.
        peer: Directory of a peer's prepared environment, or None.
    """

    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    cache: Path | None = None
    peer: Path | None = None

    def config(self, preset: str) -> Config:
        """The configuration of an ebbtide system; the cache is not part of what is measured."""
        preset, policy = POLICIES.get(preset, (preset, {}))
        config = Config(preset, policy).replace(**self.changes)
        if self.cache is None:
            return config
        return config.replace(nlp={"analysis_cache": str(self.cache)})


@contextmanager
def open_system(name: str, conversation: Conversation, options: Options) -> Iterator[System]:
    """A system that has taken in a conversation.

    Args:
        name: ``full`` (the whole transcript), ``last_n`` (the newest turns),
            ``bm25`` (stemmed, bm25s), ``dense`` (cosine of the default embedding
            model), ``rrf`` (reciprocal rank fusion of the two), ``paper`` and
            ``default`` (ebbtide with that preset), one of :data:`POLICIES`, or one
            of :data:`PEERS`.
        conversation: What it takes in.
        options: Settings.

    Raises:
        InputError: As :func:`check_system` does.
    """
    check_system(name, options)
    if name in PRESETS or name in POLICIES:
        with Memory.in_memory(config=options.config(name)) as memory:
            take_in(memory, conversation)
            yield _Ebbtide(memory)
    elif name in PEERS:
        from ebbtide.evals.peers import open_dmf

        assert options.peer is not None  # checked
        with open_dmf(name, conversation, options.peer) as peer:
            yield peer
    elif name == "full":
        yield _Full(conversation)
    else:
        yield _Listed(conversation, _RANKERS[name](conversation, options))


def check_system(name: str, options: Options) -> None:
    """Refuse what :func:`open_system` could not open.

    Raises:
        InputError: ``input.field``: no system has that name, or it needs a directory that
            is not named.
    """
    if name in PEERS:
        if options.peer is None:
            message = f"{name} runs in an environment of its own; name its directory with --peer"
            raise InputError(message, "input.field")
    elif name not in (*SYSTEMS, *POLICIES):
        message = f"there is no system {name!r}; choose from {', '.join((*SYSTEMS, *POLICIES))}"
        raise InputError(message, "input.field")


def take_in(memory: Memory, conversation: Conversation) -> None:
    """Store a conversation's turns."""
    memory.add_many((turn.as_turn() for turn in conversation.turns), batch_size=_BATCH)


def evidence_limit(max_tokens: int) -> int:
    """How many turns a memory is asked for to fill a context of so many tokens.

    More than ever fit, as a line has ten tokens at least: the budget decides, not the
    number of turns that a preset returns by itself.
    """
    return max(10, max_tokens // 10)


def warm_up(name: str, options: Options) -> None:
    """Load what a system shares with the others of its process, which is no part of its speed."""
    if name in READERS:
        from ebbtide.analysis.analyser import Analyser

        # The cache would answer from the disk and load nothing.
        config = Options(options.changes).config(name if name in PRESETS else "default")
        Analyser(config["nlp"], embedder=config.embedder).warm_up()


class _Ebbtide:
    """A memory with one of the presets."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._names: dict[int, str] = {}

    def rank(self, question: Question, limit: int) -> Ranking:
        found = self._memory.retrieve(question.text, limit=limit, query_time=question.query_time)
        ids = [str(item.turn.external_id) for item in found]
        return Ranking(ids, found[0].confidence if found else 0.0)

    def context(self, question: Question, max_tokens: int) -> Context:
        found = self._memory.context(
            question.text,
            limit=evidence_limit(max_tokens),
            max_tokens=max_tokens,
            query_time=question.query_time,
            include_active=False,
        )
        return Context(found.text, found.tokens, frozenset(map(self._name, found.shown)))

    def facts(self) -> Mapping[str, Any]:
        return {"llm_tokens": 0, "digest": self._memory.digest()}

    def _name(self, interaction_id: int) -> str:
        if interaction_id not in self._names:
            self._names[interaction_id] = str(self._memory.get(interaction_id).external_id)
        return self._names[interaction_id]


_Rank = Callable[[Question, int], list[int]]
"""Places of the best turns for a question, best first, at most so many."""


class _Listed:
    """A plain ranking, printed one line a turn."""

    def __init__(self, conversation: Conversation, rank: _Rank) -> None:
        self._turns = conversation.turns
        self._rank = rank
        self._lines = [(line := _line(turn), _tokens(line)) for turn in conversation.turns]

    def rank(self, question: Question, limit: int) -> Ranking:
        return Ranking([self._turns[at].external_id for at in self._rank(question, limit)])

    def context(self, question: Question, max_tokens: int) -> Context:
        kept: list[int] = []
        left = max_tokens
        for at in self._rank(question, len(self._turns)):
            needed = self._lines[at][1] + 1  # and the end of the line before
            if needed <= left:
                kept.append(at)
                left -= needed
        text = "\n".join(self._lines[at][0] for at in kept)
        shown = frozenset(self._turns[at].external_id for at in kept)
        return Context(text, _tokens(text), shown)

    def facts(self) -> Mapping[str, Any]:
        return {"llm_tokens": 0}


class _Full:
    """The whole transcript, whatever the budget; it ranks nothing."""

    def __init__(self, conversation: Conversation) -> None:
        text = "\n".join(map(_line, conversation.turns))
        shown = frozenset(turn.external_id for turn in conversation.turns)
        self._context = Context(text, _tokens(text), shown)

    def rank(self, question: Question, limit: int) -> None:
        return None

    def context(self, question: Question, max_tokens: int) -> Context:
        return self._context

    def facts(self) -> Mapping[str, Any]:
        return {"llm_tokens": 0}


def _line(turn: DatasetTurn) -> str:
    said = turn.timestamp
    hour = f"{said.hour % 12 or 12}:{said.minute:02d} {'am' if said.hour < 12 else 'pm'}"
    when = f"{said.day} {said:%B %Y}, {hour}"
    return f"[{when}] {turn.speaker or turn.role}: {turn.text}"


def _tokens(text: str) -> int:
    return _core.count_tokens(text, _COUNTER)


def _spoken(conversation: Conversation) -> list[str]:
    return [f"{t.speaker}: {t.text}" if t.speaker else t.text for t in conversation.turns]


def _last_n(conversation: Conversation, options: Options) -> _Rank:
    count = len(conversation.turns)

    def rank(question: Question, limit: int) -> list[int]:
        return list(range(count - 1, max(-1, count - 1 - limit), -1))

    return rank


def _bm25(conversation: Conversation, options: Options) -> _Rank:
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")

    def tokens(texts: list[str]) -> Any:
        return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)

    count = len(conversation.turns)
    index = bm25s.BM25()
    spoken = tokens(_spoken(conversation))
    if not any(spoken.ids):  # nothing was said, or nothing but stop words
        return lambda question, limit: _best([0.0] * count, limit)
    index.index(spoken, show_progress=False)

    def rank(question: Question, limit: int) -> list[int]:
        scores = _full_scores(index, tokens([question.text]), count)
        return _best(scores, limit)

    return rank


def _full_scores(index: Any, query: Any, count: int) -> list[float]:
    found, scores = index.retrieve(query, k=count, show_progress=False, sorted=False)
    by_place = [0.0] * count
    for at, score in zip(found[0], scores[0], strict=True):
        by_place[int(at)] = float(score)
    return by_place


def _dense(conversation: Conversation, options: Options) -> _Rank:
    import numpy as np

    from ebbtide.analysis.analyser import Analyser

    if not conversation.turns:
        return lambda question, limit: []
    reader = Analyser(options.config("default")["nlp"])
    passages = reader.passages(_spoken(conversation))
    vectors = np.vstack([p.vector for each in passages for p in each]).astype(np.float64)
    starts = np.cumsum([0, *(len(each) for each in passages[:-1])])

    def rank(question: Question, limit: int) -> list[int]:
        scores = vectors @ reader.query_vector(question.text).astype(np.float64)
        # A long turn counts by its nearest passage.
        return _best(np.maximum.reduceat(scores, starts).tolist(), limit)

    return rank


def _rrf(conversation: Conversation, options: Options) -> _Rank:
    parts = [_bm25(conversation, options), _dense(conversation, options)]
    count = len(conversation.turns)

    def rank(question: Question, limit: int) -> list[int]:
        scores = [0.0] * count
        for part in parts:
            for place, at in enumerate(part(question, count), start=1):
                scores[at] += 1.0 / (_FUSION + place)
        return _best(scores, limit)

    return rank


_RANKERS: Mapping[str, Callable[[Conversation, Options], _Rank]] = {
    "last_n": _last_n,
    "bm25": _bm25,
    "dense": _dense,
    "rrf": _rrf,
}


def _best(scores: Sequence[float], limit: int) -> list[int]:
    """Places by score, equal scores in the order of the conversation."""
    return sorted(range(len(scores)), key=lambda at: (-scores[at], at))[:limit]
