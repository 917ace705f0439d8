"""What the documentation site does beyond Markdown; mkdocs.yml names it as its hooks.

The README and its neighbours lie outside docs/. They become pages here, and links to them
are turned, so that one text serves the repository and the site. Figures are put into the
page itself, where they take its colours.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

__all__ = ["PAGES", "on_files", "on_page_content", "on_page_markdown", "on_post_page", "turned"]

ROOT = Path(__file__).resolve().parent.parent

PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/README.md": "examples.md",
    "LICENSE": "licence.md",
}
"""Files of the repository that are pages of the site, by the name they have there."""

_SEARCH = 'data-md-component="search" role="dialog"'
_NAMED_SEARCH = f'{_SEARCH} aria-label="Search"'
_LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)")
_FIGURE = re.compile(r'<p><img alt="[^"]*" src="(figures/[\w-]+\.svg)" ?/?></p>')
_SHADES = re.compile(r"(?<=<style>).*?/\* rules \*/", re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that lie outside docs/."""
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        if source == "LICENSE":
            text = f"# Licence\n\n{text}"
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turn links between docs/ and the rest of the repository."""
    places = {page: source for source, page in PAGES.items()}
    name = page.file.src_uri
    return turned(markdown, places.get(name, f"docs/{name}"))


def turned(markdown: str, source: str) -> str:
    """The page with each link to a file of the repository leading to that file's page.

    Args:
        markdown: The text of the page.
        source: Where it lies in the repository.
    """
    folder = Path(source).parent
    depth = "../" * (source.count("/") - 1) if source.startswith("docs/") else ""

    def turn(match: re.Match[str]) -> str:
        target = (ROOT / folder / match.group(1)).resolve().relative_to(ROOT).as_posix()
        page = PAGES.get(target)
        if page is None and target.startswith("docs/"):
            page = target.removeprefix("docs/")
        return match.group(1) if page is None else depth + page

    return _LINK.sub(turn, markdown)


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Put the figures into the page, without the colours that they have alone."""

    def inlined(match: re.Match[str]) -> str:
        svg = (ROOT / "docs" / match.group(1)).read_text(encoding="utf-8")
        return f'<figure class="drawn">{_SHADES.sub("", svg)}</figure>'

    return _FIGURE.sub(inlined, html)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Give the theme's search dialog the name that screen readers say."""
    return output.replace(_SEARCH, _NAMED_SEARCH)
