"""Which conversations there are, and what they are called."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Config, InputError, Memory, StoreError, replay_many
from ebbtide.distributed.sources import Reader, find_files, list_sources
from ebbtide.distributed.tables import read_rows
from ebbtide.distributed.work import Task, own_code, perform
from ebbtide.evals.provenance import file_sha256
from ebbtide.transcripts import read_lines, split_messages
from replay_many.makers import messages, parts, replayed, written


def names(*given: str | Path, **options: Any) -> list[str]:
    return [source.conversation for source in list_sources(find_files(given), **options)]


def locomo(path: Path, *ids: str) -> Path:
    samples = [
        {
            "sample_id": name,
            "conversation": {
                "speaker_a": "Ida",
                "speaker_b": "Ole",
                "session_1_date_time": "1:56 pm on 8 May, 2023",
                "session_1": [
                    {"speaker": "Ida", "dia_id": f"D1:{number}", "text": f"{name} {number}"}
                    for number in range(1, 4)
                ],
            },
            "qa": [],
        }
        for name in ids
    ]
    path.write_text(json.dumps(samples), encoding="utf-8")
    return path


def test_directories_patterns_and_files_are_found_once_and_in_order(tmp_path: Path) -> None:
    for name in (
        "b/2.jsonl",
        "b/1.jsonl",
        "a/x.jsonl",
        "a/.hidden.jsonl",
        "a/notes.txt",
        "a/y.json",
    ):
        written(tmp_path / name, messages(0, 1))
    assert names(tmp_path) == ["a/x", "a/y", "b/1", "b/2"]
    assert names(tmp_path / "b", tmp_path / "a" / "x.jsonl") == ["a/x", "b/1", "b/2"]
    assert names(f"{tmp_path}/**/*.jsonl", tmp_path / "b" / "2.jsonl") == ["a/x", "b/1", "b/2"]
    # A file alone is called by its own name; what it ends with does not matter.
    assert names(tmp_path / "a" / "notes.txt") == ["notes.txt"]
    assert names(tmp_path / "b" / "2.jsonl") == ["2"]


def test_results_among_the_transcripts_are_none(config: Config, tmp_path: Path) -> None:
    written(tmp_path / "x.jsonl", messages(0, 3))
    for kept in (0, 1):
        report = replay_many(str(tmp_path), tmp_path / "out", config=config, workers=1)
        assert (report.conversations, report.kept) == (1, kept)


def test_names_that_would_be_the_same_keep_their_endings(tmp_path: Path) -> None:
    written(tmp_path / "x.jsonl", messages(0, 1))
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress((tmp_path / "x.jsonl").read_bytes()))
    assert names(tmp_path) == ["x.jsonl", "x.jsonl.gz"]


@pytest.mark.parametrize("given", ["nothing.jsonl", "nothing/*.jsonl", "empty"])
def test_what_leads_to_no_file_is_named(tmp_path: Path, given: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=f"no transcript file at {tmp_path}/"):
        find_files([tmp_path / given])
    with pytest.raises(InputError, match="at least one"):
        find_files([])


def test_conversations_of_a_file_are_called_by_both_names(tmp_path: Path) -> None:
    locomo(tmp_path / "dev.json", "conv-1", "conv-2", "conv-1")
    assert names(tmp_path) == ["dev/conv-1", "dev/conv-2", "dev/conv-1#2"]


def test_a_reader_gives_samples_in_any_order(tmp_path: Path) -> None:
    sources = list(list_sources([locomo(tmp_path / "dev.json", "a", "b", "c")]))
    reader = Reader()
    for place in (0, 1, 2, 1, 0, 2):
        texts = [turn.text for turn in reader.turns(sources[place])]
        assert texts == [f"{'abc'[place]} {number}" for number in (1, 2, 3)]


def test_a_file_is_split_by_a_field(config: Config, tmp_path: Path) -> None:
    lines = messages(0, 12)
    for number, line in enumerate(lines):
        line["session_id"] = ["one", 2, "one", "one"][number % 4]
        if number == 5:
            del line["external_id"]
    file = written(tmp_path / "all.jsonl", lines)
    with file.open("a", encoding="utf-8") as more:
        more.write("\n")
    found = split_messages(file, "session_id")
    assert list(found) == ["one", "2"]
    assert [turn.text for turn in read_lines(file, found["2"])] == [
        lines[number]["text"] for number in (1, 5, 9)
    ]
    ids = [turn.external_id for turn in read_lines(file, found["2"])]
    assert ids == ["t1", "all#6", "t9"]
    replayed(file, tmp_path / "out", config=config, split_by="session_id", stores=False)
    rows = read_rows(tmp_path / "out" / "conversations" / "000000.parquet")
    assert [(row["conversation"], row["turns"]) for row in rows] == [("all/one", 9), ("all/2", 3)]
    with Memory.in_memory(config=config) as memory:
        memory.add_many(
            {**line, "session_id": "one"} for line in lines if line["session_id"] == "one"
        )
        assert memory.digest() == rows[0]["digest"]


@pytest.mark.parametrize("line", ['{"text": "x"}', '{"text": "x", "session_id": null}', "no"])
def test_a_line_that_is_nobodys_fails_its_file(tmp_path: Path, line: str) -> None:
    written(tmp_path / "good.jsonl", messages(0, 2))
    bad = written(tmp_path / "bad.jsonl", messages(0, 2))
    bad.write_text(bad.read_text(encoding="utf-8") + line, encoding="utf-8")
    found = {s.conversation: s for s in list_sources(find_files([tmp_path]), "session_id")}
    assert list(found) == ["bad", "good/s0"]
    assert found["bad"].failure is not None
    assert "bad.jsonl:3: " in found["bad"].failure[0]


def test_a_packed_file_is_not_split(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl.gz"
    file.write_bytes(gzip.compress(b'{"text": "x", "session_id": "a"}\n'))
    with pytest.raises(InputError, match="unpack it"):
        split_messages(file, "session_id")


def test_what_is_sent_is_what_is_read(config: Config, tmp_path: Path) -> None:
    """Empty messages, ids of its own, a bad line: the same parts either way."""
    lines = [*messages(0, 3), {"text": "no id"}, {"text": ""}, {"text": "no id again"}]
    written(tmp_path / "in" / "a.jsonl", lines)
    bad = written(tmp_path / "in" / "b.jsonl", lines)
    bad.write_text(
        bad.read_text(encoding="utf-8") + '{"text": ""}\n{"text": 3}\n', encoding="utf-8"
    )
    locomo(tmp_path / "in" / "c.json", "conv-1", "conv-2")
    (tmp_path / "in" / "d.json").write_text("[", encoding="utf-8")
    replayed(tmp_path / "in", tmp_path / "paths", config=config)
    replayed(tmp_path / "in", tmp_path / "content", config=config, files="content")
    assert parts(tmp_path / "paths") == parts(tmp_path / "content")
    rows = [
        row
        for path in sorted((tmp_path / "paths" / "conversations").iterdir())
        for row in read_rows(path)
    ]
    assert [(row["conversation"], row["turns"], row["skipped"]) for row in rows] == [
        ("a", 5, 1),
        ("b", 5, 2),
        ("c/conv-1", 3, 0),
        ("c/conv-2", 3, 0),
        ("d", 0, 0),
    ]
    stores = {path.name for path in (tmp_path / "content").glob("stores/*/*")}
    assert stores == {"a.db", "b.db", "c%2Fconv-1.db", "c%2Fconv-2.db", "d.db"}


def test_a_directory_that_is_none_is_named(config: Config, tmp_path: Path) -> None:
    file = written(tmp_path / "x.jsonl", messages(0, 3))
    with pytest.raises(StoreError, match="no directory to write to") as caught:
        replay_many(file, file / "out", config=config, workers=1)
    assert caught.value.code == "store.open"
    with pytest.raises(InputError, match="no transcript file"):
        replay_many(tmp_path / "y.jsonl", tmp_path / "out", config=config, workers=1)
    assert not (tmp_path / "out").exists()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "turns").write_text("in the way")
    with pytest.raises(StoreError, match="part 0 cannot be written"):
        replay_many(file, tmp_path / "out", config=config, workers=1)


def test_a_name_leads_nowhere_else(config: Config, tmp_path: Path) -> None:
    lines = messages(0, 3)
    for line, name in zip(lines, ("../../x", "/etc/passwd", "n" * 300), strict=True):
        line["session_id"] = name
    file = written(tmp_path / "in" / "all.jsonl", lines)
    replayed(file, tmp_path / "out", config=config, split_by="session_id", batch=9)
    stores = list((tmp_path / "out" / "stores" / "000000").iterdir())
    assert len(stores) == 3
    assert all(path.suffix == ".db" and len(path.name) < 200 for path in stores)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_a_name_is_unique_across_files(config: Config, tmp_path: Path) -> None:
    """A sample ``x`` of ``made.json`` is no part of ``made/x.jsonl``, in whatever batch."""
    (tmp_path / "in").mkdir()
    locomo(tmp_path / "in" / "made.json", "x", "y")
    written(tmp_path / "in" / "made" / "x.jsonl", messages(0, 5))
    assert names(tmp_path / "in") == ["made/x", "made/x#2", "made/y"]
    digests = set()
    for batch in (1, 2, 9):
        out = tmp_path / f"out{batch}"
        report = replayed(tmp_path / "in", out, config=config, batch=batch)
        assert (report.turns, report.failures) == (11, ())
        digests.add(report.digest)
    assert len(digests) == 1


def test_a_field_that_reads_like_a_folder_names_no_other_file(
    config: Config, tmp_path: Path
) -> None:
    message = {"id": "1", "role": "user"}
    written(tmp_path / "in" / "a.jsonl", [{**message, "text": "Faro.", "session_id": "b/s"}])
    written(tmp_path / "in" / "a" / "b.jsonl", [{**message, "text": "Porto.", "session_id": "s"}])
    out = tmp_path / "out"
    replayed(tmp_path / "in", out, config=config, split_by="session_id")
    rows = read_rows(out / "conversations" / "000000.parquet")
    told = [(row["conversation"], row["file"], row["turns"], row["duplicates"]) for row in rows]
    assert told == [("a/b/s", "a/b.jsonl", 1, 0), ("a/b/s#2", "a.jsonl", 1, 0)]


def test_an_unreadable_file_shares_no_name_either(tmp_path: Path) -> None:
    locomo(tmp_path / "made.json", "x")
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "x.json").write_text("[", encoding="utf-8")
    assert names(tmp_path) == ["made/x", "made/x#2"]


def test_a_worker_refuses_to_mix_two_conversations(config: Config, tmp_path: Path) -> None:
    one = next(list_sources([written(tmp_path / "x.jsonl", messages(0, 2))]))
    task = Task(0, (one, one), config, "", own_code(config), stores=True, out=tmp_path / "out")
    with pytest.raises(StoreError, match=r"share the store x\.db, .*'x' of x\.jsonl") as caught:
        perform(task)
    assert caught.value.code == "store.open"
    assert not (tmp_path / "out" / "conversations").exists()


@pytest.mark.parametrize("given", [5, [None], b"x.jsonl", None])
def test_a_source_is_a_path(config: Config, tmp_path: Path, given: Any) -> None:
    with pytest.raises(InputError, match="named by its path") as caught:
        replay_many(given, tmp_path / "out", config=config, workers=1)
    assert caught.value.code == "input.field"


@pytest.mark.parametrize("options", [{"batch": "x"}, {"batch": 2.0}, {"workers": "2"}])
def test_numbers_of_a_replay_are_whole(
    config: Config, tmp_path: Path, options: dict[str, Any]
) -> None:
    file = written(tmp_path / "x.jsonl", messages(0, 3))
    with pytest.raises(InputError, match="must be a whole number of at least 1"):
        replayed(file, tmp_path / "out", config=config, **options)


def test_names_that_are_no_unicode(config: Config, tmp_path: Path) -> None:
    """Of a file, they are shown as bytes; of a field, they are its file's failure."""
    folder = tmp_path / "in"
    written(folder / "x.jsonl", messages(0, 3)).rename(folder / os.fsdecode(b"\xff.jsonl"))
    lines = messages(0, 2)
    lines[1]["session_id"] = "\ud800"
    written(folder / "bad.jsonl", lines)
    report = replayed(folder, tmp_path / "out", config=config, split_by="session_id", batch=9)
    told = [(one.conversation, one.code) for one in report.failures]
    assert told == [("bad", "input.unicode")]
    rows = read_rows(tmp_path / "out" / "conversations" / "000000.parquet")
    assert [(row["conversation"], row["file"]) for row in rows] == [
        ("bad", "bad.jsonl"),
        ("\\udcff/s0", "\\udcff.jsonl"),
    ]
    assert names(locomo(tmp_path / "made.json", "\ud800")) == ["made/\\ud800"]


