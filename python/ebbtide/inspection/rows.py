"""The timeline: every turn as a row that opens, in sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from ebbtide.inspection.charts import fade
from ebbtide.inspection.life import FATES, Decay
from ebbtide.inspection.markup import Html, element, join
from ebbtide.messages import counted

__all__ = ["FATE_WORDS", "filters", "timeline"]

FATE_WORDS = {
    "healthy": "healthy",
    "unstable": "unstable",
    "critical": "critical",
    "hard_kill": "decayed",
    "budget": "over budget",
    "skip": "kept out",
    "archived": "archived",
    "pending": "waiting",
}
"""What a fate is called on the page: three tiers of active turns, then how the others left."""


def timeline(rows: Sequence[Mapping[str, Any]], newest: int, decay: Decay) -> Html:
    """The turns in order, under a heading for each session, or day where there is none."""
    parts = []
    for place, (_, held) in enumerate(groupby(rows, key=_group)):
        members = list(held)
        dated = len({row["day"] for row in members}) > 1
        parts.append(
            element(
                "section",
                element("h3", _heading(members), id=f"part-{place}"),
                element("ol", *(_row(row, newest, decay, dated=dated) for row in members)),
                class_="part",
                aria_labelledby=f"part-{place}",
            )
        )
    return join(*parts)


def _group(row: Mapping[str, Any]) -> tuple[str, str]:
    if row["session_id"] is not None:
        return "session", row["session_id"]
    return "day", row["day"] or ""


def _heading(rows: Sequence[Mapping[str, Any]]) -> Html:
    session = rows[0]["session_id"]
    days = sorted({row["day"] for row in rows if row["day"]})
    when = "" if not days else days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    name = f"Session {session}" if session is not None else when or "No date"
    rest = [when] if session is not None and when else []
    rest.append(counted(len(rows), "turn"))
    return join(name, " ", element("span", " · ".join(rest), class_="soft"))


def _row(row: Mapping[str, Any], newest: int, decay: Decay, *, dated: bool) -> Html:
    said_at = f"{row['day']} {row['time']}" if dated else row["time"]
    summary = element(
        "summary",
        element("span", f"{row['id']}", class_="no"),
        element(
            "span",
            element("span", row["speaker"] or row["role"], class_="who"),
            None if row["time"] is None else element("time", said_at, datetime=_moment(row)),
            *_marks(row),
            class_="head",
        ),
        element("span", row["text"], class_="text", dir="auto"),
        element("span", fade(row, newest, decay), class_="trend"),
        element("span", FATE_WORDS[row["fate"]], class_=f"fate {row['fate']}"),
    )
    life = element("div", element("p", row["why"], class_="why"), class_="life")
    return element(
        "li",
        element("details", summary, life),
        class_="turn",
        id=f"turn-{row['id']}",
        data_fate=row["fate"],
    )


def _moment(row: Mapping[str, Any]) -> str:
    # By the clock of its own stamp, as it is shown.
    return f"{row['day']}T{row['time']}"


def _marks(row: Mapping[str, Any]) -> list[Html]:
    """Words about a turn that concern its validity or its place in the lineage."""
    marks = []
    if row["validity"] != "current":
        marks.append(element("span", row["validity"], class_="mark gone"))
    if row.get("older"):
        relation = row["older"][-1]
        words = f"{relation['relation'].replace('_', ' ')} {relation['turn']}"
        marks.append(element("span", words, class_="mark"))
    return marks


def filters(rows: Sequence[Mapping[str, Any]]) -> Html:
    """The form above the timeline; hidden until the script is there to serve it."""
    counts = Counter(row["fate"] for row in rows)
    boxes = [
        element(
            "label",
            element("input", type="checkbox", name="fate", value=fate, checked=True),
            element("span", class_=f"swatch {fate}", aria_hidden="true"),
            f"{FATE_WORDS[fate]} ",
            element("span", f"{counts[fate]:,}", class_="soft"),
            class_="chip",
        )
        for fate in FATES
        if counts[fate]
    ]
    speakers = sorted({row["speaker"] or row["role"] for row in rows})
    return element(
        "form",
        _field("Search turns", element("input", type="search", name="words", autocomplete="off")),
        _field("Speaker", _select("speaker", [("", "everyone"), *((s, s) for s in speakers)])),
        _field("Show", _select("kind", _KINDS)),
        element(
            "fieldset",
            element("legend", "Where they stand"),
            element("div", *boxes, class_="chips"),
        ),
        element("p", class_="count", role="status", aria_live="polite"),
        class_="filters",
        id="filters",
        role="search",
        aria_label="Filter the turns",
        hidden=True,
    )


_KINDS = (
    ("", "all turns"),
    ("related", "in the lineage"),
    ("gone", "no longer current"),
    ("cards", "with cards"),
    ("signals", "with signals"),
)


def _field(name: str, control: Html) -> Html:
    return element("label", element("span", name), control, class_="field")


def _select(name: str, options: Sequence[tuple[str, str]]) -> Html:
    return element(
        "select", *(element("option", words, value=value) for value, words in options), name=name
    )
