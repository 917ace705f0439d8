"""Everything that reads what others wrote, as functions of bytes, with a corpus for each.

A target reads the bytes as its parser would meet them and returns nothing. What is wrong
with them is an :class:`EbbtideError`; anything else that is raised is a fault. Beside
them stands a memory that must come through all of it unchanged.
"""

from __future__ import annotations

import io
import json
import random
import signal
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from importers.makers import chat, message
from reference.stand_ins import HashEmbedder, scripted

from ebbtide import Config, EbbtideError, Memory, Store
from ebbtide._core import error_codes
from ebbtide.importers import FORMATS, detect, read
from ebbtide.inputs import prepare
from ebbtide.transcripts import read_transcripts

CODES = frozenset(error_codes())

SECONDS = 10.0
"""Longest that one input may take."""

DAY = "2025-01-02T10:00:00Z"
EXPORTS: dict[str, Any] = {
    "chatgpt": [chat("a", message("user", "hi"), message("assistant", "hello", "there"))],
    "claude": [
        {
            "uuid": "a",
            "name": "A",
            "chat_messages": [
                {"uuid": "m", "sender": "human", "text": "hi", "created_at": DAY},
                {"uuid": "n", "sender": "assistant", "content": [{"type": "text", "text": "yes"}]},
            ],
        }
    ],
    "gemini": [
        {
            "header": "Gemini Apps",
            "title": "Prompted hi",
            "time": DAY,
            "products": ["Gemini Apps"],
            "safeHtmlItem": [{"html": "<p>hello &amp; <b>more</b></p>"}],
        }
    ],
    "openai": [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "x", "type": "function"}]},
    ],
    "sharegpt": [{"id": "a", "conversations": [{"from": "human", "value": "<div>hi</div>"}]}],
    "langchain": [{"type": "human", "data": {"content": "hi"}}, {"type": "ai", "content": "yes"}],
    "slack": [
        {"type": "message", "user": "U1", "text": "hi <@U2>", "ts": "1735812000.000100"},
        {"type": "message", "user": "U2", "text": "x", "ts": "1735812001.000100", "thread_ts": "1"},
    ],
    "discord": {
        "guild": {"id": "1", "name": "G"},
        "channel": {"id": "2", "name": "c"},
        "messages": [
            {"id": "3", "type": "Default", "timestamp": DAY, "content": "hi",
             "author": {"id": "4", "name": "ana"}, "attachments": [], "embeds": []},
        ],
    },
}  # fmt: skip
CHAT = "1/2/25, 10:00 - Ana: hi\n1/2/25, 10:01 - Ben: two\nlines\n[31.01.25, 10:02:03] Ana: x\n"
NAMES = {"whatsapp": "_chat.txt", "slack": "general/2025-01-02.json"}
JSONL = "".join(f"{json.dumps(scripted(n))}\n" for n in range(4))
LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ana",
            "speaker_b": "Ben",
            "session_1": [{"speaker": "Ana", "dia_id": "D1:1", "text": "hi", "img_url": ["x"]}],
            "session_1_date_time": "1:56 pm on 8 May, 2023",
        },
        "qa": [],
    }
]
TOML = """
[capacity]
token_budget = 512
[retrieval]
enable_card_semantic = false
[policy]
gate = "rpe"
[policy.rpe]
"""
QUERY = {
    "query": "Where did Ana move last week?",
    "limit": 3,
    "query_time": "2024-01-05",
    "preset": "paper",
    "filters": {"role": "user", "since": "2024-01-01", "metadata": {"number": 3}},
}
TURN = {**scripted(5), "metadata": {"a": [1, 2.5, None, {"b": "c"}]}, "provenance": {}}


def settings() -> Config:
    return Config().with_embedder(HashEmbedder(32))


