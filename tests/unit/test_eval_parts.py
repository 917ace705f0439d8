"""Parts of a run: what they are of, what is kept, how work on them ends."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Config, InputError, _core
from ebbtide.evals import provenance, run
from ebbtide.evals.parts import Pool, claim, claimed
from ebbtide.evals.provenance import code, fingerprint, public_command
from ebbtide.evals.run import finished
from ebbtide.evals.systems import PEERS, POLICIES, SYSTEMS
from ebbtide.files import write_json


def test_the_same_run_goes_on_and_another_is_told_what_differs(tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = {"ebbtide": "0.1.0", "core_sha256": "a" * 64, "versions": {"numpy": "1"}, "seed": 3}
    claim(out, first)
    claim(out, dict(reversed(first.items())))
    other = {"ebbtide": "0.2.0", "core_sha256": "b" * 64, "versions": {"numpy": "2"}, "seed": 3}
    with pytest.raises(InputError) as caught:
        claim(out, other | {"limit": 5})
    assert str(caught.value) == (
        f"{out} holds another run (the compiled core differs; ebbtide was 0.1.0, is 0.2.0; "
        "limit differs; versions numpy was 1, is 2); "
        "name another directory with --out, or start over there with --fresh"
    )


def test_starting_over_deletes_what_a_run_left_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "mine.txt").touch()
    claim(tmp_path, {"seed": 1}, fresh=True)
    assert (tmp_path / "parts" / "mine.txt").exists()
    (tmp_path / "notes.txt").touch()
    claim(tmp_path, {"seed": 2}, fresh=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "plan.json"]
    claim(tmp_path, {"seed": 2})


def test_a_plan_that_cannot_be_read_is_another_run(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"seed": ')
    with pytest.raises(InputError, match="holds another run"):
        claim(tmp_path, {"seed": 1})


def test_what_is_not_kept_is_gone(tmp_path: Path) -> None:
    with claimed(None, {}) as folder:
        write_json(folder / "parts" / "1.json", [1])
    assert not folder.exists()
    with claimed(tmp_path / "kept", {}) as folder:
        write_json(folder / "parts" / "1.json", [1])
    assert (tmp_path / "kept" / "parts" / "1.json").read_text() == "[\n 1\n]\n"


@pytest.mark.parametrize("workers", [1, 2])
def test_parts_that_are_there_are_not_made_again(tmp_path: Path, workers: int) -> None:
    told: list[tuple[int, int]] = []
    parts = [tmp_path / f"{n}.json" for n in range(5)]
    write_json(parts[1], "as it was")
    with Pool(workers, lambda *at: told.append(at), total=5) as pool:
        for part in parts:
            pool.submit([part], write_json, part, "made")
    assert [part.read_text() for part in parts].count('"made"\n') == 4
    assert parts[1].read_text() == '"as it was"\n'
    assert told == [(n, 5) for n in range(1, 6)]


def sleep_and(then: Callable[[Pool], Any], never: Path) -> None:
    with Pool(2) as pool:
        pool.submit([never], time.sleep, 600)
        then(pool)


@pytest.mark.parametrize("error", [KeyboardInterrupt, InputError])
def test_an_error_ends_the_others_at_once(tmp_path: Path, error: Any) -> None:
    def fail(pool: Pool) -> None:
        raise error("no", "input.field")

    with pytest.raises(error):
        sleep_and(fail, tmp_path / "never")
    assert multiprocessing.active_children() == []


def test_an_error_in_a_worker_is_the_callers(tmp_path: Path) -> None:
    missing = tmp_path / "nothing"
    with pytest.raises(FileNotFoundError):
        sleep_and(
            lambda pool: pool.submit([tmp_path / "never"], Path.read_text, missing),
            tmp_path / "never",
        )
    assert multiprocessing.active_children() == []


def test_the_code_is_known_by_its_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = code()
    assert found["ebbtide"] == _core.__version__
    assert len(found["core_sha256"]) == len(found["sources_sha256"]) == 64
    assert {"python", "numpy", "spacy"} <= found["versions"].keys()

    for folder in ("cli", "evals/report"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "shown.py").write_text("1")
    (tmp_path / "engine.py").write_text("1")
    monkeypatch.setattr(provenance, "_ROOT", tmp_path)

    def sources() -> str:
        provenance._code.cache_clear()
        return str(code()["sources_sha256"])

    first = sources()
    (tmp_path / "cli" / "shown.py").write_text("2")
    assert sources() == first
    (tmp_path / "engine.py").write_text("2")
    assert sources() != first
    monkeypatch.undo()
    provenance._code.cache_clear()


def test_the_analyser_is_known_by_its_fingerprint() -> None:
    bare = Config().replace(nlp={"speaker_prefix": False})
    assert fingerprint(Config()) == fingerprint(Config()) != fingerprint(bare)


def test_a_command_is_shown_without_places() -> None:
    words = ["ebbtide", "eval", "noise", "--data", "/home/me/loc.json", "-o", "runs/x", "-j", "2"]
    words += ["--peer", "../peer env", "--cache=/home/me/a.db", "--replies", "r.db", "--json"]
    words += ["--set", "nlp.model_name=/home/me/model", "--set", "ranking.bm25=0.2"]
    assert public_command(words) == (
        "ebbtide eval noise --data loc.json -o DIR -j 2 --peer DIR --cache=FILE --replies FILE "
        "--json --set nlp.model_name=model --set ranking.bm25=0.2"
    )
    assert public_command(["ebbtide", "-d../x/a.json", "-o/tmp/y"]) == "ebbtide -da.json -oDIR"


def test_where_a_platform_tells_nothing_the_figure_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (run._resident() or 0) > 10
    monkeypatch.setitem(sys.modules, "resource", None)
    assert run._resident() is None
    monkeypatch.delattr("os.sysconf")
    assert "memory_gib" not in provenance.machine()


def test_every_system_that_there_is_can_be_finished(tmp_path: Path) -> None:
    every = [*SYSTEMS, *POLICIES, *PEERS]
    for name in every:
        (tmp_path / name).mkdir()
        (tmp_path / name / "00001.parquet").touch()
    assert finished(tmp_path, ["00001.parquet"]) == every
    assert finished(tmp_path, ["00001.parquet", "00002.parquet"]) == []
