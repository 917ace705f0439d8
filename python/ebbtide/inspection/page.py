"""One HTML page that needs no other file, no network and no server."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib import resources
from string import Template
from typing import Any

from ebbtide.inspection import sections
from ebbtide.inspection.life import Decay
from ebbtide.inspection.markup import Html, element, join, number
from ebbtide.inspection.rows import FATE_WORDS, filters, timeline
from ebbtide.messages import counted

__all__ = ["inspection_page"]

_SCRIPTS = (
    "dom.js",
    "curve.js",
    "life.js",
    "timeline.js",
    "overview.js",
    "questions.js",
    "start.js",
)
"""The script's files in the order in which they stand in the page."""

_DRAWN = ("text", "why", "day", "time", "timestamp")
"""What the script does not need, because the page's elements say it."""


def inspection_page(data: Mapping[str, Any]) -> str:
    """The page of a memory.

    Texts of turns are escaped wherever they stand, and the page allows no script but
    its own: even markup that slipped through could not run.

    Args:
        data: What :func:`ebbtide.inspection.gather` read.

    Returns:
        HTML; the same data gives the same text.
    """
    script = "\n".join(_file(name) for name in _SCRIPTS)
    # The hash is of the text between the tags, line ends included.
    script = f"\n(() => {{\n{script}}})();\n"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Template(_file("page.html")).substitute(
        title=join(f"Memory {data['memory']['namespace']}"),
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        style=_file("page.css"),
        header=_header(data),
        main=_main(data),
        data=_embedded(data),
        script=script,
    )


def _header(data: Mapping[str, Any]) -> Html:
    memory = data["memory"]
    days = sorted({row["day"] for row in data["turns"] if row["day"]})
    facts = [memory["store"]]
    if days:
        facts.append(days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}")
    links = [("turns", "Turns"), ("questions", "Questions"), ("lineage", "Lineage")]
    links.append(("cards", "Cards"))
    if data["episodes"] or data["facts"]:
        links.append(("episodes", "Episodes"))
    return join(
        element("h1", "Memory ", element("em", memory["namespace"])),
        element(
            "p",
            " · ".join(fact for fact in facts if fact),
            " · ",
            element("abbr", f"digest {memory['digest'][:12]}", title=memory["digest"]),
            class_="soft",
        ),
        element(
            "nav",
            element("ul", *(element("li", element("a", w, href=f"#{n}")) for n, w in links)),
            aria_label="Parts of the page",
        ),
    )


def _main(data: Mapping[str, Any]) -> Html:
    rows, decay = data["turns"], Decay(**data["settings"])
    newest = data["memory"]["next_id"] - 1
    held = sections.episodes(data)
    turns: tuple[Html | None, ...]
    if rows:
        turns = (
            sections.charts(data, decay),
            filters(rows),
            element("div", timeline(rows, newest, decay), id="list"),
            element("p", "No turn fits.", class_="empty", id="none", hidden=True),
        )
    else:
        turns = (element("p", "The memory holds no turn.", class_="empty"),)
    return join(
        sections.summary(data["memory"]),
        _section("turns", "Turns", _shown(data), *turns),
        _section("questions", "Questions", None, _questions(data)),
        _section(
            "lineage",
            "Lineage",
            "What was superseded, corrected or contradicted; older turns above newer ones.",
            sections.lineage(data),
        ),
        _section(
            "cards",
            "Cards",
            "What the turns state, by whom or what it is about.",
            sections.cards(rows),
        ),
        None
        if held is None
        else _section("episodes", "Episodes", "What recurred, gathered.", held),
    )


def _section(key: str, title: str, lead: str | None, *content: str | None) -> Html:
    return element(
        "section",
        element("h2", title, id=f"{key}-title"),
        None if lead is None else element("p", lead, class_="lead"),
        *content,
        id=key,
        aria_labelledby=f"{key}-title",
    )


def _shown(data: Mapping[str, Any]) -> str:
    shown, older = len(data["turns"]), data["left_out"]
    said = "Open a turn to see its decay, its score and what was decided about it."
    if older:
        said += (
            f" These are the newest {number(shown)}; {counted(older, 'older turn')} "
            f"{'is' if older == 1 else 'are'} left out, and so is what concerns them alone."
        )
    return said


def _questions(data: Mapping[str, Any]) -> Html:
    """The box for saved questions; what they found is shown by the script."""
    if not data["questions"]:
        hint = element("code", 'ebbtide inspect --store … --question "…"')
        return element(
            "p", "No question was saved. ", hint, " keeps its trace in the page.", class_="empty"
        )
    options = [element("option", value=q["question"]) for q in data["questions"]]
    return join(
        element(
            "form",
            element(
                "label",
                element("span", "Ask again"),
                element("input", type="search", name="question", list="saved", autocomplete="off"),
                class_="field",
            ),
            element("datalist", *options, id="saved"),
            id="ask",
            hidden=True,
        ),
        element(
            "ul",
            *(
                element("li", element("button", q["question"], type="button", data_question=place))
                for place, q in enumerate(data["questions"])
            ),
            class_="saved",
            aria_label="Saved questions",
        ),
        element("p", id="asked", class_="soft", role="status"),
        element("div", id="trace"),
    )


def _embedded(data: Mapping[str, Any]) -> str:
    """The data as JSON that cannot end its element or begin a comment."""
    slim = [{k: v for k, v in row.items() if k not in _DRAWN} for row in data["turns"]]
    names = ("settings", "series", "questions")
    document = {name: data[name] for name in names} | {
        "turns": slim,
        "newest": data["memory"]["next_id"] - 1,
        "words": FATE_WORDS,
    }
    text = json.dumps(document, ensure_ascii=True, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _file(name: str) -> str:
    place = resources.files("ebbtide.inspection") / "assets" / name
    return place.read_text(encoding="utf-8")
