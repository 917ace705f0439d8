"""Gemini: ``MyActivity.json`` of Google Takeout (choose JSON there), or the whole zip.

An activity log, newest entry first: each is a question with the answer to it. It does
not say which belong to one chat, so a day is a conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC
from typing import Any

from ebbtide.importers.files import Part
from ebbtide.importers.html import from_html
from ebbtide.importers.ordering import in_order
from ebbtide.importers.reading import Reading
from ebbtide.importers.texts import (
    as_list,
    as_mapping,
    as_text,
    aware,
    clean,
    digest,
    moment,
)
from ebbtide.types import Turn

__all__ = ["PRODUCT", "looks_like", "turns"]

PRODUCT = re.compile(r"gemini|bard", re.IGNORECASE)
"""What names it, in an archive or an activity; earlier it was called Bard."""

_PROMPT = re.compile(r"(?:Prompted|Said|Asked)(?:[\s:]+|$)")
_OTHER = re.compile(
    r"(?:Gave feedback|Used|Created|Selected|Viewed|Visited|Cancell?ed|Listened|Shared|Deleted)\b"
)


def looks_like(item: Mapping[str, Any]) -> bool:
    """Whether this is one of its entries."""
    return "title" in item and "header" in item and "time" in item


def turns(reading: Reading) -> Iterator[Turn]:
    """Questions and answers, the oldest first."""
    parts = [part for part in reading.parts if part.name.endswith((".json", ".json.gz"))]
    if len(reading.parts) > 1:  # an archive holds the activity of other products, too
        parts = [part for part in parts if PRODUCT.search(part.inner)] or [
            part for part in parts if part.name == "MyActivity.json"
        ]
    if not parts:
        words = "there is no MyActivity.json in it; in Google Takeout, choose JSON for My Activity"
        raise reading.error(words)
    yield from in_order(reading, _entries(reading, parts), newest_first=True)


def _entries(reading: Reading, parts: list[Part]) -> Iterator[list[Turn]]:
    for part in parts:
        for number, item in enumerate(reading.json(part).documents(), 1):
            if not isinstance(item, Mapping) or not looks_like(item):
                words = "is no activity, it lacks `header`, `title` or `time`; check the format"
                raise reading.error(f"item {number} {words}", part.place)
            yield _turns(reading, item)


def _turns(reading: Reading, item: Mapping[str, Any]) -> list[Turn]:
    when = moment(item["time"])
    zone = reading.options.timezone or UTC
    day = aware(when).astimezone(zone).date().isoformat() if when else "undated"
    thread = reading.thread(f"gemini-{day}", f"Gemini {day}", key="gemini")
    if not reading.wants(thread):
        return []
    title = as_text(item["title"])
    prompt = _PROMPT.match(title)
    html = [as_text(as_mapping(part).get("html")) for part in as_list(item.get("safeHtmlItem"))]
    answer = "\n".join(filter(None, (from_html(piece) for piece in html)))
    products = [as_text(item["header"]), *map(as_text, as_list(item.get("products")))]
    if not any(PRODUCT.search(name) for name in products) or (
        # In other languages the words before a prompt differ: the answer tells.
        prompt is None and (_OTHER.match(title) or not answer)
    ):
        reading.skip("attachment" if as_list(item.get("attachedFiles")) else "activity")
        return []
    reading.moment(item["time"])  # counted where it cannot be read
    question = clean(title[prompt.end() :] if prompt else title)
    name = digest(as_text(item["time"]), title)
    result: list[Turn] = []
    for role, text in (("user", question), ("assistant", answer)):
        if text:
            result.append(reading.said(thread, f"{name}-{role}", text, role=role, timestamp=when))
        elif role == "user":
            reading.skip("attachment" if as_list(item.get("attachedFiles")) else "empty")
    return result
