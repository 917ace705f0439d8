"""`ebbtide --version` and shell completion."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ebbtide import Memory, _core
from ebbtide.cli import main

COMMAND = [sys.executable, "-c", "from ebbtide.cli import main; main()"]


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code in (0, None)
    return capsys.readouterr().out


def test_the_version_names_all_that_a_store_depends_on(
    capsys: pytest.CaptureFixture[str], store_path: Path
) -> None:
    found = json.loads(printed(capsys, "--version", "--json"))
    assert found == json.loads(printed(capsys, "--json", "--version"))
    assert list(found) == [
        "ebbtide",
        "core",
        "schema",
        "embedder",
        "analyser",
        "token_counter",
        "python",
        "libraries",
    ]
    assert found["ebbtide"] == found["core"]["version"] == _core.__version__
    core = Path(_core.__file__).read_bytes()
    assert found["core"]["sha256"] == hashlib.sha256(core).hexdigest()
    assert re.fullmatch(r"\w+-(linux-(gnu|musl)|macos|windows-msvc)", found["core"]["target"])
    assert found["core"]["profile"] in ("release", "debug")
    assert found["token_counter"] == "cl100k_base"
    assert found["embedder"] in found["analyser"]
    assert {"numpy", "spacy", "onnxruntime"} <= set(found["libraries"])
    with Memory.open(store_path) as memory:
        memory.add("tea")
        exported = store_path.with_suffix(".jsonl")
        memory.export(exported)
        made_with = memory._store.made_with("default")
    header = json.loads(exported.read_text(encoding="utf-8").splitlines()[0])
    assert header["schema"] == found["schema"]
    assert made_with is not None
    assert found["analyser"] in made_with


def test_the_version_is_readable(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, "--version").splitlines()
    assert lines[0] == f"ebbtide {_core.__version__}"
    assert [line.partition(" ")[0] for line in lines] == [
        "ebbtide",
        "core",
        "schema",
        "embedder",
        "analyser",
        "token_counter",
        "python",
    ]


def test_the_version_is_told_without_the_model_package(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ebbtide_model_bge_small_en", None)
    found = json.loads(printed(capsys, "--version", "--json"))
    assert "is not installed" in found["embedder"]
    assert found["ebbtide"] == _core.__version__


def test_json_alone_belongs_to_a_command() -> None:
    done = run("--json")
    assert done.returncode == 2
    assert json.loads(done.stderr)["error"]["code"] == "usage"


@pytest.mark.parametrize(
    ("shell", "part"), [("bash", "complete -o default"), ("zsh", "#compdef"), ("fish", "complete ")]
)
def test_completion_is_printed_for_each_shell(shell: str, part: str, tmp_path: Path) -> None:
    # The shell is named here; for a user it is the one that runs the command.
    done = run(
        *("--show-completion", shell),
        _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1",
        HOME=str(tmp_path),
    )
    assert done.returncode == 0, done.stderr
    assert part in done.stdout
    assert "_EBBTIDE_COMPLETE" in done.stdout


@pytest.mark.parametrize(
    ("shell", "file"),
    [
        ("bash", ".bash_completions/ebbtide.sh"),
        ("zsh", ".zfunc/_ebbtide"),
        ("fish", ".config/fish/completions/ebbtide.fish"),
    ],
)
def test_completion_is_installed_in_the_home_of_its_user(
    shell: str, file: str, tmp_path: Path
) -> None:
    done = run(
        *("--install-completion", shell),
        _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1",
        HOME=str(tmp_path),
    )
    assert done.returncode == 0, done.stderr
    assert "_EBBTIDE_COMPLETE" in (tmp_path / file).read_text(encoding="utf-8")


def test_commands_are_completed() -> None:
    done = run(_EBBTIDE_COMPLETE="complete_bash", COMP_WORDS="ebbtide re", COMP_CWORD="1")
    assert done.stdout.split() == ["replay", "retain", "reindex"]
