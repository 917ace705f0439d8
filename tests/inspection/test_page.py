"""The page as a text: complete, escaped, self-contained; no browser is needed."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib import resources
from typing import Any

import pytest

from ebbtide import Config, Memory
from ebbtide.inspection import gather, inspection_page
from ebbtide.inspection.life import FATES
from ebbtide.inspection.markup import Html, element, join
from ebbtide.inspection.rows import FATE_WORDS
from ebbtide.messages import counted

from .conftest import QUESTIONS, SCRIPT

_VOID = {"input", "link", "meta", "br"}


class Reader(HTMLParser):
    """Elements with their attributes, texts by element, and whether all were closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in self._open[-1:]:
            self.texts.setdefault(tag, []).append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def of_class(self, name: str) -> list[dict[str, str | None]]:
        return [a for _, a in self.elements if name in (a.get("class") or "").split()]


@pytest.fixture
def page(data: dict[str, Any]) -> str:
    return inspection_page(data)


@pytest.fixture
def read(page: str) -> Reader:
    return Reader(page)


def embedded(read: Reader) -> Any:
    (place,) = [n for n, attributes in enumerate(read.named("script")) if "type" in attributes]
    return json.loads(read.texts["script"][place])


def test_every_turn_is_there_with_its_reason(read: Reader, data: dict[str, Any]) -> None:
    said = "".join(read.texts["span"]) + "".join(read.texts["p"])
    assert len(read.of_class("turn")) == len(data["turns"]) == 70
    for row in data["turns"]:
        assert row["text"] in said
        assert row["why"] in said
    assert len(read.of_class("fade")) == 70


def test_what_a_turn_says_is_never_markup(page: str, read: Reader) -> None:
    assert SCRIPT in "".join(read.texts["span"])
    assert len(read.named("script")) == 2
    assert read.named("b") == read.named("i") == []
    assert not any("onload" in attributes for _, attributes in read.elements)
    assert "<script>alert" not in page
    assert "</script><!--" not in page


def test_the_data_for_the_script_cannot_end_its_element(read: Reader, data: dict[str, Any]) -> None:
    document = embedded(read)
    assert [trace["question"] for trace in document["questions"]] == QUESTIONS
    assert [row["id"] for row in document["turns"]] == [row["id"] for row in data["turns"]]
    assert not any("text" in row for row in document["turns"])
    assert document["newest"] == 69


def test_the_page_needs_nothing_from_outside(page: str, read: Reader) -> None:
    for _, attributes in read.elements:
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith("#")
    style = "".join(read.texts["style"])
    assert "url(" not in style
    assert "@import" not in style
    # Names of namespaces are no addresses that anyone asks for anything.
    assert set(re.findall(r"https?://[^\s\"']+", page)) == {"http://www.w3.org/2000/svg"}


