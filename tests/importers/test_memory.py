"""Large exports are read in bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from importers.makers import chat, message

READER = """
import resource, sys
from ebbtide.importers import read
export = read(sys.argv[1], sys.argv[2])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
turns = sum(1 for _ in export)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(turns, (after - before) * (1 if sys.platform == "darwin" else 1024))
"""
MEGABYTE = 1_000_000


def large(path: Path, size: int) -> int:
    """A ChatGPT export of so many bytes; the number of its messages."""
    count = 0
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        while file.tell() < size:
            at = 1.7e9 - count
            words = [f"message {count + n} " + "some words in it " * 25 for n in range(60)]
            parts = [message("user", text, time=at + n) for n, text in enumerate(words)]
            if count:
                file.write(", ")
            file.write(json.dumps(chat(f"c{count}", *parts, time=at)))
            count += len(parts)
        file.write("]")
    return count


def growth(name: str, path: Path) -> tuple[int, int]:
    """Messages read, and bytes of memory that this took at most, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", READER, name, str(path)], capture_output=True, text=True, check=True
    )
    turns, size = done.stdout.split()
    return int(turns), int(size)


def test_twenty_megabytes(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    count = large(path, 20 * MEGABYTE)
    turns, size = growth("chatgpt", path)
    assert turns == count
    # The spool stays in memory up to 8 MB; a parsed export would be ten times its size.
    assert size < 30 * MEGABYTE


@pytest.mark.long
def test_three_hundred_megabytes(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    count = large(path, 300 * MEGABYTE)
    turns, size = growth("chatgpt", path)
    assert turns == count
    assert size < 50 * MEGABYTE


@pytest.mark.long
def test_a_chat_of_sixty_megabytes(tmp_path: Path) -> None:
    path = tmp_path / "WhatsApp Chat with Trip.txt"
    with path.open("w", encoding="utf-8") as file:
        for n in range(600_000):
            day, minute = 1 + n // 1440 % 28, n % 1440
            clock = f"{minute // 60:02}:{minute % 60:02}"
            file.write(f"{day:02}/{1 + n // 40320 % 12:02}/{21 + n // 483840}, {clock} - Ana: ")
            file.write(f"message number {n} with some more words that make it longer\n")
    turns, size = growth("whatsapp", path)
    assert turns == 600_000
    assert size < 30 * MEGABYTE
