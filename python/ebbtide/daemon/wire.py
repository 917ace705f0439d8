"""What both ends agree on: the headers, and how turns, reports and errors look as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from ebbtide.errors import (
    ConfigError,
    EbbtideError,
    ExternalError,
    FingerprintError,
    InputError,
    NotFoundError,
    SchemaVersionError,
    StoreError,
)
from ebbtide.types import (
    Eviction,
    RenderedContext,
    RetrievedEvidence,
    SupportTurn,
    Turn,
    WriteReport,
)

__all__ = [
    "INSTANCE_HEADER",
    "KEY_HEADER",
    "LINES",
    "MAX_BODY",
    "PREFIX",
    "encoded",
    "error_data",
    "error_from",
    "evidence_from",
    "given_turn",
    "moment",
    "rendered_from",
    "report_from",
    "status_of",
    "turn_from_wire",
]

PREFIX = "/v1"
KEY_HEADER = "Idempotency-Key"
INSTANCE_HEADER = "Ebbtide-Instance"
LINES = "application/x-ndjson"

MAX_BODY = 8 * 2**20
"""Bytes of a request's body that a daemon accepts unless told otherwise."""

_CLASSES: dict[str, type[EbbtideError]] = {
    "config": ConfigError,
    "input": InputError,
    "store": StoreError,
    "schema": SchemaVersionError,
    "fingerprint": FingerprintError,
    "not_found": NotFoundError,
}

_STATUS = {
    "daemon.token": 401,
    "daemon.origin": 403,
    "daemon.route": 404,
    "not_found": 404,
    "daemon.uncertain": 409,
    "fingerprint": 409,
    "config": 422,
    "input": 422,
    "daemon.unavailable": 503,
    "store.closed": 503,
}
"""HTTP status by code, or else by its family; what is not listed is the daemon's failure."""


def status_of(code: str) -> int:
    """The HTTP status that goes with an error code."""
    return _STATUS.get(code) or _STATUS.get(code.partition(".")[0]) or 500


def error_data(code: str, message: str) -> bytes:
    """The one shape of an error; ASCII, since a message may quote what is no Unicode."""
    return json.dumps({"error": {"code": code, "message": message}}).encode("ascii")


def error_from(code: str, message: str) -> EbbtideError:
    """The exception that the daemon's side raised."""
    return _CLASSES.get(code.partition(".")[0], ExternalError)(message, code)


def encoded(data: Any) -> bytes:
    """Data as JSON; floats keep every digit, so that they come out as they went in."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8")


def given_turn(turn: Turn) -> dict[str, Any]:
    """A turn as a caller gave it, without its empty fields."""
    data = {
        "text": turn.text,
        "role": turn.role,
        "speaker": turn.speaker,
        "timestamp": moment(turn.timestamp),
        "session_id": turn.session_id,
        "external_id": turn.external_id,
        "provenance": turn.provenance,
        "metadata": turn.metadata,
    }
    return {name: value for name, value in data.items() if value is not None}


def moment(value: Any) -> Any:
    """A time as it is stored: the ISO form of a datetime or date reads as itself."""
    return value.isoformat() if isinstance(value, date | datetime) else value


def turn_from_wire(data: Mapping[str, Any]) -> Turn:
    """A stored turn from :meth:`Turn.to_dict`."""
    utc = data["utc"]
    return Turn(**{**data, "utc": None if utc is None else datetime.fromisoformat(utc)})


def report_from(data: Mapping[str, Any]) -> WriteReport:
    """A report from :meth:`WriteReport.to_dict`."""
    return WriteReport(**{**data, "evicted": [Eviction(**one) for one in data["evicted"]]})


def evidence_from(data: Mapping[str, Any]) -> RetrievedEvidence:
    """Evidence from :meth:`RetrievedEvidence.to_dict`."""
    support = [SupportTurn(turn_from_wire(s["turn"]), s["relation"]) for s in data["support"]]
    return RetrievedEvidence(**{**data, "turn": turn_from_wire(data["turn"]), "support": support})


def rendered_from(data: Mapping[str, Any]) -> RenderedContext:
    """A rendered block from its fields."""
    return RenderedContext(data["text"], tuple(data["shown"]), data["tokens"])
