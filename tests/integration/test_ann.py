"""The graph index: nothing of a result depends on what was built, saved or restarted."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Config, Memory, Store, ann

pytest.importorskip("hnswlib")

SIZE = 16
QUESTIONS = ("harbour lamp", "where is the red boat", "note 7 about tea")


@pytest.fixture
def graphed(stub: Config) -> Config:
    return stub.replace(
        retrieval={"ann_min_vectors": 20, "ann_segment": SIZE, "ann_ef": 12, "ann_hits": 12}
    )


def said(count: int, start: int = 0) -> Iterator[dict[str, Any]]:
    things = ("harbour", "lamp", "boat", "tea", "window", "garden", "letter")
    for i in range(start, start + count):
        text = f"note {i} about {things[i % 7]} and the {things[i * 3 % 5]}"
        yield {"text": text, "role": "user", "speaker": "Ana"}


def answers(memory: Memory) -> list[Any]:
    return [[(e.turn.interaction_id, e.score) for e in memory.retrieve(q)] for q in QUESTIONS]


def files(path: Path) -> dict[str, bytes]:
    found = path.parent.glob("*.ann/*/*")
    return {f"{f.parent.name}/{f.name}": f.read_bytes() for f in found}


def test_a_restart_between_any_two_adds_changes_nothing(graphed: Config, tmp_path: Path) -> None:
    one, other = tmp_path / "one" / "m.db", tmp_path / "two" / "m.db"
    for path in (one, other):
        path.parent.mkdir()
    rows = list(said(40))
    expected = []
    with Memory.open(one, config=graphed) as memory:
        for row in rows:
            memory.add_many([row])
            expected.append(answers(memory))
        assert memory.stats()["graph"] == {"segments": 2, "installed": True}
    for row, wanted in zip(rows, expected, strict=True):
        with Memory.open(other, config=graphed) as memory:
            memory.add_many([row])
            assert answers(memory) == wanted
    assert files(one) == files(other)
    assert len(files(one)) == 4


def test_a_harmed_file_is_built_anew_the_same(graphed: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=graphed) as memory:
        memory.add_many(said(40))
        expected = answers(memory)
    whole = files(store_path)
    harmed = next(store_path.parent.glob("*.ann/*/*.bin"))
    harmed.write_bytes(harmed.read_bytes()[:-7] + b"garbage")
    with Memory.open(store_path, config=graphed) as memory:
        assert answers(memory) == expected
    assert files(store_path) == whole


def test_an_erased_turn_leaves_graph_and_files(graphed: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=graphed) as memory:
        memory.add_many(said(40))
        assert len(files(store_path)) == 4
        memory.delete(3)
        assert {Path(name).stem for name in files(store_path)} == {f"segment-{SIZE:012d}-{SIZE}"}
        assert all(i != 3 for found in answers(memory) for i, _ in found)
        assert memory.stats()["graph"]["segments"] == 1
        expected = answers(memory)
    with Memory.open(store_path, config=graphed) as memory:
        assert answers(memory) == expected
        memory.delete_all()
        assert files(store_path) == {}


def test_files_go_with_their_turns_though_graphs_are_off(
    graphed: Config, stub: Config, store_path: Path
) -> None:
    with Memory.open(store_path, config=graphed) as memory:
        memory.add_many(said(40))
    with Memory.open(store_path, config=stub):
        assert files(store_path) == {}


def test_a_folder_among_the_files_is_left_alone(graphed: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=graphed) as memory:
        memory.add_many(said(40))
    folder = next(store_path.parent.glob("*.ann/*"))
    (folder / "mine").mkdir()
    (folder / "mine" / "notes.txt").touch()
    with Memory.open(store_path, config=graphed) as memory:
        memory.delete(3)
        assert len(memory) == 39
        kept = {f"segment-{SIZE:012d}-{SIZE}", "mine"}
        assert {path.name.split(".")[0] for path in folder.iterdir()} == kept
        memory.delete_all()
    assert [path.name for path in folder.iterdir()] == ["mine"]


def test_files_that_cannot_be_removed_keep_nothing_from_being_erased(
    graphed: Config,
    store_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refused(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(f"{path} stays")

    with Memory.open(store_path, config=graphed) as memory:
        memory.add_many(said(40))
        with monkeypatch.context() as patch:
            patch.setattr(Path, "unlink", refused)
            memory.delete(3)
        assert "could not be removed" in caplog.text
        assert all(i != 3 for found in answers(memory) for i, _ in found)
    # The next one to open it does.
    with Memory.open(store_path, config=graphed):
        assert {Path(name).stem for name in files(store_path)} == {f"segment-{SIZE:012d}-{SIZE}"}


def test_an_erased_memory_takes_its_files_along(graphed: Config, store_path: Path) -> None:
    with Store.open(store_path, config=graphed) as store:
        for name in ("ana", "ben"):
            store.memory(name).add_many(said(40))
        assert len(files(store_path)) == 8
        store.delete("ana")
        assert len(files(store_path)) == 4


def test_reindexing_builds_the_same_files(graphed: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=graphed) as memory:
        memory.add_many(said(40))
        before = files(store_path)
        memory.reindex()
        assert files(store_path) == before


def test_a_reader_writes_no_files(graphed: Config, stub: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=stub) as memory:
        memory.add_many(said(40))
    with Memory.open(store_path, config=graphed, read_only=True) as reader:
        found = answers(reader)
        assert reader.stats()["graph"]["segments"] == 2
    assert files(store_path) == {}
    with Memory.open(store_path, config=graphed) as memory:
        assert answers(memory) == found


def test_what_the_graphs_find_is_ranked_as_ever(graphed: Config, stub: Config) -> None:
    # Asked to keep a whole segment in sight, a graph finds all that a scan does.
    wide = graphed.replace(
        retrieval={"ann_min_vectors": 20, "ann_segment": SIZE, "ann_ef": SIZE, "ann_hits": SIZE}
    )
    results = []
    for config in (stub, wide):
        with Memory.in_memory(config=config) as memory:
            memory.add_many(said(50))
            filtered = memory.retrieve(QUESTIONS[0], filters={"speaker": "ana"})
            results.append((answers(memory), [e.turn.interaction_id for e in filtered]))
    assert results[0] == results[1]


def test_a_second_thread_changes_nothing(graphed: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory.in_memory(config=graphed) as memory:
        memory.add_many(said(6 * SIZE + 3))
        assert memory.stats()["graph"]["segments"] == 6
        together = [answers(memory) for _ in range(5)]
        monkeypatch.setattr(ann, "_SHARED", 100)
        assert together == [answers(memory)] * 5

        def fails(segment: Any, *args: Any) -> list[int]:
            raise RuntimeError("broken graph")

        monkeypatch.setattr(ann._Segment, "search", fails)
        for shared in (1, 100):
            monkeypatch.setattr(ann, "_SHARED", shared)
            with pytest.raises(RuntimeError, match="broken graph"):
                memory.retrieve(QUESTIONS[0])


def test_without_the_library_every_vector_is_compared(
    graphed: Config, stub: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "hnswlib":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    results = []
    for config in (stub, graphed):
        with Memory.in_memory(config=config) as memory:
            memory.add_many(said(40))
            results.append(answers(memory))
            assert memory.stats()["graph"] == {"segments": 0, "installed": False}
    assert results[0] == results[1]
