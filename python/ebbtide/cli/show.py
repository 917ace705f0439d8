"""Results as tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

    from ebbtide.replay import ReplaySummary
    from ebbtide.types import RetrievedEvidence, Turn

__all__ = ["evidence", "life", "replay_table", "table_of", "trace"]

KNOWS = 0.5
"""Confidence below which the memory says that it may not know."""


def replay_table(summaries: Sequence[ReplaySummary]) -> Table:
    """One column a replay."""
    table = Table(title="Replayed", title_justify="left")
    table.add_column("")
    for summary in summaries:
        table.add_column(summary.namespace, justify="right")
    rows: dict[str, list[str]] = {}
    for summary in summaries:
        data = summary.to_dict()
        tiers = data.pop("tiers")
        evictions = data.pop("evictions")
        data.pop("namespace")
        digest = str(data.pop("digest"))
        for key, value in data.items():
            rows.setdefault(key.replace("_", " "), []).append(f"{value:,}")
        for tier in ("healthy", "unstable", "critical"):
            rows.setdefault(f"tier {tier}", []).append(f"{tiers.get(tier, 0):,}")
        for reason in ("hard_kill", "budget"):
            rows.setdefault(f"evicted by {reason.replace('_', ' ')}", []).append(
                f"{evictions.get(reason, 0):,}"
            )
        rows.setdefault("digest", []).append(digest[:16])
    for name, cells in rows.items():
        table.add_row(name, *cells)
    return table


def evidence(console: Console, items: Sequence[RetrievedEvidence]) -> None:
    """Ranked turns; says so where nothing answers well."""
    if not items:
        console.print("Nothing in this memory answers that.")
        return
    if items[0].confidence < KNOWS:
        console.print("No turn answers this for sure; the nearest ones:", style="yellow")
    table = Table(show_lines=False)
    for heading in ("#", "sure", "when", "who"):
        table.add_column(heading, no_wrap=heading != "who")
    table.add_column("turn", overflow="fold")
    table.add_column("id", no_wrap=True)
    for item in items:
        table.add_row(
            str(item.rank),
            f"{item.confidence:.2f}",
            _when(item.turn),
            item.turn.speaker or item.turn.role,
            _said(item.turn),
            item.turn.external_id or str(item.turn.interaction_id),
        )
    console.print(table)


def trace(console: Console, found: Mapping[str, Any], texts: Mapping[int, str]) -> None:
    """The frame, then every candidate with the terms of its score and its fate."""
    frame = {key: value for key, value in found["frame"].items() if value not in (None, [], "")}
    console.print(table_of(frame, title="Question"))
    table = Table(title="Candidates", title_justify="left")
    for heading in ("rank", "fate", "id", "score"):
        table.add_column(heading, no_wrap=True)
    table.add_column("turn", overflow="fold", ratio=2)
    table.add_column("channels", overflow="fold", ratio=1)
    table.add_column("terms", overflow="fold", ratio=2)
    for row in found["candidates"]:
        terms = row["terms"] or {**row["features"], **row["penalties"]}
        table.add_row(
            str(row["rank"] or "–"),
            row["fate"],
            str(row["interaction_id"]),
            f"{row['score']:.3f}",
            Text(_short(texts[row["interaction_id"]], 80)),
            _pairs(row["channels"]),
            _pairs(terms),
        )
    console.print(table)


def life(console: Console, found: Mapping[str, Any]) -> None:
    """One turn from its first word to where it stands now."""
    turn = found["turn"]
    console.print(Text(f"Turn {turn['interaction_id']} ({turn['role']}): {turn['text']}"))
    if "score" not in found:
        console.print("Its analysis is still to come.")
        return
    signals, score = found["signals"], found["score"]
    console.print(
        table_of(
            {
                "information density": signals["density"],
                "sentiment": signals["sentiment"],
                "entities": ", ".join(e["text"] for e in signals["entities"]) or "none",
                "divergence": signals["divergence"],
                "signals": ", ".join(signals["conversational"]) or "none",
                "cues": "; ".join(f"{c['signal']}: {c['text']!r}" for c in signals["cues"])
                or "none",
                "claims": "; ".join(
                    f"{c['subject']} · {c['identity']} = {c['value']}" for c in signals["claims"]
                )
                or "none",
            },
            title="What was read",
        )
    )
    terms = " ".join(f"{value:+.3f} ({name})" for name, value in score["terms"].items())
    console.print(
        table_of(
            {
                "content": f"{terms} = {score['z_content']:.3f}",
                "operational": score["z_op"],
                "provenance": score["z_prov"],
                "Ω": f"σ({score['z_content'] + score['z_op'] + score['z_prov']:.3f} − "
                f"{score['midpoint']}) = {score['omega_raw']:.3f}"
                + (
                    ""
                    if score["omega"] == score["omega_raw"]
                    else f", social floor {score['omega']:.3f}"
                ),
            },
            title="Survival Score",
        )
    )
    table = Table(title="Decisions", title_justify="left")
    for heading in ("after turn", "decision", "why"):
        table.add_column(heading, overflow="fold")
    for decision in found["decisions"]:
        table.add_row(str(decision["at"]), decision["kind"], _pairs(decision["detail"]))
    console.print(table)
    console.print(table_of({**found["now"], "validity": turn["validity"]}, title="Now"))


def table_of(values: Mapping[str, Any], title: str | None = None) -> Table:
    """Names and values, one a row."""
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column("name", no_wrap=True)
    table.add_column("value", overflow="fold")
    for name, value in values.items():
        table.add_row(name.replace("_", " "), Text(_plain(value)))
    return table


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return _pairs(value)
    if isinstance(value, list):
        return ", ".join(_plain(item) for item in value)
    return str(value)


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_plain(value)}" for name, value in values.items())


def _when(turn: Turn) -> str:
    from ebbtide.analysis.temporal import format_day

    return "" if turn.utc is None else format_day(turn.utc.date())


def _said(turn: Turn) -> Text:
    mark = "" if turn.validity == "current" else f"({turn.validity}) "
    return Text(mark + _short(turn.text, 300))


def _short(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
