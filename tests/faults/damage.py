"""A damaged store, looked at in every way: what it says, and that it never lies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reference.stand_ins import scripted

from ebbtide import Config, EbbtideError, Memory, Store
from ebbtide._core import error_codes

CODES = frozenset(error_codes())
NAMES = ("ana", "luis")


@dataclass(frozen=True)
class Sound:
    """What a store held before anything happened to it."""

    data: bytes
    digests: dict[str, str]
    texts: dict[str, dict[int, str]]


def make(path: Path, config: Config) -> Sound:
    """A store of two memories with erasures and relations of their own, closed."""
    with Store.open(path, config=config) as store:
        for name, count in zip(NAMES, (70, 25), strict=True):
            memory = store.memory(name)
            memory.add_many(scripted(n) for n in range(count))
            memory.delete(7)
            memory.relate(12, "corrects", 3)
            memory.add(f"The last word of {name}.", speaker=name.title())
        store._handle.vacuum()
    with Store.open(path, config=config, read_only=True) as store:
        digests = {name: store.memory(name).digest() for name in NAMES}
        texts = {name: _texts(store.memory(name)) for name in NAMES}
        assert store.check() == []
    return Sound(path.read_bytes(), digests, texts)


def _texts(memory: Memory) -> dict[int, str]:
    return {turn.interaction_id or 0: turn.text for turn in memory.turns()}


def known(error: EbbtideError) -> None:
    """An error has one of the codes, and words."""
    assert error.code in CODES, error.code
    assert str(error)


def seen(path: Path, config: Config, sound: Sound) -> str:
    """How damage shows: ``harmless``, ``refused`` or ``found by doctor``.

    Raises:
        AssertionError: If it shows in no way and yet something is another.
    """
    try:
        with Store.open(path, config=config, read_only=True) as store:
            findings = store.check()
            refused = not _all_there(store, sound)
    except EbbtideError as error:
        known(error)
        return "refused"
    if findings:
        return "found by doctor"
    return "refused" if refused else "harmless"


def _all_there(store: Store, sound: Sound) -> bool:
    """Whether all is as it was; an error, or a doctor's finding, where it is not."""
    names = store.namespaces()
    if names != sorted(NAMES):
        assert store.check(), f"the memories are {names}"
        return False
    whole = True
    for name in NAMES:
        try:
            memory = store.memory(name)
            texts, digest = _texts(memory), memory.digest()
            memory.retrieve("garden tea port", limit=5)
            memory.render_context("garden tea port", max_tokens=200)
            memory.explain(12)
        except EbbtideError as error:
            known(error)
            whole = False
            continue
        for number, text in texts.items():
            assert sound.texts[name].get(number) == text, "a turn that was never said"
        if texts != sound.texts[name] or digest != sound.digests[name]:
            assert store.check(), f"{name} is another, and nothing says so"
            whole = False
    return whole


def mended(path: Path, config: Config, sound: Sound) -> str:
    """Repair it: ``whole again``, ``turns given up``, or ``beyond repair`` with a word."""
    try:
        with Store.open(path, config=config) as store:
            left = store.repair()
            if left:
                left = store.repair(erase_damaged_turns=True)
                outcome = "turns given up"
            else:
                outcome = "whole again"
            if left:
                return "beyond repair"
            for name in store.namespaces():
                memory = store.memory(name)
                assert memory.add("It goes on.").accepted == 1
                for turn in memory.turns():
                    said = sound.texts.get(name, {}).get(turn.interaction_id or 0)
                    assert turn.text in (said, "It goes on.")
                if outcome == "whole again" and name in NAMES:
                    assert len(memory) >= len(sound.texts[name])
            assert store.check() == []
        return outcome
    except EbbtideError as error:
        known(error)
        return "beyond repair"
