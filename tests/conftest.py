"""Shared fixtures: stand-ins for the models, the data folder, real models loaded once."""

from __future__ import annotations

import functools
import itertools
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from reference.stand_ins import HashEmbedder, StubAnalyser

from ebbtide import Config

# A shell starts what runs in its background with Ctrl-C ignored, and that would be handed
# on to the processes that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# ONNX Runtime's telemetry stays off in the tests, whatever they import first.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

# An example takes longer on a busy machine, and is no failure for that.
settings.register_profile("ebbtide", deadline=None)
settings.load_profile("ebbtide")

ROOT = Path(__file__).parents[1]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With several workers (`make test`) each takes whole files: their fixtures are made once.

    The archives' servers are started once too, by the worker that has that folder.
    """
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return "tests/archives" if file.startswith("tests/archives/") else file

    return Together(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests measured stands at the end, whichever worker ran them."""
    for report in itertools.chain.from_iterable(terminalreporter.stats.values()):
        for name, text in getattr(report, "user_properties", ()):
            if name == "measured" and report.when == "call":
                terminalreporter.write_line(text)


@pytest.fixture
def measured(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Given a sentence, has it printed at the end of the run."""
    return functools.partial(record_property, "measured")


@pytest.fixture(scope="session", autouse=True)
def _models_once() -> Iterator[None]:
    """Each memory loads spaCy anew; in the tests one loaded pipeline serves all."""
    from ebbtide.analysis import spacy_analyser

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spacy_analyser, "_load", functools.cache(spacy_analyser._load))
        yield


@pytest.fixture(scope="session")
def embedder() -> HashEmbedder:
    """A cheap deterministic embedder, dimension 32."""
    return HashEmbedder(32)


@pytest.fixture(scope="session")
def cheap(embedder: HashEmbedder) -> Config:
    """The default preset with the cheap embedder; spaCy is the real one."""
    return Config().with_embedder(embedder)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch, cheap: Config) -> Config:
    """No models at all: the analysis is replaced by hashes. Returns a configuration."""
    monkeypatch.setattr("ebbtide.analysis.analyser.Analyser", StubAnalyser)
    return cheap


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The benchmark data, which is not part of the project."""
    folder = Path(os.environ.get("EBBTIDE_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no benchmark data in {folder}; set EBBTIDE_DATA")
    return folder


@pytest.fixture(scope="session")
def example_turns() -> list[dict[str, Any]]:
    """The example conversation, as mappings."""
    text = (ROOT / "examples" / "conversation.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    """Where a test's store goes."""
    return tmp_path / "memory.db"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a window, closed after the module."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = os.environ.get("EBBTIDE_CHROMIUM", "/usr/bin/chromium")
    if shutil.which(chromium) is None:
        pytest.skip(f"there is no {chromium}; set EBBTIDE_CHROMIUM")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()