@pytest.mark.parametrize("files", ["paths", "content"])
@pytest.mark.parametrize("split_by", [None, "session_id"])
def test_a_file_that_changes_while_it_is_replayed_is_a_failure(
    config: Config, tmp_path: Path, files: str, split_by: str | None
) -> None:
    for name in "abc":
        written(tmp_path / "in" / f"{name}.jsonl", messages(0, 4))

    def change(done: int, of: int) -> None:
        if done == 1:
            lines = [{**line, "text": f"{line['text']}!"} for line in messages(0, 4)]
            written(tmp_path / "in" / "c.jsonl", lines)

    options: dict[str, Any] = {"config": config, "batch": 1, "files": files, "split_by": split_by}
    report = replayed(tmp_path / "in", tmp_path / "out", progress=change, **options)
    (failure,) = report.failures
    assert failure.conversation.startswith("c")
    assert failure.code == "input.transcript"
    assert "the file was changed while it was replayed" in failure.message
    # As it is now it is made anew, and the others are kept.
    report = replayed(tmp_path / "in", tmp_path / "out", **options)
    assert (report.failures, report.kept, report.turns) == ((), 2, 12)


def test_a_file_is_hashed_once_for_its_conversations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[Path] = []

    def counted(path: Path) -> str:
        hashed.append(path)
        return file_sha256(path)

    path = locomo(tmp_path / "dev.json", "a", "b", "c")
    sources = list(list_sources([path]))
    monkeypatch.setattr("ebbtide.evals.provenance.file_sha256", counted)
    reader = Reader()
    for source in sources:
        assert len(list(reader.turns(source))) == 3
    assert hashed == [path]
    locomo(path, "a", "b", "d")
    with pytest.raises(InputError, match="was changed"):
        list(reader.turns(sources[2]))


@pytest.mark.parametrize("content", ["", "[]"])
def test_files_without_a_conversation_are_an_error(
    config: Config, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "x.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"x\.json holds no conversation") as caught:
        replayed(file, tmp_path / "out", config=config)
    assert caught.value.code == "input.transcript"


def test_a_store_that_has_nothing_but_its_ending_is_kept(config: Config, tmp_path: Path) -> None:
    file = written(tmp_path / ".jsonl", messages(0, 3))
    for kept in (0, 1):
        report = replayed(file, tmp_path / "out", config=config)
        assert (report.turns, report.kept) == (3, kept)
    assert (tmp_path / "out" / "stores" / "000000" / ".db").is_file()
