"""The token counter against another implementation of the same encodings."""

from __future__ import annotations

import random
import unicodedata

import pytest
import toktok

from ebbtide import Config, Memory
from ebbtide._core import count_tokens

ODD = [
    "",
    " ",
    "\n",
    "\r\n\r\n",
    "\t\t \n  x",
    "a",
    "Hello, world!",
    "<|endoftext|>",
    "<|im_start|>user<|im_end|>",
    "don't DON'T don’t I'll I'LL we'Ve",
    "3.14159 1234567890 ١٢٣ ⅻ ½",
    "naïve café élan",
    unicodedata.normalize("NFD", "naïve café élan"),
    "東京都に住んでいます。",
    "한국어 텍스트입니다",
    "你好，世界！今天天气怎么样？",
    "Привет, мир",
    "مرحبا بالعالم",
    "👩‍👩‍👧‍👦 👍🏽 🇵🇹 ❤️",
    "\u0000\u0001\u007f\u0080",
    "zero\u200bwidth\u200djoin\ufeff",
    "\u202eright to left",
    "𝒜𝓃𝒶 𐍈 \U0010ffff",
    "x" * 5000,
    " " * 3000,
    "\n" * 1000,
    "ab" * 2000 + " end",
    "def f(x):\n    return {'a': [1, 2, 3]}  # comment\n",
    '{"role": "tool", "content": [{"type": "text", "text": "\\u00e9"}]}',
    "https://example.org/a/b?c=d&e=%20#f",
    "ALLCAPS camelCase snake_case kebab-case",
    "…—–-‐‑“”‘’«»",
    "a\u0301\u0302\u0303\u0304" * 50,
    "|" * 100 + "=" * 100,
]
ALPHABETS = (
    "abc XYZ'",
    "0123456789., ",
    " \n\t\r",
    "éàüßñçøÅ ",
    "日本語한국어中文。、",
    "🙂🙃👩‍💻🇵🇹\ufe0f",
    "(){}[]<>|/\\#@!?*&^%$",
    "\u0000\u0007\u00a0\u2003\u3000\u200b\u2028",
)


def odd_texts() -> list[str]:
    chance = random.Random(20240601)
    texts = list(ODD)
    for _ in range(600):
        letters = "".join(chance.sample(ALPHABETS, chance.randint(1, 3)))
        texts.append("".join(chance.choice(letters) for _ in range(chance.randint(1, 120))))
    for _ in range(100):
        points = (chance.randrange(0x110000) for _ in range(chance.randint(1, 40)))
        texts.append("".join(chr(p) for p in points if not 0xD800 <= p < 0xE000))
    return texts


@pytest.mark.parametrize("counter", ["cl100k_base", "o200k_base"])
def test_the_counts_are_exact(counter: str) -> None:
    texts = odd_texts()
    assert len(texts) > 700
    expected = toktok.batch_count(texts, counter)
    found = [count_tokens(text, counter) for text in texts]
    wrong = [(text, f, e) for text, f, e in zip(texts, found, expected, strict=True) if f != e]
    assert wrong == []


@pytest.mark.parametrize("counter", ["cl100k_base", "o200k_base"])
def test_a_memory_counts_with_its_own_counter(stub: Config, counter: str) -> None:
    config = stub.replace(capacity={"token_counter": counter})
    texts = [text for text in ODD if text]
    with Memory.in_memory(config=config) as memory:
        memory.add_many({"text": text} for text in texts)
        stored = [turn.tokens for turn in memory.turns()]
        assert stored == [memory.count_tokens(text) for text in texts]
    assert stored == toktok.batch_count(texts, counter)
