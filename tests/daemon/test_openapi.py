"""The OpenAPI description, and that the daemon keeps to it whatever is sent."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from pydantic import BaseModel
from reference.stand_ins import HashEmbedder, StubAnalyser, scripted
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from ebbtide import Config, connect
from ebbtide.daemon import models
from ebbtide.daemon.app import openapi
from ebbtide.daemon.connections import Connections
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


SETTINGS: dict[str, Any] = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": list(HealthCheck),
}


@schema.parametrize()
@settings(max_examples=6, **SETTINGS)
def test_the_daemon_keeps_to_its_description(case: Any, address: tuple[str, str]) -> None:
    check(case, address)


@pytest.mark.long
@schema.parametrize()
@settings(max_examples=300, **SETTINGS)
def test_the_daemon_keeps_to_it_for_long(case: Any, address: tuple[str, str]) -> None:
    check(case, address)


def check(case: Any, address: tuple[str, str]) -> None:
    base, token = address
    # What is of the right shape may still be refused: a blank question, an unknown turn.
    # And a wrong parameter may not even be sent, if its made-up value is an empty list;
    # test_guard.py has requests that must be refused.
    case.call_and_validate(
        base_url=base,
        headers={"Authorization": f"Bearer {token}"},
        excluded_checks=[negative_data_rejection, positive_data_acceptance],
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


def test_answers_have_the_shapes_that_are_described(address: tuple[str, str]) -> None:
    """Real answers, where made-up requests rarely lead to one."""
    base, token = address
    turn = b'{"text": "The tea is v1.", "timestamp": 5, "metadata": {"a": [1]}}'
    question = b'{"query_text": "what is the tea?"}'
    asked: list[tuple[str, str, bytes | None, type[BaseModel]]] = [
        ("POST", "/turns?", turn, models.Report),
        ("POST", "/remember?", turn, models.Remembered),
        ("GET", "/turns?limit=3", None, models.Page),
        ("GET", "/turn?interaction_id=3", None, models.StoredTurn),
        ("GET", "/history?external_id=t7", None, models.TurnsAnswer),
        ("GET", "/explain?interaction_id=7", None, models.ExplainAnswer),
        ("POST", "/retrieve?", question, models.EvidenceAnswer),
        ("POST", "/context?", question, models.Rendered),
        ("POST", "/trace?", question, models.TraceAnswer),
        ("GET", "/stats?", None, models.StatsAnswer),
        ("GET", "/digest?", None, models.DigestAnswer),
        ("PUT", "/namespace?", None, models.NamespaceAnswer),
        ("GET", "/namespaces", None, models.NamespacesAnswer),
        ("GET", "/health", None, models.Health),
    ]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with connect(base, token=token, namespace="shapes") as memory:
        memory.add_many(scripted(n) for n in range(30))
    with closing(Connections(base, 30)) as connection:
        for method, path, body, model in asked:
            target = f"/v1{path}&namespace=shapes" if "?" in path else f"/v1{path}"
            answer = connection.exchange(method, target, body, headers)
            assert answer.status == 200, path
            found = model.model_validate_json(answer.body, strict=True)
            named = set(json.loads(answer.body))
            assert named == set(model.model_fields) or model.model_config.get("extra") == "allow"
            assert found.model_fields_set == named
