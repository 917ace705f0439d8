"""Scores by category and tokens by system, with the columns of the DMF paper's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from ebbtide.evals.endtoend.scores import TokenUse
from ebbtide.evals.metrics import bootstrap_interval

__all__ = ["summarise", "summary_markdown"]

_SCORES = {
    "correct": "avg. judge score",
    "exact_match": "exact match",
    "token_f1": "token F1",
    "bleu1": "BLEU-1",
}
_COLUMNS = {
    "input": "E2E Input",
    "answer_prompt": "Prompt",
    "memory_prompt": "Mem. Prompt",
    "memory_completion": "Mem. Compl.",
    "memory_total": "Mem. Total",
    "total": "Rec. E2E",
    "judge": "judge, apart",
}


def summarise(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Scores and tokens of one system.

    Args:
        parts: Its conversations: ``taking_in``, a :class:`TokenUse` as a mapping, and
            ``rows``.

    Returns:
        ``groups``, ``overall`` first, then the categories in alphabetical order, each
        with ``count``, ``failed`` (no answer) and, by score, its ``mean``, the 95 %
        interval ``low`` to ``high`` and the ``count`` of rows that have it; and
        ``tokens``, taking in included.
    """
    rows = [row for part in parts for row in part["rows"]]
    groups = {"overall": rows}
    for category in sorted({row["category"] for row in rows}):
        groups[category] = [row for row in rows if row["category"] == category]
    use = TokenUse()
    for spent in [*(part["taking_in"] for part in parts), *rows]:
        use += TokenUse(**{field.name: spent[field.name] for field in fields(TokenUse)})
    tokens = asdict(use) | {
        "input": use.input,
        "memory_total": use.memory_total,
        "total": use.total,
        "judge": use.judge_prompt + use.judge_completion,
    }
    return {"groups": {name: _group(held) for name, held in groups.items()}, "tokens": tokens}


def _group(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "count": len(rows),
        "failed": sum(row["answer"] is None for row in rows),
    }
    for name in _SCORES:
        values = [float(row[name]) for row in rows if row.get(name) is not None]
        found[name] = asdict(bootstrap_interval(values)) if values else None
    return found


def summary_markdown(summary: Mapping[str, Any]) -> str:
    """Two Markdown tables: scores by system and category, tokens by system.

    The columns bear the names that they have in the DMF paper's tables 5 to 8.

    Args:
        summary: What :func:`~ebbtide.evals.endtoend.end_to_end` returns.
    """
    scores = [["system", "group", "count", "judge count", "failed", *_SCORES.values()]]
    tokens = [["system", *_COLUMNS.values()]]
    for system, found in summary["systems"].items():
        for name, group in found["groups"].items():
            judged = group["correct"]["count"] if group["correct"] else 0
            cells = [system, name, str(group["count"]), str(judged), str(group["failed"])]
            scores.append(cells + [_cell(group[score]) for score in _SCORES])
        tokens.append([system, *(f"{found['tokens'][column]:,}" for column in _COLUMNS)])
    return "\n".join([*_heading(summary), _table(scores, left=2), _table(tokens, left=1)])


def _heading(summary: Mapping[str, Any]) -> list[str]:
    """A named run says what it is, and where it has less than it should."""
    if not summary.get("protocol"):
        return []
    models = f"{summary['answerer'].get('model')} answers, {summary['judge'].get('model')} judges"
    about = (
        f"{summary['source']}; seed {summary['seed']}, contexts of at most "
        f"{summary['context_tokens']:,} tokens; {models}."
    )
    lines = [f"# {summary['protocol']}\n", f"{about}\n"]
    if summary["short"]:
        held = ", ".join(f"{name} {count}" for name, count in summary["short"].items())
        lines.append(f"The data holds too few questions of some categories: {held}.\n")
    return lines


def _cell(interval: Mapping[str, float] | None) -> str:
    if interval is None:
        return "–"
    return f"{interval['mean']:.3f} ({interval['low']:.3f}–{interval['high']:.3f})"


def _table(rows: Sequence[Sequence[str]], left: int) -> str:
    head, *body = rows
    rule = ["---" if at < left else "---:" for at in range(len(head))]
    lines = [f"| {' | '.join(row)} |" for row in (head, rule, *body)]
    return "\n".join(lines) + "\n"
