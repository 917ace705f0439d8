"""The workflows: what they build, what they may do, and that their syntax is known."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(name: str) -> dict[str, Any]:
    text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
    # YAML 1.1 reads the key "on" as true.
    found: dict[str, Any] = {
        "on" if key is True else key: v for key, v in yaml.safe_load(text).items()
    }
    return found


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_both_are_there() -> None:
    assert [path.stem for path in WORKFLOWS] == ["ci", "wheels"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_the_schema_of_workflows_holds(path: Path) -> None:
    pytest.importorskip("check_jsonschema")
    words = ["check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(path)]
    done = subprocess.run(
        [sys.executable, "-m", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", [path.stem for path in WORKFLOWS])
def test_actions_are_pinned_and_nothing_is_secret(name: str) -> None:
    workflow = read(name)
    text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert used
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+@v\d+\.\d+\.\d+", action) for action in used), used
    assert "secrets." not in text
    assert workflow["permissions"] == {"contents": "read"}
    for step in steps(workflow):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
        # A branch's name is somebody's text: it must not become a part of a script.
        assert "${{" not in step.get("run", "")
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 90


def test_ci_runs_what_a_developer_runs_on_every_python() -> None:
    (job,) = read("ci")["jobs"].values()
    assert ".ci/run" in [step.get("run") for step in job["steps"]]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    admitted = [
        line.rpartition(" ")[2]
        for line in project["classifiers"]
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", line)
    ]
    assert job["strategy"]["matrix"]["python"] == admitted == ["3.11", "3.12", "3.13", "3.14"]
    assert project["requires-python"] == ">=3.11,<3.15"


def test_every_platform_has_its_wheel() -> None:
    built = {
        row["name"]: row for row in read("wheels")["jobs"]["wheel"]["strategy"]["matrix"]["include"]
    }
    assert {name: row["target"] for name, row in built.items()} == {
        "manylinux-x86_64": "x86_64-unknown-linux-gnu",
        "manylinux-aarch64": "aarch64-unknown-linux-gnu",
        "musllinux-x86_64": "x86_64-unknown-linux-musl",
        "musllinux-aarch64": "aarch64-unknown-linux-musl",
        "macos-x86_64": "x86_64-apple-darwin",
        "macos-arm64": "aarch64-apple-darwin",
        "windows-x64": "x86_64-pc-windows-msvc",
    }
    for name, row in built.items():
        assert row["libc"].startswith(name.partition("-")[0]) or row["libc"] == "off"
    lock = (ROOT / "rust" / "py" / "Cargo.toml").read_text(encoding="utf-8")
    assert '"abi3-py311"' in lock  # one wheel for every Python


def test_a_tag_alone_publishes_and_only_what_was_built() -> None:
    workflow = read("wheels")
    publish = workflow["jobs"]["publish"]
    assert workflow["on"]["push"] == {"tags": ["v*"]}
    assert publish["if"] == "startsWith(github.ref, 'refs/tags/v')"
    assert sorted(publish["needs"]) == sorted(set(workflow["jobs"]) - {"publish"})
    assert publish["environment"] == "pypi"
    assert publish["permissions"] == {
        "attestations": "write",
        "contents": "read",
        "id-token": "write",
    }
    used = [step["uses"].partition("@")[0] for step in publish["steps"]]
    assert used == [
        "actions/download-artifact",
        "actions/attest-build-provenance",
        "pypa/gh-action-pypi-publish",
    ]
    others = [job for name, job in workflow["jobs"].items() if name != "publish"]
    assert not any("permissions" in job for job in others)


def test_scripts_that_the_workflows_run_exist() -> None:
    for path in WORKFLOWS:
        for script in re.findall(r"\b(?:scripts|models)/[\w./-]+\.py", path.read_text("utf-8")):
            assert (ROOT / script).is_file(), script
