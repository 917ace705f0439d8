"""The page in headless Chromium: what opens, what filters, what axe-core has to say.

Screenshots of both widths and both colour schemes are left in the test's folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Config, Memory
from ebbtide.inspection import gather, inspection_page

from .conftest import QUESTIONS, SCRIPT

SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
OPEN = "li.turn details[open]"

Opener = Callable[..., Any]


@pytest.fixture
def written(data: dict[str, Any], tmp_path: Path) -> Path:
    file = tmp_path / "memory.html"
    file.write_text(inspection_page(data), encoding="utf-8")
    return file


@pytest.fixture
def opened(browser: Any, written: Path) -> Iterator[Opener]:
    """Opens the page; errors, and requests for anything but the page, fail the test."""
    trouble: list[str] = []
    contexts: list[Any] = []

    def go(
        size: str = "desktop", scheme: str = "light", anchor: str = "", file: Path = written
    ) -> Any:
        width, height = SIZES[size]
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, offline=True
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: trouble.append(dialog.message))
        page.on("request", lambda r: r.url.startswith("file:") or trouble.append(r.url))
        page.goto(f"{file.as_uri()}{anchor}")
        return page

    yield go
    for context in contexts:
        context.close()
    assert trouble == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_axe_finds_nothing_and_nothing_sticks_out(
    opened: Opener, size: str, scheme: str, tmp_path: Path
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe-core")
    page = opened(size, scheme, "#turn-4")
    assert page.locator(OPEN).count() == 1
    for summary in (".candidate summary", ".rest > summary"):
        page.locator(summary).first.click()
    page.screenshot(path=tmp_path / f"{size}-{scheme}.png")
    assert (tmp_path / f"{size}-{scheme}.png").stat().st_size > 10_000
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width == SIZES[size][0]
    found = axe.Axe().run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []


def test_a_turn_opens_and_tells_its_life(opened: Opener, data: dict[str, Any]) -> None:
    page = opened()
    item = page.locator("#turn-8")
    item.locator("summary").click()
    assert item.locator(".why").is_visible()
    assert item.locator(".decay svg[role=img]").get_attribute("aria-label").startswith("Decay from")
    assert item.locator(".bars tr").count() == len(data["turns"][8]["score"])
    assert item.locator(".log li").count() == len(data["turns"][8]["decisions"])
    assert page.locator("#overview .chosen").get_attribute("d").startswith("M")
    item.locator("summary").click()
    item.locator("summary").click()
    assert item.locator(".decay").count() == 1  # made once


def test_links_open_the_turn_they_name(opened: Opener) -> None:
    page = opened()
    page.locator(".thread a").first.click()
    assert page.locator(OPEN).count() == 1
    page.locator(".thread a").first.click()
    opened_turn = page.locator(OPEN).locator("summary")
    assert opened_turn.evaluate("node => node === document.activeElement")


def test_a_link_shows_a_turn_that_the_filters_hide(opened: Opener) -> None:
    page = opened()
    page.get_by_label("Search turns").fill("no turn says this")
    assert page.locator("#none").is_visible()
    page.evaluate("location.hash = '#turn-8'")
    page.locator(f"#turn-8 {OPEN.split()[-1]}").wait_for()
    assert page.locator("#turn-8").is_visible()
    assert page.get_by_label("Search turns").input_value() == ""


def test_filters_hide_what_does_not_fit(opened: Opener, data: dict[str, Any]) -> None:
    page = opened()
    status = page.locator("#filters [role=status]")
    assert status.inner_text() == "70 of 70 turns"
    page.get_by_label("Search turns").fill("CAT garden")
    wanted = [row for row in data["turns"] if "cat" in row["text"]]
    assert status.inner_text() == f"{len(wanted)} of 70 turns"
    assert page.locator("li.turn:visible").count() == len(wanted)
    page.get_by_label("Speaker").select_option("Ole")
    wanted = [row for row in wanted if row["speaker"] == "Ole"]
    assert page.locator("li.turn:visible").count() == len(wanted)
    page.get_by_label("Search turns").fill("")
    page.get_by_label("Speaker").select_option("")
    page.get_by_label("Show").select_option("related")
    related = {turn for thread in data["threads"] for turn in thread["turns"]}
    assert page.locator("li.turn:visible").count() == len(related)
    page.get_by_label("Show").select_option("")
    page.locator("input[name=fate][value=hard_kill]").uncheck()
    kept = [row for row in data["turns"] if row["fate"] != "hard_kill"]
    assert status.inner_text() == f"{len(kept)} of 70 turns"


def test_the_keyboard_is_enough(opened: Opener) -> None:
    page = opened()
    page.locator("#turn-0 summary").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator(OPEN).count() == 1
    assert page.locator("#turn-2 details").get_attribute("open") is not None
    page.keyboard.press("ArrowUp")
    focused = page.evaluate("document.activeElement.closest('li').id")
    assert focused == "turn-1"


def test_saved_questions_are_replayed(opened: Opener, data: dict[str, Any]) -> None:
    page = opened()
    trace = page.locator("#trace")
    assert trace.locator("h3").inner_text() == QUESTIONS[0]
    evidence = trace.locator(".block .candidates > li")
    assert evidence.count() == len(data["questions"][0]["evidence"])
    evidence.first.locator("summary").click()
    assert evidence.first.locator(".bars tr").count() > 0
    page.get_by_role("button", name=QUESTIONS[1]).click()
    assert trace.locator("h3").inner_text() == QUESTIONS[1]
    box = page.get_by_label("Ask again")
    box.fill("PORT")
    assert trace.locator("h3").inner_text() == QUESTIONS[0]
    box.fill("who is the king")
    assert "not among the saved ones" in page.locator("#asked").inner_text()


def test_the_chart_reads_out_the_turn_under_the_pointer(opened: Opener) -> None:
    page = opened()
    box = page.locator("#overview .plot").first.bounding_box()
    page.mouse.move(box["x"] + 1, box["y"] + 10)
    assert page.locator(".readout").inner_text().startswith("turn 0: Ω 0.")
    page.mouse.click(box["x"] + box["width"] - 1, box["y"] + 10)
    page.locator("#turn-69 details[open]").wait_for()


def test_markup_in_a_turn_stays_text(opened: Opener, data: dict[str, Any]) -> None:
    page = opened()
    (number,) = [row["id"] for row in data["turns"] if row["text"] == SCRIPT]
    item = page.locator(f"#turn-{number}")
    item.locator("summary").click()
    assert item.locator(".text").inner_text() == SCRIPT
    assert page.locator("li.turn script, li.turn b, li.turn i").count() == 0


def test_motion_is_nobodys_surprise(opened: Opener) -> None:
    page = opened()
    moving = """[...document.querySelectorAll('*')].filter((node) => {
        const style = getComputedStyle(node);
        return style.scrollBehavior === 'smooth' || parseFloat(style.transitionDuration) > 0
            || style.animationName !== 'none';
    }).length"""
    assert page.evaluate(moving) == 0


def test_an_empty_memory_opens(stub: Config, opened: Opener, tmp_path: Path) -> None:
    with Memory.in_memory(config=stub) as memory:
        file = tmp_path / "empty.html"
        file.write_text(inspection_page(gather(memory)), encoding="utf-8")
    page = opened(file=file)
    assert page.get_by_text("The memory holds no turn.").is_visible()


@pytest.mark.long
def test_two_thousand_turns_lay_out_only_what_is_seen(
    quick: Config, opened: Opener, tmp_path: Path
) -> None:
    with Memory.in_memory(config=quick) as memory:
        memory.add_many({"content": f"turn {n} of the long garden plan"} for n in range(2_500))
        file = tmp_path / "long.html"
        file.write_text(inspection_page(gather(memory)), encoding="utf-8")
    page = opened(file=file)
    assert page.locator("li.turn").count() == 2_000
    # content-visibility skips the rows that are far away.
    seen = """[...document.querySelectorAll('li.turn .text')]
        .filter((node) => node.checkVisibility({ contentVisibilityAuto: true })).length"""
    assert page.evaluate(seen) < 200
    page.get_by_label("Search turns").fill("turn 2499")
    assert page.locator("#filters [role=status]").inner_text() == "1 of 2,000 turns"