class Parsers:
    """The targets, the files they read from, and the memory that must not change."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._config = settings()
        self._store = Store.open(folder / "beside.db", config=self._config)
        self._memory = self._store.memory("ana")
        self._memory.add_many(scripted(n) for n in range(30))
        self._digest = self._memory.digest()
        self.corpus = self._corpus()
        self.targets: dict[str, Callable[[bytes], None]] = {
            name: lambda data, name=name: self._import(name, data)  # type: ignore[misc]
            for name in FORMATS
        }
        self.targets |= {
            "detect": self._detect,
            "zip": self._zip,
            "transcript": self._transcript,
            "config": self._config_file,
            "load": self._load,
            "store": self._open,
            "query": self._query,
            "turn": self._turn,
        }

    def close(self) -> None:
        self._store.close()

    def attempt(self, target: str, data: bytes) -> str:
        """``taken`` or the error's code.

        Raises:
            AssertionError: If an error has no known code or no words.
            TimeoutError: If it took too long.
        """
        with limited(SECONDS):
            try:
                self.targets[target](data)
            except EbbtideError as error:
                known, words = error.code, str(error)
            else:
                return "taken"
        assert known in CODES, known
        assert words
        return known

    def unharmed(self) -> None:
        """What was there before is there still."""
        assert self._store.namespaces() == ["ana"]
        assert self._memory.digest() == self._digest
        assert self._store.check() == []

    def _corpus(self) -> dict[str, list[bytes]]:
        """Sound inputs of every target: what is mutated."""
        seeds = {name: [json.dumps(value).encode()] for name, value in EXPORTS.items()}
        seeds["whatsapp"] = [CHAT.encode()]
        seeds["detect"] = [data[0] for data in seeds.values()]
        seeds["zip"] = [_archive(name, data[0]) for name, data in seeds.items() if name != "detect"]
        seeds["transcript"] = [JSONL.encode(), json.dumps(LOCOMO).encode()]
        seeds["config"] = [TOML.encode()]
        file = self._folder / "seed.jsonl"
        with Memory.open(self._folder / "seed.db", config=self._config) as memory:
            memory.add_many(scripted(n) for n in range(3))
            memory.export(file)
        seeds["load"] = [file.read_bytes()]
        seeds["store"] = [(self._folder / "seed.db").read_bytes()]
        seeds["query"] = [json.dumps(QUERY).encode()]
        seeds["turn"] = [json.dumps(TURN).encode()]
        return seeds

    def _file(self, name: str, data: bytes) -> Path:
        path = self._folder / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def _import(self, name: str, data: bytes) -> None:
        path = self._file(NAMES.get(name, "export.json"), data)
        for turn in read(name, path):
            prepare(turn, max_chars=10**9)

    def _detect(self, data: bytes) -> None:
        detect(self._file("export.json", data))

    def _zip(self, data: bytes) -> None:
        path = self._file("export.zip", data)
        for turn in read(detect(path), path):
            prepare(turn, max_chars=10**9)

    def _transcript(self, data: bytes) -> None:
        for transcript in read_transcripts(self._file("talk.json", data)):
            for turn in transcript.turns:
                prepare(turn, max_chars=10**9)

    def _config_file(self, data: bytes) -> None:
        Config.load(self._file("settings.toml", data))

    def _load(self, data: bytes) -> None:
        path = self._file("memory.jsonl", data)
        self._store.load(path, namespace="copy")
        self._store.delete("copy")

    def _open(self, data: bytes) -> None:
        path = self._file("stray.db", data)
        for end in ("-wal", "-shm", ".lock"):
            path.with_name(f"{path.name}{end}").unlink(missing_ok=True)
        with Store.open(path, config=self._config) as store:
            store.check()
            for name in store.namespaces():
                memory = store.memory(name)
                memory.digest()
                memory.retrieve("garden", limit=2)
                memory.add("and on")

    def _query(self, data: bytes) -> None:
        given = _object(data)
        text = given.pop("query", None) or data.decode("utf-8", "surrogateescape")
        known = ("limit", "max_tokens", "query_time", "preset", "filters")
        self._memory.retrieve(text, **{k: v for k, v in given.items() if k in known})

    def _turn(self, data: bytes) -> None:
        given = _object(data) or {"text": data.decode("utf-8", "surrogateescape")}
        with Memory.in_memory(config=self._config) as memory:
            memory.add_many([given])
            list(memory.turns())


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _archive(name: str, data: bytes) -> bytes:
    inner = {
        "chatgpt": "conversations.json",
        "claude": "conversations.json",
        "gemini": "Takeout/MyActivity.json",
        **NAMES,
    }.get(name, "export.json")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(inner, data)
    return out.getvalue()


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in what takes longer; in compiled code, when it comes back."""

    def late(*_: object) -> None:
        raise TimeoutError(f"an input took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


_WORDS = (
    b"null", b"true", b"-1", b"1e999", b"NaN", b"[]", b"{}", b'""', b"\\ud800", b"\\u0000", b"\x00",
    b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"../../../etc/passwd", b"9" * 400, b"[" * 3000,
    b'{"a":' * 500, b"\r\n", b"\xe2\x80\xa8", b"PK\x03\x04", b"\x1f\x8b", b"A" * 70_000, b"=", b"#",
    b"2024-13-45", b"0000-00-00", b"9999-12-31T23:59:59-14:00", b"'; DROP TABLE turn;--", b"%s%n",
)  # fmt: skip


def mutated(seed: bytes, chance: random.Random, others: Mapping[str, list[bytes]]) -> bytes:
    """A seed, changed in one to six places."""
    data = bytearray(seed)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(data) + 1)
        end = min(len(data), at + chance.choice((1, 1, 2, 4, 16, 200)))
        match chance.randrange(7):
            case 0 if data:
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            case 1:
                data[at:at] = chance.choice(_WORDS)
            case 2:
                data[at:end] = chance.choice(_WORDS)
            case 3:
                del data[at:end]
            case 4:
                data[at:at] = data[at:end] * chance.randint(1, 3)
            case 5 if chance.random() < 0.2:
                del data[at:]
            case 6 if chance.random() < 0.3:
                other = chance.choice(others[chance.choice(sorted(others))])
                data[at:end] = other[chance.randrange(len(other)) :][:300]
            case _:
                data[at:end] = chance.randbytes(end - at)
    return bytes(data)
