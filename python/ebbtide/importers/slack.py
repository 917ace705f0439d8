"""Slack: the workspace export, as the zip it comes in or unpacked.

A folder a channel with a file a day; threads go on in the files of later days, so a
channel's messages are told apart by their time stamps and not by their files.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from ebbtide.importers.files import Part
from ebbtide.importers.reading import Reading, Thread
from ebbtide.importers.texts import Words, as_list, as_mapping, as_text, clean, identifier, moment
from ebbtide.inputs import readable
from ebbtide.types import Turn

__all__ = ["looks_like", "turns"]

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\.json")
_STAMP = re.compile(r"(\d{1,12})(?:\.(\d{1,6}))?")
_SAID = (
    None,
    "bot_message",
    "file_comment",
    "file_share",
    "me_message",
    "reply_broadcast",
    "thread_broadcast",
)
_CHANNELS = ("channels.json", "groups.json", "mpims.json", "dms.json")
_ANGLES = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")


def looks_like(item: Mapping[str, Any]) -> bool:
    """Whether this is one of its messages."""
    return isinstance(item.get("ts"), str) and item.get("type") == "message"


def turns(reading: Reading) -> Iterator[Turn]:
    """The turns, channel by channel; the channels in the order of their first day."""
    folders: dict[str, list[Part]] = {}
    for part in reading.parts:
        if _DAY.fullmatch(part.name):
            folders.setdefault(_folder(part), []).append(part)
    if not folders:
        words = "there is no day file such as general/2025-01-31.json in it; give Slack's zip"
        raise reading.error(words)
    people = _people(reading)
    channels = _channels(reading)
    for folder in sorted(folders, key=lambda name: (folders[name][0].name, name)):
        channel = channels.get(folder, {})
        members = [people.get(as_text(m), as_text(m)) for m in as_list(channel.get("members"))]
        name = as_text(channel.get("name"))
        title = f"#{name}" if name else ", ".join(filter(None, members))[:100] or readable(folder)
        thread = reading.thread(identifier(channel.get("id")) or readable(folder), title)
        if reading.wants(thread):
            for part in folders[folder]:
                yield from _day(reading, thread, part, people)


def _folder(part: Part) -> str:
    parent = PurePosixPath(part.inner).parent.name
    return parent or (part.path if part.path.is_dir() else part.path.absolute().parent).name


def _listed(reading: Reading, name: str) -> Iterator[Mapping[str, Any]]:
    for part in reading.parts:
        if part.name == name:
            for item in reading.json(part).documents():
                yield as_mapping(item)


def _people(reading: Reading) -> dict[str, str]:
    """Names by id; the display name is what was seen in the channel."""
    return {
        as_text(user.get("id")): _name(as_mapping(user.get("profile")), user)
        for user in _listed(reading, "users.json")
    }


def _name(*sources: Mapping[str, Any]) -> str:
    keys = ("display_name", "real_name", "name")
    names = (clean(as_text(source.get(key))) for source in sources for key in keys)
    return next(filter(None, names), "")


def _channels(reading: Reading) -> dict[str, Mapping[str, Any]]:
    """Channels by their folder: called by name, direct messages by id."""
    found: dict[str, Mapping[str, Any]] = {}
    for name in _CHANNELS:
        for channel in _listed(reading, name):
            folder = as_text(channel.get("name")) or as_text(channel.get("id"))
            found.setdefault(folder, channel)
    return found


def _day(reading: Reading, thread: Thread, part: Part, people: Mapping[str, str]) -> Iterator[Turn]:
    messages: list[tuple[tuple[int, int], Mapping[str, Any]]] = []
    for number, item in enumerate(reading.json(part).documents(), 1):
        stamp = _STAMP.fullmatch(as_text(as_mapping(item).get("ts")))
        if not isinstance(item, Mapping) or stamp is None:
            problem = f"item {number} is no Slack message, it has no `ts`; check the format"
            raise reading.error(problem, part.place)
        messages.append(((int(stamp[1]), int((stamp[2] or "0").ljust(6, "0"))), item))
    messages.sort(key=lambda pair: pair[0])
    for (seconds, micros), item in messages:
        words = _words(item, people)
        if not words.text:
            reading.skip(words.reason)
            continue
        when = reading.moment(seconds)
        if when is not None and micros:
            when = when.replace("+", f".{micros:06d}+")
        root = as_text(item.get("thread_ts"))
        yield reading.said(
            thread,
            item["ts"],
            words.text,
            role="assistant" if item.get("bot_id") or "bot" in _kind(item) else "user",
            speaker=_speaker(item, people),
            timestamp=when,
            edited=_edited(item),
            reply_to=f"{thread.key}/{root}" if root and root != item["ts"] else None,
        )


def _kind(item: Mapping[str, Any]) -> str:
    return as_text(item.get("subtype"))


def _edited(item: Mapping[str, Any]) -> str | None:
    stamp = _STAMP.fullmatch(as_text(as_mapping(item.get("edited")).get("ts")))
    return moment(int(stamp[1])) if stamp else None


def _speaker(item: Mapping[str, Any], people: Mapping[str, str]) -> str:
    user = as_text(item.get("user"))
    return (
        people.get(user)
        or _name(as_mapping(item.get("user_profile")))
        or as_text(item.get("username"))
        or _name(as_mapping(item.get("bot_profile")))
        or user
    )


def _words(item: Mapping[str, Any], people: Mapping[str, str]) -> Words:
    kind = item.get("subtype")
    if kind in ("tombstone", "message_deleted"):
        return Words("", "deleted")
    if item.get("hidden") is True:
        return Words("", "hidden")
    if item.get("type") not in (None, "message") or kind not in _SAID:
        return Words("", "system")
    text = _plain(as_text(item.get("text")), people)
    # Under words an attachment is the preview of a link; alone it is the message.
    text = text or "\n".join(
        line
        for attachment in map(as_mapping, as_list(item.get("attachments")))
        if (
            line := _plain(
                as_text(attachment.get("text")) or as_text(attachment.get("fallback")), people
            )
        )
    )
    return Words(text, "attachment" if as_list(item.get("files")) else "empty")


def _plain(text: str, people: Mapping[str, str]) -> str:
    """Slack's own marks as words: ``<@U2>`` is ``@Ben``, ``&lt;`` is ``<``."""

    def words(match: re.Match[str]) -> str:
        target, label = match.group(1), match.group(2) or ""
        if target.startswith("@"):
            return "@" + (people.get(target[1:]) or label or target[1:])
        if target.startswith("#"):
            return "#" + (label or target[1:])
        if target.startswith("!"):
            special = target[1:].partition("^")[0]
            return label if label and special not in ("here", "channel") else f"@{special}"
        address = target.removeprefix("mailto:").removeprefix("tel:")
        return f"{label} ({address})" if label and label not in (address, target) else address

    return clean(html.unescape(_ANGLES.sub(words, text)))
