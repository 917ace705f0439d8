"""Results as tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from ebbtide.cli.output import plain
from ebbtide.messages import counted
from ebbtide.moments import iso_day
from ebbtide.types import KNOWS

if TYPE_CHECKING:
    from rich.console import Console

    from ebbtide.importers import ImportedConversation
    from ebbtide.replay import ReplaySummary
    from ebbtide.types import RetrievedEvidence, Turn

__all__ = [
    "TIERS",
    "conversations_table",
    "evidence",
    "knows",
    "left_out_table",
    "life",
    "replay_table",
    "table_of",
    "trace",
]

TIERS = ("healthy", "unstable", "critical")

_WIDE = (
    "conversation",
    "begins",
    "meaning",
    "text",
    "value",
    "numbers",
    "who",
    "id",
    "about",
    "memory",
)

_CONVERSATIONS = 20
"""Conversations of a preview that are shown."""

_NARROW = 60
"""Columns of a terminal below which a table leaves its texts no room."""


# Replay


def replay_table(summaries: Sequence[ReplaySummary], *, title: str = "Replayed") -> Table:
    """One replay as names and values; several as one row each."""
    if len(summaries) == 1:
        return table_of(_replay_rows(summaries[0]), title=title)
    headings = ("memory", "stored", "active", "archived", "tiers", "evicted")
    table = _table(title, *headings, "superseded", "digest")
    table.collapse_padding = True  # fits 80 columns
    for summary in summaries:
        data = summary.to_dict()
        numbers = ("accepted", "active", "archived")
        table.add_row(
            _cell(summary.namespace),
            *(str(data[name]) for name in numbers),
            "/".join(str(data["tiers"].get(name, 0)) for name in TIERS),
            "/".join(str(count) for count in data["evictions"].values()),
            str(summary.superseded),
            summary.digest[:8],
        )
    stored, seconds = sum(s.accepted for s in summaries), sum(s.seconds for s in summaries)
    speed = stored / seconds if seconds > 0 else 0.0
    known = sum(s.duplicates for s in summaries)
    over = sum(s.over_budget_turns for s in summaries)
    table.caption = (
        f"{counted(stored, 'turn')} stored in {seconds:.1f} s ({speed:.1f} turns/s), "
        f"{known:,} known before, {sum(s.skipped for s in summaries):,} skipped, "
        f"{over:,} left the budget exceeded. "
        f"tiers: {'/'.join(TIERS)}; evicted: hard kill/budget."
    )
    table.caption_justify = "left"
    return table


def _replay_rows(summary: ReplaySummary) -> dict[str, str]:
    data = summary.to_dict()
    over = f"{data['over_budget_turns']:,} turns, {data['over_budget_tokens']:,} tokens now"
    rows = {
        name: f"{data[name]:,}"
        for name in ("accepted", "duplicates", "skipped", "active", "archived")
    }
    return {
        "namespace": summary.namespace,
        **rows,
        "tiers": ", ".join(f"{name} {data['tiers'].get(name, 0):,}" for name in TIERS),
        "evicted": ", ".join(
            f"{reason.replace('_', ' ')} {count:,}" for reason, count in data["evictions"].items()
        ),
        "superseded": f"{summary.superseded:,}",
        "over budget": over,
        "seconds": f"{summary.seconds:.1f}",
        "turns/s": f"{summary.turns_per_second:.1f}",
        "digest": summary.digest,
    }


# Import


def conversations_table(conversations: Sequence[ImportedConversation]) -> Table:
    """The conversations of an export, a row each, and how they begin."""
    table = _table("Would be imported", "conversation", "turns", "first", "last", "begins")
    table.columns[0].max_width = 28
    alone = len(conversations) == 1
    for found in conversations[:_CONVERSATIONS]:
        begins = [
            f"{turn.speaker or turn.role}: {_short(turn.text, 80)}"
            for turn in (found.beginning if alone else found.beginning[:1])
        ]
        table.add_row(
            _cell(found.title or found.id),
            f"{found.turns:,}",
            (found.first or "–")[:10],
            (found.last or "–")[:10],
            _cell("\n".join(begins)),
        )
    more = len(conversations) - _CONVERSATIONS
    turns = sum(found.turns for found in conversations)
    table.caption = f"{counted(turns, 'turn')} in {counted(len(conversations), 'conversation')}" + (
        f", {more:,} of them not shown (--json has all)." if more > 0 else "."
    )
    table.caption_justify = "left"
    return table


def left_out_table(skips: Mapping[str, int]) -> Table:
    """What an import leaves out, the most frequent reason first."""
    from ebbtide.importers import REASONS

    table = _table("Left out", "messages", "reason", "meaning")
    for reason, count in sorted(skips.items(), key=lambda item: (-item[1], item[0])):
        table.add_row(f"{count:,}", reason, REASONS[reason])
    return table


# Ask


def knows(items: Sequence[RetrievedEvidence]) -> bool:
    """Whether the best turn is likely to answer."""
    return bool(items) and items[0].confidence >= KNOWS


def evidence(console: Console, items: Sequence[RetrievedEvidence]) -> None:
    """Ranked turns; says so where the memory may not know."""
    if not items:
        console.print("The memory does not know: no turn answers that.")
        return
    if not knows(items):
        console.print(
            "The memory may not know: the best of these turns has a confidence of "
            f"{items[0].confidence:.2f}."
        )
    if console.width < _NARROW:
        for item in items:
            turn = item.turn
            words = (_day(turn), turn.speaker or turn.role, _name(turn))
            head = f"{item.rank}. {item.confidence:.2f}  " + "  ".join(words)
            console.print(_cell(head), _said(turn), sep="\n", end="\n\n", overflow="fold")
        return
    table = _table(None, "#", "conf.", "date", "who", "text", "id")
    for item in items:
        table.add_row(
            str(item.rank),
            f"{item.confidence:.2f}",
            _day(item.turn),
            _cell(item.turn.speaker or item.turn.role),
            _said(item.turn),
            _cell(_name(item.turn)),
        )
    console.print(table)


def trace(console: Console, found: Mapping[str, Any], turns: Mapping[int, Turn]) -> None:
    """The frame, then every candidate with the terms of its score and its fate."""
    frame = {key: value for key, value in found["frame"].items() if value not in (None, [], "")}
    console.print(table_of(frame, title="Question"))
    if found["deliberation"] is not None:
        _deliberation(console, found["deliberation"], turns)
    table = _table("Candidates", "rank", "fate", "id", "score", "conf.", "text, channels, terms")
    for row in found["candidates"]:
        terms = row["terms"] or {**row["features"], **row["penalties"]}
        turn = turns[row["interaction_id"]]
        said = _short(turn.text, 80)
        if row["card"] is not None:
            said = f"[card] {said}"
        confidence = row["confidence"]
        table.add_row(
            str(row["rank"] or "–"),
            row["fate"],
            _cell(_name(turn)),
            f"{row['score']:.3f}",
            "–" if confidence is None else f"{confidence:.2f}",
            _cell(f"{said}\n  found by {_pairs(row['channels'])}\n  {_pairs(terms)}"),
        )
    console.print(table)


def _deliberation(console: Console, found: Mapping[str, Any], turns: Mapping[int, Turn]) -> None:
    """Why a question escalated or did not, and what the scan of the history found."""
    failed = [f"{c['check']} ({c['gate']})" for c in found["gates"] if not c["passed"]]
    why = f" for want of {', '.join(failed)}" if failed else ""
    outcome = f"escalated{why}" if found["escalated"] else "not escalated"
    console.print(Text(plain(f"Deliberation ({found['policy']}): {outcome}.")))
    if found["gates"]:
        table = _table(None, "gate", "check", "passed", "found", "least", "text, missing")
        for c in found["gates"]:
            numbers = (f"{c['value']:.2f}", f"{c['least']:.2f}")
            passed = "yes" if c["passed"] else "no"
            table.add_row(c["gate"], c["check"], passed, *numbers, _cell("; ".join(c["missing"])))
        console.print(table)
    for pair in found["votes"]:
        agree = "agree" if pair["agree"] else "do not agree"
        console.print(Text(plain(f"{pair['first']} and {pair['second']} {agree}.")))
    model = found.get("llm")
    if model is not None:
        ended = f", given up: {model['failed']}" if model["failed"] else ""
        stages = ", ".join(stage["stage"] for stage in model["stages"]) or "nothing"
        console.print(Text(plain(f"Language model: {stages}; {model['tokens']} tokens{ended}.")))
    scan = found.get("scan")
    if scan is None:
        return
    sure = ", for want of better ones" if scan["low_confidence"] else ""
    read = f"{scan['messages']} messages in {scan['chunks']} chunks"
    title = f"{read}, {len(scan['kept'])} sentences kept{sure}"
    table = _table(title, "score", "id", "text")
    for row in scan["kept"]:
        turn = turns[row["interaction_id"]]
        sentence = turn.text[row["start"] : row["end"]]
        table.add_row(f"{row['score']:.1f}", _cell(_name(turn)), _cell(_short(sentence, 200)))
    console.print(table)


# Explain


def life(console: Console, found: Mapping[str, Any]) -> None:
    """One turn from its first word to where it stands now."""
    turn = found["turn"]
    who = turn["speaker"] or turn["role"]
    name = f"Turn {turn['interaction_id']}"
    if turn["external_id"] is not None:
        name += f" ({turn['external_id']})"
    console.print(Text(plain(f"{name}, {who}, {turn['timestamp'] or 'no date'}")))
    console.print(Text(plain(turn["text"])))
    if "score" not in found:
        console.print("Its analysis is still to come.")
        return
    console.print(table_of(_signals(found), title="What was read in it"))
    console.print(table_of(_score(found["score"]), title="Survival Score"))
    _decisions(console, found["decisions"])
    _lineage(console, found)
    console.print(table_of({**found["now"], "validity": turn["validity"]}, title="Now"))


def _signals(found: Mapping[str, Any]) -> dict[str, Any]:
    signals = found["signals"]
    rows = {
        "information density": signals["density"],
        "sentiment": signals["sentiment"],
        "entities": ", ".join(f"{e['text']} ({e['label']})" for e in signals["entities"]),
        "divergence": signals["divergence"],
        "signals": ", ".join(signals["conversational"]),
        "cues": "; ".join(f"{c['signal']} from {c['text']!r}" for c in signals["cues"]),
        "claims": "; ".join(
            f"{c['subject']}, {c['identity']}: {c['value']}" for c in signals["claims"]
        ),
        "times": "; ".join(f"{t['text']!r} is {t['words']}" for t in signals["times"]),
        "cards": "; ".join(
            f"{c['card']['subject']} {c['card']['predicate']} {c['card']['object']}"
            f" ({c['validity']})"
            for c in found["cards"]
        ),
    }
    return {name: "none" if value == "" else value for name, value in rows.items()}


def _score(score: Mapping[str, Any]) -> dict[str, str]:
    terms = score["terms"]
    content = " ".join(f"{value:+.3f} {name}" for name, value in terms.items())
    z_content, z_op, z_prov = score["z_content"], score["z_op"], score["z_prov"]
    omega = (
        f"σ({z_content:.3f} {z_op:+.3f} {z_prov:+.3f} − {score['midpoint']:.3f})"
        f" = {score['omega_raw']:.3f}"
    )
    if score["omega"] != score["omega_raw"]:
        omega += f", raised to the social floor {score['omega']:.3f}"
    return {
        "content": f"{content} = {z_content:.3f}",
        "operational": f"{z_op:+.3f}, from the signals",
        "provenance": f"{z_prov:+.3f}",
        "Ω = σ(content + operational + provenance − midpoint)": omega,
    }


_WORDS = {
    "tier": "changes tier",
    "evict_kill": "archived: too weak to stay",
    "evict_budget": "archived: the token budget was full",
    "supersede": "superseded",
    "relate": "related",
    "over_budget": "kept, though over the budget",
}
"""Kinds of decisions in words; others are shown by their names."""


def _decisions(console: Console, decisions: Sequence[Mapping[str, Any]]) -> None:
    if not decisions:
        console.print("Decisions: none so far.")
        return
    table = _table("Decisions", "after turn", "decision", "numbers")
    for decision in decisions:
        words = _WORDS.get(decision["kind"], decision["kind"])
        table.add_row(str(decision["at"]), words, _cell(_pairs(decision["detail"])))
    console.print(table)


def _lineage(console: Console, found: Mapping[str, Any]) -> None:
    relations = [*found["older"], *found["newer"]]
    if not relations:
        console.print("Lineage: no other turn relates to it.")
        return
    table = _table("Lineage", "newer", "relation", "older", "about")
    for row in relations:
        # Between the parts of a topic stands a unit separator.
        about = ": ".join((row["topic"] or "").split("\x1f"))
        if row["by_caller"]:
            about = f"{about} (said by the caller)".strip()
        table.add_row(str(row["newer"]), row["relation"], str(row["older"]), _cell(about))
    console.print(table)


# Shared


def table_of(values: Mapping[str, Any], title: str | None = None) -> Table:
    """Names and values, one a row."""
    table = _table(title, "name", "value")
    table.show_header = False
    for name, value in values.items():
        table.add_row(_cell(name.replace("_", " ")), _cell(_plain(value)))
    return table


def _table(title: str | None, *headings: str) -> Table:
    """A table whose texts wrap and whose other columns do not."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        wide = heading in _WIDE or "," in heading
        table.add_column(heading, overflow="fold", no_wrap=not wide)
    return table


def _cell(text: str) -> Text:
    """Text that neither markup nor control characters in it can change."""
    return Text(plain(text))


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return _pairs(value) or "none"
    if isinstance(value, list):
        return ", ".join(_plain(item) for item in value)
    return str(value)


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_plain(value)}" for name, value in values.items())


def _name(turn: Turn) -> str:
    return str(turn.interaction_id) if turn.external_id is None else turn.external_id


def _day(turn: Turn) -> str:
    return iso_day(turn.utc, turn.timestamp) or ""


def _said(turn: Turn) -> Text:
    mark = "" if turn.validity == "current" else f"({turn.validity}) "
    return _cell(mark + _short(turn.text, 300))


def _short(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
