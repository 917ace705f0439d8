"""``ebbtide replay --out`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Config, InputError, replay_many
from ebbtide.cli import main
from ebbtide.distributed import run
from replay_many.makers import messages, written


@pytest.fixture
def go(stub: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> Any:
    """The command line in this process, where one worker makes everything."""
    for number in range(3):
        written(tmp_path / "in" / f"chat{number}.jsonl", messages(10 * number, 5))
    # The stand-in embedder has no place on a command line.
    monkeypatch.setattr("ebbtide.cli.replaying.settings_from", lambda *_: stub)

    def call(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["replay", *map(str, words)])
        captured = capsys.readouterr()
        code = ended.value.code
        return (code if isinstance(code, int) else 0), captured.out, captured.err

    return call


def test_it_says_what_came_of_it(go: Any, tmp_path: Path) -> None:
    words = [tmp_path / "in", "--out", tmp_path / "out", "--workers", 1, "--batch", 2]
    code, out, err = go(*words)
    assert (code, err) == (0, "")
    assert "conversations  3, 0 of them failed" in out
    assert "turns          15" in out
    code, out, _ = go(*words, "--json")
    report = json.loads(out)
    assert (code, report["kept"], report["failures"]) == (0, 2, [])
    assert report["digest"] == json.loads((tmp_path / "out" / "report.json").read_text())["digest"]


def test_a_failure_is_told_and_exits_with_1(go: Any, tmp_path: Path) -> None:
    (tmp_path / "in" / "chat1.jsonl").write_text("no\n", encoding="utf-8")
    words = [tmp_path / "in", "--out", tmp_path / "out", "--workers", 1, "--no-stores"]
    code, out, err = go(*words)
    assert (code, "3, 1 of them failed" in out) == (1, True)
    assert err.startswith("chat1: chat1.jsonl:1: the line is not JSON")
    code, out, err = go(*words, "--json")
    assert (code, len(json.loads(out)["failures"]), err) == (1, 1, "")


def test_an_interrupt_says_how_to_go_on(go: Any, tmp_path: Path, monkeypatch: Any) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "replay_many", stop)
    code, _, err = go(tmp_path / "in", "--out", tmp_path / "out")
    assert (code, "run the same command again" in err) == (130, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name a store with --store, or a directory with --out"),
        (["--out", "o", "--store", "s"], "--store does not go with --out"),
        (["--out", "o", "--namespace", "n"], "--namespace does not go with --out"),
        (["--out", "o", "--conversation", "c"], "--conversation does not go with --out"),
        (["--out", "o", "--batch-size", "3"], "--batch-size does not go with --out"),
        (["--store", "s", "--engine", "dask"], "--engine does not go with --store"),
        (["--store", "s", "--no-stores"], "--no-stores does not go with --store"),
        (["--store", "s", "--fresh"], "--fresh does not go with --store"),
        (["--store", "s", "--files", "content"], "--files does not go with --store"),
    ],
)
def test_options_of_two_kinds_do_not_mix(
    go: Any, tmp_path: Path, words: list[str], said: str
) -> None:
    code, out, err = go(tmp_path / "in", *words)
    assert (code, out) == (2, "")
    assert said in " ".join(err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"engine": "ray"}, "engine must be"),
        ({"scheduler": "tcp://127.0.0.1:1"}, 'a scheduler goes with engine "dask"'),
        ({"files": "post"}, "files must be"),
        ({"workers": 0}, "workers must be a whole number"),
        ({"batch": 0}, "batch must be a whole number"),
    ],
)
def test_unusable_arguments_are_named(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        replay_many(tmp_path, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()
