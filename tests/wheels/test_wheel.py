"""Wheels: what the checks refuse, and how a real one fares in a new environment."""

from __future__ import annotations

import importlib
import struct
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULE = "ebbtide/_core.abi3.so"
META = "ebbtide-0.1.0.dist-info/METADATA"
LICENCES = [
    f"ebbtide-0.1.0.dist-info/licenses/{name}" for name in ("LICENSE", "THIRD-PARTY-LICENSES.txt")
]


def elf(*names: str) -> bytes:
    """An ELF file with sections of those names and nothing in them."""
    table = b"\0".join(name.encode() for name in names) + b"\0"
    head, size = 64, 64
    places = [sum(len(name) + 1 for name in names[:i]) for i in range(len(names))]
    rows = [struct.pack("<IIQQQ", place, 0, 0, 0, head).ljust(size, b"\0") for place in places]
    start = bytearray(b"\x7fELF\x02\x01".ljust(head, b"\0"))
    struct.pack_into("<Q", start, 0x28, head + len(table))
    struct.pack_into("<HHH", start, 0x3A, size, len(rows), 0)
    return bytes(start) + table + b"".join(rows)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("check_wheel")


def wheel(folder: Path, members: dict[str, bytes]) -> Path:
    path = folder / "ebbtide-0.1.0-cp311-abi3-manylinux2014_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def good(script: ModuleType) -> dict[str, bytes]:
    return dict.fromkeys([*script.expected(), META, *LICENCES], b"") | {
        MODULE: elf(".text", ".dynsym")
    }


def test_a_wheel_has_the_package_and_nothing_else(script: ModuleType, tmp_path: Path) -> None:
    files = script.expected()
    assert {
        "ebbtide/__init__.py",
        "ebbtide/_core.pyi",
        "ebbtide/py.typed",
        "ebbtide/evals/noise/templates.toml",
        "ebbtide/evals/report/page.html.jinja",
        "ebbtide/inspection/assets/page.css",
    } <= files
    assert MODULE not in files
    assert script.problems(wheel(tmp_path, good(script)), files) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ebbtide/py.typed": None}, "ebbtide/py.typed is missing"),
        ({LICENCES[0]: None}, "licenses/LICENSE is missing"),
        ({LICENCES[1]: None}, "licenses/THIRD-PARTY-LICENSES.txt is missing"),
        ({MODULE: None}, "one compiled module is expected, not 0"),
        ({"ebbtide/_core.pyd": b""}, "one compiled module is expected, not 2"),
        ({"tests/data.json": b"{}"}, "tests/data.json does not belong there"),
        ({"ebbtide/__pycache__/a.pyc": b""}, "ebbtide/__pycache__/a.pyc does not belong there"),
        ({"ebbtide-0.1.0.dist-info/sboms/a.json": b""}, "sboms/a.json does not belong there"),
        ({MODULE: elf(".text", ".symtab")}, f"{MODULE} is not stripped"),
        ({MODULE: elf(".debug_info")}, f"{MODULE} is not stripped"),
        ({MODULE: b"at /root/.cargo/registry/src/a.rs"}, "names /root/.cargo/registry/src/a.rs"),
        ({MODULE: b"in C:\\Users\\ana\\src\\lib.rs"}, "names C:\\Users\\ana\\src\\lib.rs"),
    ],
)
def test_a_bad_wheel_is_refused(
    script: ModuleType, tmp_path: Path, change: dict[str, bytes | None], said: str
) -> None:
    members = {name: data for name, data in (good(script) | change).items() if data is not None}
    (problem, *_) = script.problems(wheel(tmp_path, members), script.expected())
    assert problem.endswith(said)


