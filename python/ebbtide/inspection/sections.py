"""The other parts of the page: the summary, the charts, lineage, cards, episodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ebbtide.inspection.charts import active_chart, gutter, omega_chart, token_chart, token_top
from ebbtide.inspection.life import Decay
from ebbtide.inspection.markup import Html, element, join, number
from ebbtide.inspection.series import TIERS
from ebbtide.messages import counted

__all__ = ["cards", "charts", "episodes", "lineage", "summary"]

_THREADS = 200
"""Lineage threads that are drawn; the newest ones."""

_KNOTS = 40
"""Turns of a thread that are drawn; the newest ones."""

_CARDS = 12
"""Cards of a subject that are in view at once; the rest opens."""


def summary(memory: Mapping[str, Any]) -> Html:
    """The memory in a handful of figures."""
    decisions = memory["decisions"]
    archived = [
        f"{number(decisions[kind])} {words}"
        for kind, words in (
            ("evict_kill", "decayed"),
            ("evict_budget", "over the budget"),
            ("skip", "kept out by the gate"),
        )
        if decisions.get(kind)
    ]
    gone = sum(count for name, count in memory["validity"].items() if name != "current")
    figures = [
        _figure("Turns", number(memory["turns"]), _pending(memory)),
        _figure("Active", number(memory["active"]), tier_bar(memory["tiers"])),
        _figure("Archived", number(memory["archived"]), ", ".join(archived) or "none so far"),
        _figure("Active tokens", number(memory["active_tokens"]), _budget(memory)),
        _figure("No longer current", number(gone), counted(memory["relations"], "relation")),
    ]
    return element("dl", *figures, class_="figures")


def _pending(memory: Mapping[str, Any]) -> str:
    cards = counted(memory["cards"], "card")
    waiting = memory["pending"]
    return f"{cards}, {number(waiting)} waiting for analysis" if waiting else cards


def _figure(name: str, value: str, *rest: str) -> Html:
    return element(
        "div",
        element("dt", name),
        element("dd", element("strong", value), *(element("span", part) for part in rest)),
    )


def tier_bar(tiers: Mapping[str, int]) -> Html:
    """Active turns by tier: a bar, and the numbers in words."""
    bars = [
        element("span", class_=f"part-of {tier}", style=f"flex-grow:{tiers.get(tier, 0)}")
        for tier in TIERS
        if tiers.get(tier, 0)
    ]
    words = ", ".join(f"{number(tiers.get(tier, 0))} {tier}" for tier in TIERS)
    return join(element("span", *bars, class_="bar", aria_hidden="true"), words)


def _budget(memory: Mapping[str, Any]) -> Html:
    used, budget = memory["active_tokens"], memory["token_budget"]
    share = min(100.0 * used / budget, 100.0) if budget else 100.0
    filled = element("span", class_="part-of tokens", style=f"width:{share:.1f}%")
    words = f"of {number(budget)} ({100.0 * used / max(budget, 1):.0f} %)"
    return join(element("span", filled, class_="bar", aria_hidden="true"), words)


def charts(data: Mapping[str, Any], decay: Decay) -> Html:
    """Ω over the turns, tiers and tokens of the active memory under it, on one axis."""
    rows, series = data["turns"], data["series"]
    most = max((sum(c) for c in zip(*(series[t] for t in TIERS), strict=True)), default=0)
    top = token_top(series, decay)
    tokens = f"at most {number(max(series['tokens'], default=0))}"
    budget = f"budget {number(decay.token_budget)}"
    first, last = rows[0]["id"], rows[-1]["id"]
    key = [
        element("span", element("span", class_=f"swatch {name}"), words, class_="key")
        for name, words in (*((tier, tier) for tier in TIERS), ("archived", "archived"))
    ]
    return element(
        "figure",
        element("figcaption", "Ω of every turn, and what the active memory held after it"),
        element("div", *key, class_="keys", aria_hidden="true"),
        _strip(
            "Ω",
            ["1", "0"],
            omega_chart(rows, decay),
            f"Survival Score of turns {first} to {last}; dashed lines at the tier bounds "
            f"{decay.healthy_min:g} and {decay.critical_max:g}. The list below has every value.",
            "tall",
        ),
        _strip(
            "active turns",
            [number(most), "0"],
            active_chart(series),
            f"Active turns by tier after each insertion, at most {number(most)}.",
        ),
        _strip(
            "active tokens",
            [number(top), "0"],
            token_chart(series, decay),
            f"Active tokens after each insertion, {tokens}, {budget}.",
        ),
        element(
            "p",
            element("span", f"turn {first}"),
            element("output", class_="readout"),
            element("span", f"turn {last}"),
            class_="axis",
        ),
        class_="overview",
        id="overview",
        data_first=first,
        data_last=last,
    )


def _strip(name: str, ends: Sequence[str], drawn: Html, alt: str, size: str = "") -> Html:
    scale = element("div", element("span", ends[0]), element("span", ends[1]), class_="scale")
    return element(
        "div",
        element("p", name, class_="label"),
        element("div", scale, element("div", drawn, class_="plot"), role="img", aria_label=alt),
        class_=f"strip {size}".rstrip(),
    )


def lineage(data: Mapping[str, Any]) -> Html:
    """Threads of related turns, older above newer, their relations as arcs at the left."""
    rows = {row["id"]: row for row in data["turns"]}
    found = data["threads"]
    parts = [_thread(thread, rows) for thread in found[:_THREADS]]
    if len(found) > _THREADS:
        words = f"{number(len(found) - _THREADS)} older threads are not drawn."
        parts.append(element("p", words, class_="soft"))
    if not parts:
        return element("p", "No turn relates to another.", class_="empty")
    return element("div", *parts, class_="threads")


def _thread(thread: Mapping[str, Any], rows: Mapping[int, Mapping[str, Any]]) -> Html:
    topics = dict.fromkeys(edge["topic"] for edge in thread["edges"] if edge["topic"])
    whole, shown = len(thread["turns"]), thread["turns"][-_KNOTS:]
    drawn = [edge for edge in thread["edges"] if edge["older"] >= shown[0]]
    ending: dict[int, list[Mapping[str, Any]]] = {}
    for edge in thread["edges"]:
        ending.setdefault(edge["newer"], []).append(edge)
    turns = [_knot(rows[number], ending.get(number, ())) for number in shown]
    older = counted(whole - len(shown), "older turn")
    return element(
        "section",
        element("h3", "; ".join(topics) or "Related by the caller"),
        element("p", f"{older} of it not drawn.", class_="soft") if whole > len(shown) else None,
        element("div", gutter(shown, drawn), element("ol", *turns), class_="graph"),
        class_="thread",
    )


def _knot(row: Mapping[str, Any], edges: Sequence[Mapping[str, Any]]) -> Html:
    said = [
        f"{edge['relation'].replace('_', ' ')} {edge['older']}"
        + (" (said by the caller)" if edge["by_caller"] else "")
        for edge in edges
    ]
    return element(
        "li",
        element(
            "p",
            element("a", f"Turn {row['id']}", href=f"#turn-{row['id']}"),
            element("span", row["speaker"] or row["role"], class_="soft"),
            element("span", row["day"] or "", class_="soft day"),
            *(element("span", words, class_="mark") for words in said),
            element("span", row["validity"], class_="mark gone")
            if row["validity"] != "current"
            else None,
            class_="head",
        ),
        element("p", row["text"], class_="said", dir="auto"),
    )


def cards(rows: Sequence[Mapping[str, Any]]) -> Html:
    """What the cards state, by subject; what no longer stands is marked."""
    subjects: dict[str, list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = {}
    for row in rows:
        for card in row.get("cards", ()):
            subjects.setdefault(card["subject"], []).append((row, card))
    if not subjects:
        return element("p", "No turn gave a card.", class_="empty")
    ordered = sorted(subjects.items(), key=lambda item: (-len(item[1]), item[0]))
    parts = [
        element(
            "section",
            element("h3", subject, " ", element("span", counted(len(held), "card"), class_="soft")),
            *_card_lists([_card(row, card) for row, card in held]),
            class_="subject",
        )
        for subject, held in ordered
    ]
    return element("div", *parts, class_="subjects")


def _card_lists(items: Sequence[Html]) -> Iterator[Html]:
    yield element("ul", *items[:_CARDS])
    more = items[_CARDS:]
    if more:
        yield element(
            "details",
            element("summary", f"{number(len(more))} more"),
            element("ul", *more),
            class_="rest",
        )


def _card(row: Mapping[str, Any], card: Mapping[str, Any]) -> Html:
    predicate = card["predicate"].replace("_", " ")
    gone = card["validity"] != "current"
    return element(
        "li",
        element(
            "p",
            element(
                "span", f"not {predicate}" if card["negated"] else predicate, class_="predicate"
            ),
            " ",
            element("span", card["object"], class_="object"),
            " ",
            element("span", card["validity"], class_="mark gone") if gone else None,
            " ",
            element("span", card["kind"].replace("_", " "), class_="soft"),
        ),
        element(
            "a",
            f"{row['id']}",
            href=f"#turn-{row['id']}",
            aria_label=f"Turn {row['id']}, where it was said",
        ),
        class_="card gone" if gone else "card",
    )


def episodes(data: Mapping[str, Any]) -> Html | None:
    """Episodes and facts, where consolidation made some."""
    if not data["episodes"] and not data["facts"]:
        return None
    made = [
        element(
            "li",
            element(
                "p",
                element("strong", f"Episode {episode['id']}"),
                element(
                    "span",
                    f"version {episode['version']}, {counted(len(episode['sources']), 'turn')}",
                    class_="soft",
                ),
                class_="head",
            ),
            element("ul", *(_sentence(s) for s in episode["sentences"])),
            class_="episode",
        )
        for episode in data["episodes"]
    ]
    facts = [_sentence(fact["excerpt"]) for fact in data["facts"]]
    return join(
        element("ol", *made, class_="episodes"),
        element("h3", "Facts beside them") if facts else None,
        element("ul", *facts, class_="facts") if facts else None,
    )


def _sentence(excerpt: Mapping[str, Any]) -> Html:
    where = excerpt["interaction_id"]
    return element("li", excerpt["text"], " ", element("a", f"turn {where}", href=f"#turn-{where}"))
