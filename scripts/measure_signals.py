"""Measure the English signals against the hand-made labels; write docs/signals.md.

Run it from anywhere: ``python scripts/measure_signals.py [--check]``. The texts are
read from the data folder (``../shared/data`` beside the repository, or the folder
named by ``EBBTIDE_DATA``); the repository holds labels and ids only.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ebbtide.analysis.facts import REST, SIGNALS, TurnText
from ebbtide.analysis.spacy_analyser import SpacyAnalyser

ROOT = Path(__file__).resolve().parents[1]
LABELS = ROOT / "tests" / "signals"
HALVES = ("dev", "held_out")
STRATA = ("base", "rare", "assistant", "authored")


@dataclass(frozen=True, slots=True)
class Labelled:
    """One labelled turn: where it comes from, its text, the signals a reader saw."""

    stratum: str
    half: str
    turn: TurnText
    labels: frozenset[str]


@dataclass(frozen=True, slots=True)
class Score:
    """Counts of one signal: hits, false alarms, misses."""

    hits: int
    false: int
    missed: int

    @property
    def support(self) -> int:
        """Turns that carry the label."""
        return self.hits + self.missed

    @property
    def precision(self) -> float | None:
        """Share of alarms that are right; None without any."""
        return self.hits / (self.hits + self.false) if self.hits + self.false else None

    @property
    def recall(self) -> float | None:
        """Share of labelled turns found; None without any."""
        return self.hits / self.support if self.support else None


def data_folder() -> Path:
    """Where the dialogue data lies."""
    return Path(os.environ.get("EBBTIDE_DATA", ROOT.parent / "shared" / "data"))


def dev_turns() -> Iterator[tuple[str, str, TurnText]]:
    """(conversation, dia_id, turn) of the five LoCoMo dev conversations, in order."""
    path = data_folder() / "locomo" / "locomo_dev5.json.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        samples = json.load(file)
    for sample in samples:
        conversation = sample["conversation"]
        names = [name for name in conversation if re.fullmatch(r"session_\d+", name)]
        for name in sorted(names, key=lambda key: int(key.removeprefix("session_"))):
            for turn in conversation[name]:
                text = TurnText(turn["text"], speaker=turn["speaker"])
                yield sample["sample_id"], turn["dia_id"], text


def assistant_turns() -> Iterator[tuple[str, str, TurnText]]:
    """(session id, position, turn) of the LongMemEval sample."""
    path = data_folder() / "longmemeval" / "lme_s_dev18.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            sessions = zip(row["haystack_session_ids"], row["haystack_sessions"], strict=True)
            for session_id, session in sessions:
                for position, turn in enumerate(session):
                    text = TurnText(turn["content"], role=turn["role"])
                    yield session_id, str(position), text


def labelled_turns() -> list[Labelled]:
    """All labelled turns with their texts."""
    entries = json.loads((LABELS / "labels.json").read_text(encoding="utf-8"))
    wanted = {(entry["conversation"], entry["dia_id"]) for entry in entries}
    texts: dict[tuple[str, str], TurnText] = {}
    for source in (dev_turns(), assistant_turns()):
        for conversation, dia_id, turn in source:
            if (conversation, dia_id) in wanted:
                texts.setdefault((conversation, dia_id), turn)
    rows = [
        Labelled(
            entry["stratum"],
            entry["half"],
            texts[entry["conversation"], entry["dia_id"]],
            frozenset(entry["labels"]),
        )
        for entry in entries
    ]
    authored = json.loads((LABELS / "authored.json").read_text(encoding="utf-8"))
    rows.extend(
        Labelled("authored", entry["half"], TurnText(entry["text"]), frozenset(entry["labels"]))
        for entry in authored
    )
    return rows


def score(
    pairs: Iterable[tuple[Labelled, frozenset[str]]], signal: str, half: str, strata: Iterable[str]
) -> Score:
    """Count one signal over one half and some strata."""
    names = frozenset(strata)
    hits = false = missed = 0
    for row, fired in pairs:
        if row.half == half and row.stratum in names:
            hits += signal in row.labels and signal in fired
            false += signal not in row.labels and signal in fired
            missed += signal in row.labels and signal not in fired
    return Score(hits, false, missed)


def read_signals(rows: list[Labelled]) -> list[tuple[Labelled, frozenset[str]]]:
    """Pair each labelled turn with the signals that fire on it."""
    facts = SpacyAnalyser().analyse([row.turn for row in rows])
    return [(row, fact.signals) for row, fact in zip(rows, facts, strict=True)]


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _table(pairs: list[tuple[Labelled, frozenset[str]]], strata: Iterable[str]) -> list[str]:
    lines = [
        "| signal | n dev | precision | recall | n held-out | precision | recall |",
        "|---|---|---|---|---|---|---|",
    ]
    for signal in SIGNALS:
        cells = [signal]
        for half in HALVES:
            result = score(pairs, signal, half, strata)
            cells += [str(result.support), _cell(result.precision), _cell(result.recall)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def report() -> str:
    """The whole of docs/signals.md."""
    pairs = read_signals(labelled_turns())
    turns = [turn for *_, turn in dev_turns()]
    facts = SpacyAnalyser().analyse(turns)
    counts = Counter(signal for fact in facts for signal in fact.signals)
    claims = Counter(claim.kind for fact in facts for claim in fact.claims if claim.kind != REST)
    size = Counter((row.stratum, row.half) for row, _ in pairs)
    lines = [
        "# The English signals, measured",
        "",
        "Written by `scripts/measure_signals.py`. What each label means, how the turns were",
        "drawn and who labels what is in `tests/signals/README.md`. The rules were developed on",
        "the dev half and on unlabelled turns; the errors of the held-out half were not read.",
        "",
        f"## How often they fire: all {len(turns):,} turns of the LoCoMo dev conversations",
        "",
        "| signal | turns | share |",
        "|---|---|---|",
        *(f"| {name} | {counts[name]} | {counts[name] / len(turns):.1%} |" for name in SIGNALS),
        "",
        f"Social turns: {sum(fact.social for fact in facts)}. Claims: "
        + ", ".join(f"{claims[kind]} {kind}" for kind in sorted(claims))
        + ".",
    ]
    sections = (
        ("All strata together", STRATA),
        ("LoCoMo, every ninth turn (base)", ("base",)),
        ("LoCoMo, turns picked by a wide net (rare)", ("rare",)),
        ("Requests to an assistant, LongMemEval (assistant)", ("assistant",)),
        ("Sentences of our own (authored)", ("authored",)),
    )
    for title, strata in sections:
        count = {half: sum(size[stratum, half] for stratum in strata) for half in HALVES}
        lines += ["", f"## {title}: {count['dev']} dev, {count['held_out']} held-out turns", ""]
        lines += _table(pairs, strata)
    lines += [
        "",
        "The nets of the rare and the assistant stratum pick turns by words that the rules know",
        "too, so recall there is flattering; precision is not.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Write the report, or check that the committed one is up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail where the report is stale")
    arguments = parser.parse_args()
    target = ROOT / "docs" / "signals.md"
    text = report()
    if arguments.check:
        if target.read_text(encoding="utf-8") != text:
            raise SystemExit("docs/signals.md is out of date: run scripts/measure_signals.py")
    else:
        target.write_text(text, encoding="utf-8")
        print(text)


if __name__ == "__main__":
    main()
