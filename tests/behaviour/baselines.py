"""The suite's yardstick: loading, judging, and two plain rankings to beat.

Both rankings see one conversation at a time and score every turn of it. They
know nothing of time, speakers' states or confidence. Run the file to print how
many cases each of them passes::

    python tests/behaviour/baselines.py plain
    python tests/behaviour/baselines.py hard
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CASES",
    "NO_ANSWER_CEILING",
    "Case",
    "bm25_rank",
    "dense_rank",
    "load_cases",
    "main",
    "passes",
]

Case = dict[str, Any]
"""One conversation with its question; the format is in README.md."""

CASES = Path(__file__).parent / "cases"

NO_ANSWER_CEILING = 0.5
"""Where nothing answers, the best evidence must be less sure than this."""

K1, B = 1.2, 0.75

# Function words only: leaving them in would make the yardstick too easy to beat.
_FUNCTION_WORDS = """
    a about after all also am an and any are as at be been before but by can could did do does
    for from had has have he her hers him his how i if in into is it its me my no not of on or our
    out she so than that the their them then there these they this those to too up us was we were
    what when where which who whom whose why will with would you your"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())


class Embedder(Protocol):
    """The part of an embedder that the dense ranking needs."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One vector a text, float32 [n, d]."""
        ...

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a question, float32 [d]."""
        ...


def load_cases(suite: str) -> list[Case]:
    """All cases of a suite, by file name and then in the order of the file."""
    return [
        case
        for path in sorted((CASES / suite).glob("*.json"))
        for case in json.loads(path.read_text(encoding="utf-8"))
    ]


def _spoken(turn: dict[str, Any]) -> str:
    speaker = turn.get("speaker")
    return f"{speaker}: {turn['text']}" if speaker else str(turn["text"])


def _stem(word: str) -> str:
    for suffix in ("ing", "ed", "es", "s"):
        if len(word) > len(suffix) + 3 and word.endswith(suffix) and not word.endswith("ss"):
            return word[: -len(suffix)]
    return word


def _terms(text: str) -> list[str]:
    terms: list[str] = []
    for word in re.findall(r"\w+", text.lower().replace("’", "'").replace("'s", "")):
        # Han and kana are written without spaces, so pairs of characters stand for words.
        if re.search(r"[\u3040-\u30ff\u3400-\u9fff]", word):
            terms.extend(word[i : i + 2] for i in range(max(1, len(word) - 1)))
        elif word not in STOP_WORDS:
            terms.append(_stem(word))
    return terms


def _ranked(case: Case, scores: Sequence[float]) -> list[str]:
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    return [case["turns"][i]["id"] for i in order]


def bm25_rank(case: Case) -> list[str]:
    """All turn ids, best first, by BM25 (k1 1.2, b 0.75) over "Speaker: text".

    Inflections are cut off crudely, function words left out; equal scores keep
    the order of the conversation.
    """
    documents = [Counter(_terms(_spoken(turn))) for turn in case["turns"]]
    lengths = [sum(document.values()) for document in documents]
    average = sum(lengths) / len(lengths) or 1.0
    scores = [0.0] * len(documents)
    for term in sorted(set(_terms(case["question"]))):
        found = sum(term in document for document in documents)
        idf = math.log(1 + (len(documents) - found + 0.5) / (found + 0.5))
        for i, document in enumerate(documents):
            weight = K1 * (1 - B + B * lengths[i] / average)
            scores[i] += idf * document[term] * (K1 + 1) / (document[term] + weight)
    return _ranked(case, scores)


def dense_rank(case: Case, embedder: Embedder) -> list[str]:
    """All turn ids, best first, by the cosine of "Speaker: text" to the question.

    One vector a turn, so that what lies beyond the model's length limit does
    not count; equal scores keep the order of the conversation.
    """
    turns = embedder.embed([_spoken(turn) for turn in case["turns"]]).astype(np.float64)
    question = embedder.embed_query(case["question"]).astype(np.float64)
    lengths = np.linalg.norm(turns, axis=1) * float(np.linalg.norm(question))
    cosines = (turns @ question) / np.where(lengths > 0, lengths, 1.0)
    return _ranked(case, cosines.tolist())


def _twins(case: Case, turn_id: str) -> set[str]:
    """The ids of turns that say the same: recall may show any one of them."""

    def said(turn: dict[str, Any]) -> tuple[Any, ...]:
        return turn["role"], turn.get("speaker"), turn["text"]

    wanted = next(said(turn) for turn in case["turns"] if turn["id"] == turn_id)
    return {turn["id"] for turn in case["turns"] if said(turn) == wanted}


def passes(
    case: Case, ranked_ids: Sequence[str], confidence: float | None = None
) -> tuple[bool, str]:
    """Judge one ranking.

    Args:
        case: The case.
        ranked_ids: Turn ids, best first; it may be shorter than the conversation.
        confidence: That of the best evidence, in [0, 1]; None where the ranker
            has none, 0.0 where it returned nothing.

    Returns:
        Whether the case is passed, and the reason if it is not (else "").
    """
    if case.get("no_answer", False):
        if confidence is None:
            return False, "no confidence given, and nothing here answers the question"
        if confidence >= NO_ANSWER_CEILING:
            return False, f"nothing here answers the question, but confidence is {confidence:.2f}"
        return True, ""
    place = {turn_id: rank for rank, turn_id in reversed(list(enumerate(ranked_ids)))}
    nowhere = len(case["turns"]) + len(ranked_ids)
    right = [min(place.get(i, nowhere) for i in _twins(case, i)) for i in case["right"]]
    for turn_id, rank in zip(case["right"], right, strict=True):
        if rank >= case.get("k", 3):
            return False, f"turn {turn_id} is not among the first {case.get('k', 3)}"
    for turn_id in case["wrong"]:
        if place.get(turn_id, nowhere) < min(right):
            return False, f"turn {turn_id} is above every right one"
    least = case.get("min_confidence")
    if least is not None and confidence is not None and confidence < least:
        return False, f"confidence {confidence:.2f} is below {least:.2f}"
    return True, ""


def _table(cases: Sequence[Case], rankers: dict[str, Any]) -> list[str]:
    passed: dict[str, Counter[str]] = {name: Counter() for name in rankers}
    sizes = Counter(case["family"] for case in cases)
    either = 0
    for case in cases:
        verdicts = {name: passes(case, rank(case))[0] for name, rank in rankers.items()}
        either += any(verdicts.values())
        for name, good in verdicts.items():
            passed[name][case["family"]] += good
    lines = ["family".ljust(24) + "cases" + "".join(name.rjust(8) for name in rankers)]
    for family in sorted(sizes):
        row = "".join(str(passed[name][family]).rjust(8) for name in rankers)
        lines.append(family.ljust(24) + str(sizes[family]).rjust(5) + row)
    totals = [sum(passed[name].values()) for name in rankers]
    counts = "".join(str(n).rjust(8) for n in totals)
    lines.append("all".ljust(24) + str(len(cases)).rjust(5) + counts)
    shares = "".join(f"{1 - n / len(cases):.1%}".rjust(8) for n in totals)
    lines.append("failed".ljust(29) + shares)
    lines.append(f"passed by at least one: {either}")
    return lines


def main() -> None:
    """Print how many cases of each family of a suite the two rankings pass."""
    from ebbtide.analysis.embedding import ModelEmbedder

    suite = sys.argv[1] if len(sys.argv) > 1 else "plain"
    embedder = ModelEmbedder()
    rankers = {"BM25": bm25_rank, "dense": lambda case: dense_rank(case, embedder)}
    sys.stdout.write("\n".join(_table(load_cases(suite), rankers)) + "\n")


if __name__ == "__main__":
    main()
