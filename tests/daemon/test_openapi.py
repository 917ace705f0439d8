"""The OpenAPI description, and that the daemon keeps to it whatever is sent."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from reference.stand_ins import HashEmbedder, StubAnalyser, scripted
from schemathesis.specs.openapi.checks import positive_data_acceptance

from ebbtide import Config
from ebbtide.daemon.app import openapi
from ebbtide.daemon.server import Settings

from .conftest import serving

SCHEMA = openapi()
schema = schemathesis.openapi.from_dict(SCHEMA)


@schemathesis.serializer("application/x-ndjson")
def _lines(context: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A daemon with one memory, and its token."""
    store = tmp_path_factory.mktemp("daemon") / "memory.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ebbtide.analysis.analyser.Analyser", StubAnalyser)
        config = Config().with_embedder(HashEmbedder(32))
        with serving(Settings(store, config=config, port=0)) as served:
            with served.connect() as memory:
                memory.add_many(scripted(n) for n in range(30))
            yield served.address, served.token.read_text().strip()


@schema.parametrize()
@settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_the_daemon_keeps_to_its_description(case: Any, address: tuple[str, str]) -> None:
    base, token = address
    # What is of the right shape may still be refused: a blank question, an unknown turn.
    case.call_and_validate(
        base_url=base,
        headers={"Authorization": f"Bearer {token}"},
        excluded_checks=[positive_data_acceptance],
    )


def test_every_route_is_described() -> None:
    assert SCHEMA["openapi"].startswith("3.")
    for path, methods in SCHEMA["paths"].items():
        assert path.startswith("/v1/")
        for method, route in methods.items():
            assert route["description"], (method, path)
            assert {"401", "403", "413", "422"} <= set(route["responses"]), (method, path)
            assert route["security"] == [{"HTTPBearer": []}]
    assert "HTTPValidationError" not in SCHEMA["components"]["schemas"]
    for name, model in SCHEMA["components"]["schemas"].items():
        assert model["description"], name


def test_the_command_prints_it_and_opens_nothing(tmp_path: Path) -> None:
    words = [sys.executable, "-c", "from ebbtide.cli import main; main()", "serve", "--openapi"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert json.loads(done.stdout) == SCHEMA
    assert list(tmp_path.iterdir()) == []


def test_routes_of_the_page_exist() -> None:
    page = (Path(__file__).parents[2] / "docs" / "daemon.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([A-Z]+) (/v1/[\w/]+)` \|", page, re.MULTILINE))
    there = {
        (method.upper(), path) for path, methods in SCHEMA["paths"].items() for method in methods
    }
    assert listed == there
