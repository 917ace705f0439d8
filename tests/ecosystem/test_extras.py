"""Without its package an optional part says which extra brings it."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ebbtide import ConfigError, InputError
from ebbtide.extras import MissingExtraError
from ebbtide.importers.failures import ExportError

ROOT = Path(__file__).parents[2]
PARTS = {
    "ebbtide.adapters.langchain": ("langchain_core", "langchain"),
    "ebbtide.adapters.langgraph": ("langgraph", "langgraph"),
    "ebbtide.adapters.llamaindex": ("llama_index", "llamaindex"),
    "ebbtide.adapters.openai_agents": ("agents", "openai-agents"),
    "ebbtide.daemon.app": ("fastapi", "serve"),
    "ebbtide.daemon.server": ("uvicorn", "serve"),
    "ebbtide.distributed.cluster": ("distributed", "dask"),
    "ebbtide.mcp": ("mcp", "mcp"),
    "ebbtide.telemetry": ("opentelemetry", "otel"),
}


def test_errors_come_back_whole_from_another_process() -> None:
    for error in (
        MissingExtraError(ImportError("no", name="dask.array"), "dask"),
        MissingExtraError(ImportError("no"), "dask"),
        ExportError("it is no chat", "chat.json"),
        InputError("no", "input.field"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert (str(again), again.code) == (str(error), error.code)
        assert getattr(again, "place", None) == getattr(error, "place", None)


@pytest.mark.parametrize("module", PARTS)
def test_a_missing_package_names_the_extra(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package, extra = PARTS[module]
    ours = ("adapters", "daemon", "mcp", "telemetry")
    parts = (f"{package}.", *(f"ebbtide.{part}" for part in ours))
    for name in list(sys.modules):
        if name in (package, module) or name.startswith(parts):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError) as caught:
        importlib.import_module(module)
    assert isinstance(caught.value, ConfigError)
    assert caught.value.code == "config.model_missing"
    assert str(caught.value) == f'{package} is not installed: pip install "ebbtide[{extra}]"'


def test_every_part_has_its_extra_and_ci_installs_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    for _, extra in PARTS.values():
        assert extra in extras
        assert extra in extras["dev"][0].removeprefix("ebbtide[").removesuffix("]").split(",")


def test_the_package_and_its_command_line_load_none_of_them() -> None:
    packages = [package for package, _ in PARTS.values()]
    code = (
        f"import sys, ebbtide, ebbtide.cli.app; print([p for p in {packages} if p in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_command_says_which_extra_it_needs(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['mcp'] = None\n"
        "from ebbtide.cli import main; main(['mcp', '--store', 'x.db'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 2
    assert 'pip install "ebbtide[mcp]"' in done.stderr
    assert not list(tmp_path.iterdir())
