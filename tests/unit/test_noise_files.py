"""Noise written into LoCoMo files: the same turns, everything else untouched."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from ebbtide.errors import InputError
from ebbtide.evals.datasets import load_conversations
from ebbtide.evals.noise import NoiseReport, add_noise, describe, write_locomo
from unit.noise_samples import locomo, texts


def written(
    folder: Path, samples: object, name: str = "noisy.json.gz", **options: Any
) -> tuple[Path, Path, list[NoiseReport]]:
    source, out = folder / "plain.json", folder / name
    source.write_text(json.dumps(samples), encoding="utf-8")
    options = {"ratio": 0.75, "ratio_of": "timeline", "seed": 4, **options}
    return source, out, write_locomo(source, out, **options)


@pytest.mark.parametrize("name", ["noisy.json", "noisy.json.gz"])
def test_a_written_file_loads_as_add_noise_gives_it(tmp_path: Path, name: str) -> None:
    samples = [locomo("conv-1"), locomo("conv-2")]
    source, out, reports = written(tmp_path, samples, name)
    loaded = load_conversations(out)
    expected = [
        add_noise(one, ratio=0.75, ratio_of="timeline", seed=4)
        for one in load_conversations(source)
    ]
    assert loaded == expected
    assert reports == [describe(one) for one in loaded]
    assert [report.noise for report in reports] == [12, 12]
    assert texts(loaded[0]) != texts(loaded[1])


def test_a_written_file_keeps_all_else(tmp_path: Path) -> None:
    sample = locomo()
    _, out, _ = written(tmp_path, [sample], "noisy.json")
    (noisy,) = json.loads(out.read_bytes())
    added = 0
    for key, value in noisy["conversation"].items():
        if not isinstance(value, list):
            continue
        for turn in [turn for turn in value if turn["dia_id"].startswith("NOISE:")]:
            assert list(turn) == ["speaker", "dia_id", "text"]
            value.remove(turn)
            added += 1
        assert value == sample["conversation"][key]
    assert added == 12
    assert json.dumps(noisy) == json.dumps(sample)


def test_the_bytes_are_reproducible(tmp_path: Path) -> None:
    _, first, _ = written(tmp_path, [locomo()], "one.json.gz")
    _, second, _ = written(tmp_path, [locomo()], "two.json.gz")
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes()[4:8] == b"\0\0\0\0"
    _, plain, _ = written(tmp_path, [locomo()], "three.json")
    assert plain.read_bytes() == gzip.decompress(first.read_bytes())


def test_one_sample_and_samples_by_line_are_read(tmp_path: Path) -> None:
    _, listed, _ = written(tmp_path, [locomo()], "listed.json")
    _, single, _ = written(tmp_path, locomo(), "single.json")
    assert single.read_bytes() == listed.read_bytes()
    lines = tmp_path / "lines.jsonl"
    lines.write_text("\n".join(json.dumps(locomo(name)) for name in ("a", "b")))
    reports = write_locomo(lines, tmp_path / "o.json", ratio=1, ratio_of="original", seed=0)
    assert [report.conversation for report in reports] == ["a", "b"]


@pytest.mark.parametrize(
    ("samples", "code"),
    [
        ([{"haystack_sessions": []}], "input.transcript"),
        ([locomo(), 3], "input.transcript"),
        ([{"conversation": 3}], "input.field"),
    ],
)
def test_other_files_are_refused_and_nothing_written(
    tmp_path: Path, samples: object, code: str
) -> None:
    with pytest.raises(InputError) as refused:
        written(tmp_path, samples)
    assert refused.value.code == code
    assert not (tmp_path / "noisy.json.gz").exists()


def test_a_file_is_not_written_over_itself(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="one file"):
        written(tmp_path, [locomo()], "plain.json")
    assert json.loads((tmp_path / "plain.json").read_bytes()) == [locomo()]
    with pytest.raises(FileNotFoundError):
        write_locomo(tmp_path / "absent", tmp_path / "o", ratio=0, ratio_of="original", seed=0)


def test_the_dev_conversations_round_trip(data_folder: Path, tmp_path: Path) -> None:
    source = data_folder / "locomo" / "locomo_dev5.json.gz"
    out = tmp_path / "noisy.json.gz"
    reports = write_locomo(source, out, ratio=0.75, ratio_of="timeline", seed=1)
    plain = load_conversations(source)
    loaded = load_conversations(out)
    assert loaded == [add_noise(one, ratio=0.75, ratio_of="timeline", seed=1) for one in plain]
    for one, noisy, report in zip(plain, loaded, reports, strict=True):
        assert [turn for turn in noisy.turns if not turn.noise] == one.turns
        assert noisy.questions == one.questions
        assert noisy.unresolved == one.unresolved
        assert report.ratio_of_timeline == 0.75
        assert report.distinct == report.noise == 3 * len(one.turns)
