"""The words of a piece of HTML.

Read by one expression that, wherever markup opens, takes it to its end or to the end of
the text, as a browser does: whatever never closes is looked at once. ``html.parser`` looks
at the rest again for every mark that stays open, and reads it otherwise from one version
of Python to the next.
"""

from __future__ import annotations

import re
from html import unescape

from ebbtide.importers.texts import clean

__all__ = ["from_html"]

_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "br",
        "dd",
        "div",
        "dl",
        "dt",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "table",
        "tr",
        "ul",
    ]
)
_KEPT = {ord(" "): "\ufdd0", ord("\n"): "\ufdd1", ord("\t"): "\ufdd2"}
"""Space inside ``pre`` hides behind noncharacters while the rest is collapsed."""
_FREED = {ord(mark): chr(space) for space, mark in _KEPT.items()}
_RUN = re.compile(r"\s+")
_BREAKS = re.compile(r"(?<! ) *(?:\n *)+")
"""From the first space of a run, so that a long run without a break is read once."""
_BARE_ITEM = re.compile(r"\n- ?\n")
"""A list item that begins with a block of its own."""
_UNSEEN = frozenset(["script", "style", "template", "head"])
_RAW = {tag: re.compile(rf"</{tag}(?![^\s/>])|\Z", re.IGNORECASE) for tag in ("script", "style")}
"""Where the words of an element that holds no markup end."""
_TAG = re.compile(r"<[^<>]*>")
_ATTRIBUTE = r"""[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:"[^"]*+"?|'[^']*+'?|[^\s>]*+))?+"""
_MARKUP = re.compile(
    rf"""<(?:
        !--(?:-?(?=>)|.*?--!?(?=>)|.*)
        | !\[CDATA\[(?:.*?\]\](?=>)|.*)
        | (?P<end>/?)(?P<name>[a-zA-Z][^\s/>]*+)(?:[\s/]++|{_ATTRIBUTE})*+
        | [!?/][^>]*+
    )(?:>|(?P<unclosed>))""",
    re.DOTALL | re.VERBOSE,
)


class _Text:
    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._unseen = 0
        self._verbatim = 0

    def start(self, tag: str) -> None:
        self._unseen += tag in _UNSEEN
        self._verbatim += tag == "pre"
        if tag in _BLOCKS:
            self.pieces.append("\n- " if tag == "li" else "\n")
        elif tag in ("td", "th"):
            self.pieces.append(" ")

    def end(self, tag: str) -> None:
        self._unseen -= tag in _UNSEEN and self._unseen > 0
        self._verbatim -= tag == "pre" and self._verbatim > 0
        if tag in _BLOCKS:
            self.pieces.append("\n")

    def words(self, text: str) -> None:
        if not self._unseen:
            text = _unescaped(text)
            self.pieces.append(text.translate(_KEPT) if self._verbatim else _RUN.sub(" ", text))


def from_html(html: str) -> str:
    """The words of a piece of HTML: blocks in lines of their own, ``- `` before list items.

    Of markup that never closes, and what follows it, the words are kept.
    """
    text = _Text()
    at = 0
    while found := _MARKUP.search(html, at):
        text.words(html[at : found.start()])
        at = found.end()
        if found["unclosed"] is not None:
            text.words(_TAG.sub(" ", found[0]))
        elif found["name"]:
            tag = found["name"].lower()
            if not found["end"]:
                text.start(tag)
            if found["end"] or found[0].endswith("/>"):
                text.end(tag)
            elif tag in _RAW and (end := _RAW[tag].search(html, at)):
                at = end.start()
    text.words(html[at:])
    lines = _BREAKS.sub("\n", "".join(text.pieces))
    return clean(_BARE_ITEM.sub("\n- ", lines).translate(_FREED))


def _unescaped(text: str) -> str:
    try:
        return unescape(text)
    except ValueError:  # a character's number of thousands of digits
        return text