def test_a_wheel_of_this_build_says_so(
    script: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(script, "tools", lambda wheel: [])
    assert script.main([str(wheel(tmp_path, good(script)))]) == 0
    assert capsys.readouterr().out.endswith("good\n")
    assert script.main([str(wheel(tmp_path, {}))]) == 1
    assert capsys.readouterr().out.endswith("refused\n")
    assert script.main([]) == 2


@pytest.mark.parametrize(
    ("name", "needs", "fine"),
    [
        ("manylinux2014_x86_64.manylinux_2_17_x86_64", "manylinux_2_17_x86_64", True),
        ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", True),
        ("manylinux2014_x86_64.manylinux_2_17_x86_64", "manylinux_2_34_x86_64", False),
        ("musllinux_1_2_x86_64", "musllinux_1_2_x86_64", True),
        ("linux_x86_64", "manylinux_2_34_x86_64", False),
    ],
)
def test_a_wheel_keeps_the_promise_of_its_name(
    script: ModuleType, name: str, needs: str, fine: bool
) -> None:
    said = f'{name} is consistent with the following platform tag: "{needs}". The wheel'
    assert script.suits(f"ebbtide-0.1.0-cp311-abi3-{name}.whl", said) is fine


def test_the_build_names_no_folder_and_prefers_an_old_c_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    build = importlib.import_module("build_wheel")
    assert f"--remap-path-prefix={ROOT}=/ebbtide" in build.environment()["RUSTFLAGS"]
    assert "manylinux2014" in build.command(Path("out"), zig=True, offline=False)
    assert "--zig" not in build.command(Path("out"), zig=False, offline=False)


def test_typing_reaches_users_and_the_version_is_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert (ROOT / "python" / "ebbtide" / "py.typed").is_file()
    assert "Typing :: Typed" in project["project"]["classifiers"]
    assert project["tool"]["maturin"]["strip"] is True
    assert project["tool"]["maturin"]["sbom"] == {"rust": False}


def test_licences_are_those_of_what_is_linked_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    licences = importlib.import_module("third_party")
    assert licences.main(["--check"]) == 0
    names = {crate["name"] for crate in licences.crates()}
    assert {"libsqlite3-sys", "numpy", "safetensors"} <= names
    assert names & {"ebbtide-core", "syn", "serde_derive"} == set()
    monkeypatch.setattr(licences, "PAGE", tmp_path / "licences.txt")
    assert licences.main(["--check"]) == 1
    assert "python scripts/third_party.py" in capsys.readouterr().out


def test_the_first_answer_takes_five_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    trial = importlib.import_module("try_wheel")
    (code, output), *_ = trial.blocks(ROOT / "README.md")
    assert len([line for line in code.splitlines() if line.strip()]) <= 5
    assert output
    assert len(trial.blocks(ROOT / "docs" / "quickstart.md")) >= 8


def test_a_python_that_is_not_admitted_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    trial = importlib.import_module("try_wheel")
    meta = b"Metadata-Version: 2.1\nName: ebbtide\nVersion: 0.1.0\nRequires-Python: >=3.11,<3.15\n"
    tag = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    path = tmp_path / "ebbtide-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in {"METADATA": meta, "WHEEL": tag, "RECORD": b""}.items():
            archive.writestr(f"ebbtide-0.1.0.dist-info/{name}", data)
    for version in trial.REFUSED:
        assert trial.refused(version, path, tmp_path / "never")
    assert not trial.refused(trial.ADMITTED[-1], path, tmp_path / "never")


def test_the_source_distribution_has_what_a_build_needs(script: ModuleType, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "maturin", "sdist", "--out", str(tmp_path)]
    subprocess.run(words, cwd=ROOT, capture_output=True, check=True)
    (path,) = tmp_path.glob("ebbtide-*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {"Cargo.lock", "Cargo.toml", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}
    needed |= {"THIRD-PARTY-LICENSES.txt", ".cargo/config.toml"}
    needed |= {f"python/{name}" for name in script.expected()}
    assert needed <= names
    assert {name for name in names - needed if not name.startswith("rust/")} == set()
    assert not any(name.endswith((".so", ".pyd", ".whl")) for name in names)


@pytest.mark.long
def test_users_of_the_package_have_its_types(tmp_path: Path) -> None:
    """mypy --strict over a program that imports the package as installed."""
    program = tmp_path / "program.py"
    program.write_text(
        "import ebbtide\n"
        "with ebbtide.Memory.open('m.db') as memory:\n"
        "    reveal_type(memory.add('tea'))\n"
        "    reveal_type(memory.retrieve('tea?', limit=3)[0].turn.text)\n"
        "    memory.add(3)\n"
    )
    words = [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(program)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert 'Revealed type is "ebbtide.types.WriteReport"' in done.stdout
    assert 'Revealed type is "str"' in done.stdout.replace("builtins.", "")
    assert '"add" of "Memory" has incompatible type "int"' in done.stdout
    assert "Found 1 error in 1 file" in done.stdout


@pytest.mark.long
def test_the_wheel_in_dist_works_with_every_python_here() -> None:
    """After `make wheel`; needs the package index."""
    found = sorted((ROOT / "dist").glob("ebbtide-[0-9]*.whl"))
    if not found:
        pytest.skip("no wheel in dist: make wheel")
    words = [sys.executable, str(ROOT / "scripts" / "try_wheel.py"), str(found[0])]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
