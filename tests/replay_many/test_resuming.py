"""Running it again: what is kept, what is made anew, and what does not mix."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Config, InputError, Memory, StoreError, replay_many
from ebbtide.distributed.tables import Table, is_whole, read_rows
from replay_many.conftest import Whole
from replay_many.makers import messages, parts, replayed, written


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    for number in range(6):
        written(tmp_path / "in" / f"chat{number}.jsonl", messages(100 * number, 6))
    return tmp_path / "in"


def test_an_interrupt_between_two_parts_loses_neither(
    whole: Whole, config: Config, tmp_path: Path
) -> None:
    told: list[tuple[int, int]] = []

    def stop(done: int, of: int) -> None:
        told.append((done, of))
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replayed(whole.sources, tmp_path / "out", config=config, progress=stop)
    assert told == [(0, 9), (2, 9), (4, 9)]
    report = replayed(whole.sources, tmp_path / "out", config=config)
    assert (report.kept, report.batches) == (2, 5)
    assert parts(tmp_path / "out") == whole.parts
    # All of it is there: nothing is made, and nothing changes.
    again = replayed(whole.sources, tmp_path / "out", config=config, workers=2)
    assert (again.kept, again.digest) == (5, whole.report.digest)


def test_a_system_that_does_not_tell_which_cores_may_be_used(
    config: Config, sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    report = replay_many(sources, tmp_path / "out", config=config)
    assert (report.conversations, report.failures) == (6, ())


def test_a_bad_transcript_is_reported_and_the_others_finish(
    config: Config, sources: Path, tmp_path: Path
) -> None:
    bad = sources / "chat3.jsonl"
    good = bad.read_text(encoding="utf-8")
    bad.write_text(good + "{ no\n", encoding="utf-8")
    (sources / "empty.json").write_text("[]", encoding="utf-8")
    (sources / "torn.json").write_text('[{"conversation": {', encoding="utf-8")
    report = replayed(sources, tmp_path / "out", config=config)
    assert (report.conversations, report.turns) == (7, 36)
    assert [(one.conversation, one.code) for one in report.failures] == [
        ("chat3", "input.transcript"),
        ("torn", "input.transcript"),
    ]
    # Where it is, but not where that is on this machine.
    assert report.failures[0].message.startswith("chat3.jsonl:7: the line is not JSON")
    assert str(tmp_path) not in report.failures[1].message
    first = parts(tmp_path / "out")
    bad.write_text(good, encoding="utf-8")
    (sources / "torn.json").unlink()
    with pytest.raises(InputError, match="conversations was 7, is 6"):
        replayed(sources, tmp_path / "out", config=config)
    (sources / "torn.json").write_text("[", encoding="utf-8")
    report = replayed(sources, tmp_path / "out", config=config)
    assert ([one.conversation for one in report.failures], report.kept) == (["torn"], 2)
    changed = {name for name, data in parts(tmp_path / "out").items() if data != first[name]}
    assert changed == {
        "conversations/000001.parquet",
        "conversations/000003.parquet",
        "turns/000001.parquet",
        "turns/000003.parquet",
    }


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"batch": 3}, "batch was 2, is 3"),
        ({"stores": False}, "stores was True, is False"),
        ({"split_by": "session_id"}, "names_sha256 differs"),
    ],
)
def test_another_run_does_not_mix_with_it(
    config: Config, sources: Path, tmp_path: Path, changed: dict[str, Any], words: str
) -> None:
    replayed(sources, tmp_path / "out", config=config)
    with pytest.raises(InputError, match="holds another run") as caught:
        replayed(sources, tmp_path / "out", config=config, **changed)
    assert caught.value.code == "input.field"
    assert words in str(caught.value)
    report = replayed(sources, tmp_path / "out", config=config, fresh=True, **changed)
    assert (report.kept, report.failures) == (0, ())
    plan = json.loads((tmp_path / "out" / "plan.json").read_text(encoding="utf-8"))
    for name, value in changed.items():
        assert plan[name] == value


def test_other_settings_and_other_data_do_not_mix_with_it(
    config: Config, sources: Path, tmp_path: Path
) -> None:
    replayed(sources, tmp_path / "out", config=config)
    other = config.replace(capacity={"token_budget": 512})
    with pytest.raises(InputError, match="settings capacity token_budget was 256, is 512"):
        replayed(sources, tmp_path / "out", config=other)
    written(sources / "chat2.jsonl", messages(0, 5))
    with pytest.raises(InputError, match=r"of other data \(batch 1, from chat2, differs\)"):
        replayed(sources, tmp_path / "out", config=config)


def test_a_damaged_part_is_no_part(config: Config, sources: Path, tmp_path: Path) -> None:
    replayed(sources, tmp_path / "out", config=config)
    before = parts(tmp_path / "out")
    (tmp_path / "out" / "conversations" / "000001.parquet").write_bytes(b"PAR1")
    (tmp_path / "out" / "turns" / "000002.parquet").unlink()
    report = replayed(sources, tmp_path / "out", config=config)
    assert report.kept == 1
    assert parts(tmp_path / "out") == before


@pytest.mark.parametrize("kind", ["turns", "conversations"])
@pytest.mark.parametrize("left", [0.0, 0.5, -1.0])
def test_a_torn_part_is_made_anew(
    config: Config, sources: Path, tmp_path: Path, kind: str, left: float
) -> None:
    replayed(sources, tmp_path / "out", config=config)
    before = parts(tmp_path / "out")
    path = tmp_path / "out" / kind / "000001.parquet"
    whole = path.read_bytes()
    # As a power cut may leave a file: cut short, or as long as it was and empty.
    path.write_bytes(bytes(len(whole)) if left < 0 else whole[: int(left * len(whole))])
    report = replayed(sources, tmp_path / "out", config=config)
    assert (report.kept, report.batches) == (2, 3)
    assert parts(tmp_path / "out") == before


@pytest.mark.parametrize("kind", ["turns", "conversations"])
def test_one_changed_bit_is_noticed_wherever_it_is(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "000000.parquet"
    rows = [{"conversation": f"c{number}", "turns": number, "tokens": 7} for number in range(9)]
    with Table(path, kind, "of this data") as table:
        table.add(rows)
    assert is_whole(path, kind, "of this data")
    assert not is_whole(path, kind, "of other data")
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        assert not is_whole(path, kind, "of this data"), at


@pytest.mark.parametrize("kind", ["turns", "conversations"])
def test_a_part_with_a_changed_bit_is_made_anew(
    config: Config, sources: Path, tmp_path: Path, kind: str
) -> None:
    replayed(sources, tmp_path / "out", config=config)
    before = parts(tmp_path / "out")
    path = tmp_path / "out" / kind / "000001.parquet"
    whole = bytearray(path.read_bytes())
    whole[whole.index(b"chat2")] ^= 1
    path.write_bytes(whole)
    report = replayed(sources, tmp_path / "out", config=config)
    assert (report.kept, report.failures) == (2, ())
    assert parts(tmp_path / "out") == before


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-4096])


def _nothing_of_ours(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("harm", [Path.unlink, _cut, _nothing_of_ours, _folder])
def test_a_part_without_one_of_its_stores_is_made_anew(
    config: Config, sources: Path, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    replayed(sources, tmp_path / "out", config=config)
    store = tmp_path / "out" / "stores" / "000001" / "chat2.db"
    harm(store)
    report = replayed(sources, tmp_path / "out", config=config)
    assert (report.kept, report.failures) == (2, ())
    row = read_rows(tmp_path / "out" / "conversations" / "000001.parquet")[0]
    with Memory.open(store, config=config, read_only=True) as memory:
        assert memory.digest() == row["digest"]
    # Opened and added to by its owner, it is still the part's.
    with Memory.open(store, config=config) as memory:
        memory.add("one more")
    assert replayed(sources, tmp_path / "out", config=config).kept == 3


def test_a_part_is_on_the_disk_before_it_is_marked_as_done(
    config: Config, sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    done: list[tuple[str, Path]] = []
    sync, replace = os.fsync, Path.replace

    def syncing(opened: int) -> None:
        done.append(("sync", Path(f"/proc/self/fd/{opened}").readlink()))
        sync(opened)

    def replacing(path: Path, target: Path) -> Path:
        done.append(("move", target))
        done.extend(("hold", target / one.name) for one in path.glob("*.db"))
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(Path, "replace", replacing)
    replayed(sources, out, config=config, batch=6)
    marked = done.index(("move", out / "conversations" / "000000.parquet"))
    synced = [path for what, path in done[:marked] if what == "sync"]
    assert {out / "turns", out / "stores"} <= set(synced)
    stores = [path.name for what, path in done if what == "hold"]
    assert len(stores) == 6
    assert {"000000.parquet", "000000", *stores} <= {path.name for path in synced}
    assert done[marked + 1] == ("sync", out / "conversations")


def test_two_runs_are_not_at_work_in_one_directory(
    config: Config, sources: Path, tmp_path: Path
) -> None:
    replayed(sources, tmp_path / "out", config=config)
    with (tmp_path / "out" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StoreError, match="another replay is at work") as caught:
            replayed(sources, tmp_path / "out", config=config)
    assert caught.value.code == "store.locked"


def test_starting_over_deletes_what_a_replay_left_and_nothing_else(
    config: Config, sources: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    (out / "turns").mkdir(parents=True)
    (out / "turns" / "mine.txt").touch()
    replayed(sources, out, config=config, fresh=True)
    assert (out / "turns" / "mine.txt").exists()  # no replay had been there
    replayed(sources, out, config=config, fresh=True)
    assert not (out / "turns" / "mine.txt").exists()


@pytest.mark.parametrize("name", ["plan.json", "report.json"])
def test_a_full_disk_is_named(
    config: Config, sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write = Path.write_text

    def full(path: Path, *given: Any, **named: Any) -> int:
        if path.name.startswith(name):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, *given, **named)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(StoreError, match=f"{name} cannot be written: No space left") as caught:
        replayed(sources, tmp_path / "out", config=config)
    assert caught.value.code == "store.open"