def test_only_the_pages_own_script_may_run(read: Reader) -> None:
    (policy,) = (m["content"] for m in read.named("meta") if "http-equiv" in m)
    script = read.texts["script"][1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert policy.endswith(f"script-src 'sha256-{digest}'")


def test_ids_are_unique_and_links_lead_to_them(read: Reader) -> None:
    ids = [attributes["id"] for _, attributes in read.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = {(a["href"] or "")[1:] for a in read.named("a")}
    assert targets <= set(ids)
    for name in ("aria-labelledby", "list"):
        assert {a[name] for _, a in read.elements if name in a} <= set(ids)


def test_drawings_are_named_or_hidden(read: Reader) -> None:
    for attributes in read.named("svg"):
        assert attributes["aria-hidden"] == "true"
    images = [a for _, a in read.elements if a.get("role") == "img"]
    assert len(images) == 3
    assert all(a["aria-label"] for a in images)


def test_the_parts_hold_what_the_memory_holds(read: Reader, data: dict[str, Any]) -> None:
    cards = sum(len(row["cards"]) for row in data["turns"])
    assert len(read.of_class("card")) == cards > 0
    knots = sum(len(thread["turns"]) for thread in data["threads"])
    assert len(read.of_class("node")) == knots > 0
    edges = sum(len(thread["edges"]) for thread in data["threads"])
    assert len(read.of_class("edge")) == edges
    assert len(read.of_class("part")) == 6  # four sessions, one cut in two by another
    assert "Related by the caller" in read.texts["h3"]


def test_the_same_data_gives_the_same_page(page: str, data: dict[str, Any]) -> None:
    assert inspection_page(data) == page


def test_what_is_left_out_is_said(memory: Memory) -> None:
    page = inspection_page(gather(memory, limit=69))
    assert "These are the newest 69; 1 older turn is left out" in page
    assert "No question was saved." in page


def test_long_threads_and_many_cards_are_cut_with_a_word(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        memory.add_many({"content": f"the port is v{number}"} for number in range(60))
        page = inspection_page(gather(memory))
    assert "20 older turns of it not drawn." in page
    assert "<summary>48 more</summary>" in page


def test_an_empty_memory_has_a_page(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        page = inspection_page(gather(memory))
    for words in ("The memory holds no turn.", "No turn relates to another.", "gave a card"):
        assert words in page
    Reader(page)


def test_episodes_and_facts_have_their_part(data: dict[str, Any]) -> None:
    excerpt = {"interaction_id": 3, "start": 0, "end": 5, "text": "[8 May 2023 Ana] <tea>"}
    episode = {"id": 1, "version": 2, "at": 9, "sources": [3, 5], "sentences": [excerpt]}
    fact = {"id": 0, "episode": 1, "excerpt": excerpt, "reasons": [], "topics": []}
    page = inspection_page({**data, "episodes": [episode], "facts": [fact]})
    assert page.count("[8 May 2023 Ana] &lt;tea&gt;") == 2
    assert "version 2, 2 turns" in page
    assert 'href="#episodes"' in page
    Reader(page)


def test_gone_turns_without_a_log_still_have_a_page(memory: Memory) -> None:
    data = gather(memory)
    data["turns"][0] |= {"fate": "archived", "left_at": None}
    Reader(inspection_page(data))


def test_every_fate_has_a_word_and_a_colour() -> None:
    style = (resources.files("ebbtide.inspection") / "assets" / "page.css").read_text("utf-8")
    for fate in FATES:
        assert FATE_WORDS[fate]
        assert re.search(rf"\.{fate}\b[^{{]*\{{ --ink:", style), fate


# Colours


def colours(scheme: str) -> dict[str, tuple[float, ...]]:
    """The page's colours as linear RGB, in [0, 1], by variable."""
    style = (resources.files("ebbtide.inspection") / "assets" / "page.css").read_text("utf-8")
    light, dark = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    found = dict(re.findall(r"--(\w+): #([0-9a-f]{6});", light))
    if scheme == "dark":
        found |= dict(re.findall(r"--(\w+): #([0-9a-f]{6});", dark))
    return {
        name: tuple(linear(int(code[i : i + 2], 16)) for i in (0, 2, 4))
        for name, code in found.items()
    }


def linear(byte: int) -> float:
    share = byte / 255
    return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """Contrast ratio of WCAG 2, from 1 to 21."""
    light = [
        sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), rgb, strict=True))
        for rgb in (one, other)
    ]
    return (max(light) + 0.05) / (min(light) + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_and_tiers_stand_out(scheme: str) -> None:
    held = colours(scheme)
    for ground in ("page", "raised", "band"):
        for text in ("text", "soft", "accent", "critical"):
            assert contrast(held[text], held[ground]) >= 4.5, (text, ground)
    for tier in ("healthy", "unstable", "critical", "gone"):
        assert contrast(held[tier], held["page"]) >= 3.0, tier


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["protan", "deutan"])
def test_tiers_differ_without_red_or_green(kind: str, scheme: str) -> None:
    """Viénot, Brettel and Mollon (1999): both cones give one; blue stays as it is."""
    mixing = {"protan": (0.11238, 0.88762), "deutan": (0.29275, 0.70725)}[kind]
    held = colours(scheme)

    def seen(name: str) -> tuple[float, float]:
        red, green, blue = held[name]
        # As bytes: distances in linear light would make light too much of itself.
        yellow = mixing[0] * red + mixing[1] * green
        return (255 * yellow ** (1 / 2.2), 255 * blue ** (1 / 2.2))

    tiers = [seen(name) for name in ("healthy", "unstable", "critical")]
    for place, one in enumerate(tiers):
        for other in tiers[place + 1 :]:
            assert abs(one[0] - other[0]) + abs(one[1] - other[1]) > 60


# Elements


def test_elements_escape_texts_and_attributes() -> None:
    made = element(
        "p", "a < b & c", element("b", "x"), None, class_='"<', data_x=3, hidden=True, title=None
    )
    assert made == '<p class="&quot;&lt;" data-x="3" hidden>a &lt; b &amp; c<b>x</b></p>'
    assert join("<", Html("<i>")) == "&lt;<i>"
    assert element("input", name="x") == '<input name="x">'
    assert counted(1, "turn") == "1 turn"
    assert counted(1000, "turn") == "1,000 turns"
