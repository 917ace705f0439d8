"""The documentation site: it builds strictly, needs no network, and its links lead somewhere."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from reference.scripts import load_script

import ebbtide
from docs.test_docs import ROOT

FETCHED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src")}
FETCHED_LINKS = {"stylesheet", "icon", "preload", "preconnect", "modulepreload", "manifest"}


class Page(HTMLParser):
    """Ids, links and what a browser fetches by itself."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given: dict[str, Any] = dict(attrs)
        if given.get("id"):
            self.ids.add(given["id"])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        for name in ("src", "href"):
            is_link = tag == "link" and set(given.get("rel", "").split()) & FETCHED_LINKS
            if name in given and ((tag, name) in FETCHED or is_link):
                self.fetched.append(given[name])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make site` builds it; a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    found = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    assert len(found) > 30
    return found


def test_every_link_of_the_site_leads_somewhere(site: Path, pages: dict[Path, Page]) -> None:
    seen = 0
    for path, page in pages.items():
        if path.name == "404.html":  # its links are those of a site at the root of a server
            continue
        for link in page.links:
            if re.match(r"https?:|mailto:", link):
                continue
            target, _, anchor = unquote(link).partition("#")
            file = (path.parent / target).resolve() if target else path
            file = file / "index.html" if file.is_dir() else file
            assert file.is_file(), f"{path.relative_to(site)}: {link}"
            if anchor and file in pages:
                assert anchor in pages[file].ids, f"{path.name}: {link}"
            seen += 1
    assert seen > 1000


def test_the_site_fetches_nothing_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for target in page.fetched:
            assert not re.match(r"(https?:)?//", target), f"{path.relative_to(site)}: {target}"
            if path.name != "404.html":
                file = (path.parent / unquote(target.partition("?")[0])).resolve()
                assert file.is_file(), f"{path.relative_to(site)}: {target}"
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", text), sheet.name


def test_every_page_is_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    listed = set(re.findall(r"([\w/-]+\.md)", text))
    hooks = load_script("site_hooks")
    present = {p.relative_to(ROOT / "docs").as_posix() for p in ROOT.glob("docs/**/*.md")}
    assert listed == present | set(hooks.PAGES.values())


def test_links_to_the_repository_become_links_to_pages() -> None:
    turned = load_script("site_hooks").turned
    assert turned("[a](docs/recall.md#x)", "README.md") == "[a](recall.md#x)"
    assert turned("[a](../CHANGELOG.md)", "docs/faq.md") == "[a](changelog.md)"
    assert turned("[a](../cli.md)", "docs/api/index.md") == "[a](../cli.md)"
    assert turned("[a](../../README.md#b)", "docs/api/index.md") == "[a](../index.md#b)"
    assert turned("[a](../docs/recall.md)", "examples/README.md") == "[a](recall.md)"
    assert turned("[a](https://x.y/docs/z.md)", "README.md") == "[a](https://x.y/docs/z.md)"


def test_docstrings_become_markdown() -> None:
    plain = load_script("site_docstrings").plain
    assert plain("See :meth:`Memory.open` and ``x``.") == "See `Memory.open` and `x`."
    assert plain("A.\n\n    Example:\n        >>> 1") == "A.\n\n    Examples:\n        >>> 1"


def test_no_sphinx_role_is_left_in_the_reference(site: Path) -> None:
    for page in (site / "api").glob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r":(class|func|meth|mod|data|exc|attr):", text), page.name


def test_the_reference_has_every_public_name(pages: dict[Path, Page]) -> None:
    ids = set().union(*(page.ids for page in pages.values()))
    for name in ebbtide.__all__:
        if not name.startswith("__"):
            thing = getattr(ebbtide, name)
            assert {f"ebbtide.{name}", f"{thing.__module__}.{name}"} & ids, name


def test_the_figures_are_fresh() -> None:
    script = load_script("concept_figures")
    drawn = script.figures()
    assert sorted(drawn) == sorted(path.name for path in script.FOLDER.iterdir())
    for name, svg in drawn.items():
        written = (script.FOLDER / name).read_text(encoding="utf-8")
        assert written == svg, "run: python scripts/concept_figures.py"


def test_figures_take_the_colours_of_the_site(site: Path) -> None:
    page = (site / "concepts.html").read_text(encoding="utf-8")
    assert page.count('<figure class="drawn"><svg') == 3
    assert "--page:" not in page


def test_internals_name_every_table(tmp_path: Path) -> None:
    with ebbtide.Store.open(tmp_path / "memory.db"):
        pass
    connection = sqlite3.connect(tmp_path / "memory.db")
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
    connection.close()
    page = (ROOT / "docs" / "internals.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", page.partition("| table |")[2], re.MULTILINE)
    listed = set(re.findall(r"`(\w+)`", " ".join(rows)))
    assert listed == {name for name in tables if not name.startswith("sqlite_")}


def test_the_site_works_from_a_folder_and_searches(browser: Any, site: Path) -> None:
    trouble: list[str] = []
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda r: r.url.startswith("file:") or trouble.append(r.url))
    page.goto((site / "api" / "memory.html").as_uri())
    page.locator(".md-search__input").press_sequentially("hard kill")
    page.wait_for_selector(".md-search-result__item a")
    assert "Concepts" in page.inner_text(".md-search-result__list")
    page.close()
    assert trouble == []


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("index", 390, "light"),
        ("cli", 1300, "light"),
        ("cli", 390, "dark"),
        ("results", 390, "light"),
    ],
)
def test_nothing_sticks_out_and_axe_finds_nothing_serious(
    browser: Any, site: Path, name: str, width: int, scheme: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe-core")
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto((site / f"{name}.html").as_uri())
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    found = axe.Axe().run(page).response["violations"]
    page.close()
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    assert [(one["id"], one["nodes"][0]["html"]) for one in serious] == []
