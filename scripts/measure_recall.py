"""Recall of evidence turns on a public dataset, every system side by side.

    python scripts/measure_recall.py --data ../shared/data/locomo/locomo_dev5.json.gz
    python scripts/measure_recall.py --data FILE --write docs/results.md

Questions without evidence, and those that nothing answers, are left out and counted.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

import ebbtide
from ebbtide.evals.datasets import Conversation, iter_conversations
from ebbtide.evals.metrics import bootstrap_interval, rank_metrics, to_sessions
from ebbtide.evals.systems import SYSTEMS, open_system

LIMIT = 30
COLUMNS = ("recall@5", "recall@10", "recall_any@10", "recall_all@10", "mrr", "ndcg@10")

Rows = dict[str, list[tuple[str, dict[str, float], dict[str, float]]]]


def measure(path: Path, systems: list[str]) -> tuple[Rows, int, int]:
    """Metrics by system: (category, turn level, session level) a question."""
    rows: Rows = defaultdict(list)
    asked = left_out = 0
    for conversation in iter_conversations(path):
        questions = [q for q in conversation.questions if q.evidence and not q.abstention]
        asked += len(questions)
        left_out += len(conversation.questions) - len(questions)
        for name in systems:
            with open_system(name, conversation) as rank:
                for question in questions:
                    ranked = rank(question, LIMIT)
                    turns = rank_metrics(ranked, question.evidence)
                    rows[name].append(
                        (question.category, turns, _sessions(conversation, ranked, question))
                    )
        print(f"{conversation.id}: {len(questions)} questions", file=sys.stderr)
    return rows, asked, left_out


def _sessions(conversation: Conversation, ranked: list[str], question: object) -> dict[str, float]:
    session_of = {t.external_id: t.session_id or "" for t in conversation.turns}
    gold = {session_of[i] for i in getattr(question, "evidence", ()) if i in session_of}
    return rank_metrics(to_sessions(ranked, session_of), gold) if gold else {}


def table(rows: Rows) -> list[str]:
    """Markdown: overall with 95 % intervals, then recall@10 by category."""
    lines = ["| system | " + " | ".join(COLUMNS) + " | session all@5 |"]
    lines.append("|---" * (len(COLUMNS) + 2) + "|")
    for name, found in rows.items():
        cells = []
        for column in COLUMNS:
            interval = bootstrap_interval([turns[column] for _, turns, _ in found])
            cells.append(f"{interval.mean:.3f} ({interval.low:.3f}–{interval.high:.3f})")
        sessions = [s["recall_all@5"] for _, _, s in found if s]
        cells.append(f"{float(np.mean(sessions)):.3f}" if sessions else "–")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    categories = sorted({category for found in rows.values() for category, _, _ in found})
    lines += ["", "recall@10 by category:", ""]
    lines.append("| system | " + " | ".join(categories) + " |")
    lines.append("|---" * (len(categories) + 1) + "|")
    for name, found in rows.items():
        cells = [
            f"{float(np.mean([t['recall@10'] for c, t, _ in found if c == category])):.3f}"
            for category in categories
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def main() -> int:
    """Measure, print, and write the page where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, action="append", required=True)
    parser.add_argument("--system", action="append", choices=SYSTEMS)
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    systems = args.system or list(SYSTEMS)
    lines = ["# Recall, measured", ""]
    lines.append(
        f"ebbtide {ebbtide.__version__}, Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors; no LLM call. "
        "The dev sets were used for tuning the `default` preset; none of this is held out."
    )
    for path in args.data:
        start = time.perf_counter()
        rows, asked, left_out = measure(path, systems)
        seconds = time.perf_counter() - start
        lines += ["", f"## {path.name}", ""]
        lines.append(
            f"`python scripts/measure_recall.py --data {path.name}`: {asked} questions, "
            f"{left_out} left out (no evidence, or nothing answers them), {seconds:.0f} s."
        )
        lines += ["", *table(rows)]
    text = "\n".join(lines) + "\n"
    print(text)
    if args.write:
        args.write.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
