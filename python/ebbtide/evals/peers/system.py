"""The DMF paper's own package, ``dmf-memory``, under the harness.

It gets the text of each turn as the harness's other systems do, "Speaker: text", the
speaker as the turn's role and the session's date as its time, as its authors' benchmark
gives them, and the weights of ebbtide's embedding model. What it retrieves is taken as it
prints it: the winners in order, then the turns that support them.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ebbtide import _core
from ebbtide.errors import InputError
from ebbtide.evals.datasets import Conversation, DatasetTurn, Question
from ebbtide.evals.peers.install import PeerEnvironment, open_environment
from ebbtide.evals.peers.protocol import PeerProcess
from ebbtide.evals.system import Context, Ranking

__all__ = ["PEERS", "DmfMemory", "open_dmf"]

PEERS = ("dmf-memory", "dmf-memory-5", "dmf-memory-20")
"""The DMF authors' package: as they set it for these datasets, with its own defaults,
and as for the datasets with 20 pieces of evidence."""

_Settings = dict[str, dict[str, Any]]

_WORKER = Path(__file__).with_name("worker_dmf.py")
_COUNTER = "cl100k_base"
_BATCH = 16

_OPEN_SECONDS = 300.0
_TURN_SECONDS = 60.0
# Past 4,096 records one recall was seen to take more than two minutes.
_RECALL_SECONDS = 900.0
_STATS_SECONDS = 60.0

# The settings file of its repository, which the wheel does not carry; what is not
# here has the same value in its code.
_DEFAULTS: _Settings = {
    "nlp": {
        "spacy_model": "en_core_web_sm",
        "model_name": "BAAI/bge-small-en-v1.5",
        "vector_dim": 384,
    },
    "scoring_weights": {
        "gamma_sentiment": 0.2,
        "delta_technical": -2.5,
        "user_correction_boost": 0.15,
        "preference_update_boost": 0.10,
        "constraint_boost": 0.10,
    },
    "memory_tiers": {"healthy_min": 0.75},
    "ltm": {"storage_type": "chroma"},
    "retrieval": {"final_recall_limit": 5},
}

# What its authors' benchmark changes for both datasets, and for each.
_BENCHMARK: _Settings = {
    "temporal_decay": {
        "lambda_base": 0.030,
        "inertia_strength": 0.55,
        "hard_kill_threshold": 0.04,
    },
    "capacity": {"pruning_frequency_x": 3},
    "ltm": {"cards_enabled": True},
    "retrieval": {"max_support_turns_per_card": 4, "include_neighbor_turns": True},
}
_LOCOMO: _Settings = {
    "ltm": {"recall_limit": 8},
    "retrieval": {"symbolic_lookup_k": 20, "final_recall_limit": 8},
}
_LONGMEMEVAL: _Settings = {
    "ltm": {"recall_limit": 10, "distance_threshold": 0.85},
    "retrieval": {
        "card_prefetch_k": 40,
        "raw_prefetch_k": 64,
        "symbolic_lookup_k": 40,
        "final_recall_limit": 10,
    },
}


def peer_settings(name: str, *, speakers: bool) -> _Settings:
    """The peer's settings for one of :data:`PEERS`.

    Args:
        name: Which.
        speakers: Whether the turns have speakers (LoCoMo) or only roles (LongMemEval).

    Raises:
        InputError: ``input.field``: no peer has that name.
    """
    if name not in PEERS:
        message = f"there is no peer {name!r}; choose from {', '.join(PEERS)}"
        raise InputError(message, "input.field")
    if name == "dmf-memory-5":
        return _merged(_DEFAULTS)
    dataset = _LOCOMO if speakers else _LONGMEMEVAL
    last: _Settings = {} if name == "dmf-memory" else {"retrieval": {"final_recall_limit": 20}}
    return _merged(_DEFAULTS, _BENCHMARK, dataset, last)


def _merged(*layers: _Settings) -> _Settings:
    result: _Settings = {}
    for layer in layers:
        for section, values in layer.items():
            result.setdefault(section, {}).update(values)
    return result


@contextmanager
def open_dmf(
    name: str,
    conversation: Conversation,
    environment: PeerEnvironment | Path,
    *,
    named_text: bool = True,
    model: Path | None = None,
) -> Iterator[DmfMemory]:
    """The peer, after it has taken in a conversation.

    Args:
        name: One of :data:`PEERS`.
        conversation: What it takes in.
        environment: Its environment, or the directory of a prepared one.
        named_text: Whether turns read "Speaker: text", as for the other systems; it
            finds more with it. If not, the speaker is only the turn's role, as its
            authors do it.
        model: Another embedding model than its environment's: a directory with
            ``model.onnx`` and ``tokenizer.json``, such as its fp32 form for timings.

    Raises:
        InputError: ``input.field``: no peer has that name.
        PeerUnavailableError: There is no prepared environment in that directory.
        PeerError: It failed, fell silent or ended.
    """
    chosen = peer_settings(name, speakers=bool(conversation.speakers))
    if isinstance(environment, Path):
        environment = open_environment(environment)
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        open_worker(environment, Path(folder), chosen, model=model) as process,
    ):
        yield DmfMemory(process, conversation.turns, named_text=named_text)


@contextmanager
def open_worker(
    environment: PeerEnvironment,
    workspace: Path,
    chosen: _Settings,
    *,
    model: Path | None = None,
) -> Iterator[PeerProcess]:
    """The peer's process, ready for turns; ended on the way out.

    Args:
        environment: Its environment.
        workspace: Where it keeps its files and its log.
        chosen: Its settings.
        model: Another embedding model than its environment's.

    Raises:
        PeerError: It failed, fell silent or ended.
    """
    # Its own folder is not to be searched for modules: one there could hide the peer's.
    command = [str(environment.python), "-P", str(_WORKER)]
    with PeerProcess(command, workspace / "log.txt", env=environment.variables()) as process:
        process.ask(
            "open",
            _OPEN_SECONDS,
            model=str(model or environment.model),
            workspace=str(workspace),
            settings=chosen,
        )
        yield process


class DmfMemory:
    """A running peer; satisfies the harness's ``System``."""

    def __init__(
        self, process: PeerProcess, turns: Sequence[DatasetTurn], *, named_text: bool = True
    ) -> None:
        """Have it take in turns.

        Args:
            process: A worker that was told to open.
            turns: What it takes in at once, in this order; may be empty.
            named_text: Whether the text begins with the speaker's name.

        Raises:
            PeerError: It failed, fell silent or ended.
        """
        self._process = process
        self._named_text = named_text
        self.ingest(turns)

    def ingest(self, turns: Sequence[DatasetTurn]) -> None:
        """Have it take in more turns, in this order.

        Args:
            turns: With external ids that it was not given before.

        Raises:
            PeerError: It failed, fell silent or ended.
        """
        for start in range(0, len(turns), _BATCH):
            some = [_message(turn, self._named_text) for turn in turns[start : start + _BATCH]]
            self._process.ask("add", _TURN_SECONDS * len(some), turns=some)

    def rank(self, question: Question, limit: int) -> Ranking:
        """The turns of its evidence, winners first, then their supporting turns.

        Their number is its own to say, so there may be fewer than ``limit``. Its score
        has no fixed range and is no confidence.
        """
        found = self._process.ask("recall", _RECALL_SECONDS, question=question.text, limit=limit)
        return Ranking([str(one) for one in found["ids"]])

    def context(self, question: Question, max_tokens: int) -> Context:
        """Its own rendering, cut to as many pieces, in its order, as fit the budget."""
        found = self._process.ask(
            "context", _RECALL_SECONDS, question=question.text, max_tokens=max_tokens
        )
        text = str(found["text"])
        return Context(text, _core.count_tokens(text, _COUNTER), frozenset(found["ids"]))

    def facts(self) -> Mapping[str, Any]:
        """What the harness asks for, of the peer's process alone, and seconds inside it.

        ``ingest_s`` is without its start; ``peer_seconds`` has, for each operation,
        how often it was done (an ``add`` is a batch), the sum and the median.
        """
        stats = self._process.ask("stats", _STATS_SECONDS)
        seconds = {
            op: {"count": len(one), "sum": sum(one), "median": statistics.median(one)}
            for op, one in sorted(self._process.seconds.items())
        }
        return {
            "llm_tokens": 0,
            "rss_mb": stats["rss_mb"],
            "active": stats["active"],
            "archived": stats["archived"],
            "ingest_s": sum(self._process.seconds.get("add", [])),
            "peer_seconds": seconds,
        }


def _message(turn: DatasetTurn, named_text: bool) -> dict[str, Any]:
    named = named_text and turn.speaker
    return {
        "id": turn.external_id,
        "text": f"{turn.speaker}: {turn.text}" if named else turn.text,
        "role": (turn.speaker or turn.role).lower(),
        "timestamp": turn.timestamp.timestamp(),
    }
