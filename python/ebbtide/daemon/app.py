"""The HTTP application: routes, their OpenAPI description, and errors in one shape."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ebbtide import _core
from ebbtide.daemon.routes import adding, changing, reading
from ebbtide.daemon.service import Service
from ebbtide.daemon.wire import PREFIX, encoded, error_data, status_of
from ebbtide.errors import EbbtideError, InputError
from ebbtide.extras import MissingExtraError
from ebbtide.messages import shown

try:
    from fastapi import Depends, FastAPI, Request, Response
    from fastapi.exceptions import RequestValidationError
    from fastapi.security import HTTPBearer
    from starlette.exceptions import HTTPException
except ImportError as error:
    raise MissingExtraError(error, "serve") from error

from ebbtide.daemon.models import ErrorAnswer, Health

__all__ = ["build_app", "openapi"]

_DESCRIPTION = """\
The memories of one store, for several processes. Every route takes the memory's name as
the query parameter `namespace`. Answers are what the same call gives in the process that
opened the store."""

_ERRORS = {
    401: "The token is missing or wrong.",
    403: "The request came with an Origin, or for another host.",
    404: "There is no such memory, turn or route.",
    408: "The body stopped coming, or took too long.",
    409: "The store was made with another model, or the daemon was started anew meanwhile.",
    413: "The body is too long.",
    422: "The request is unusable; the message says why.",
    500: "The daemon failed.",
    503: "The daemon is stopping, or busy.",
}


def build_app(service: Callable[[], Service], *, store: str = "") -> FastAPI:
    """The application over a service, which is asked for at each request.

    Args:
        service: Gives the service.
        store: The store file, for the health route.
    """
    app = FastAPI(
        title="ebbtide",
        summary="A deterministic memory for conversational agents.",
        description=_DESCRIPTION,
        version=_core.__version__,
        openapi_url=f"{PREFIX}/openapi.json",
        # The pages that show the description load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[
            Depends(HTTPBearer(auto_error=False, description="See --token-file.")),
            Depends(_known_query),
        ],
        responses={
            status: {"model": ErrorAnswer, "description": words}
            for status, words in _ERRORS.items()
        },
    )
    for router in (adding(service), changing(service), reading(service)):
        app.include_router(router, prefix=PREFIX)

    @app.get(f"{PREFIX}/health", response_model=Health, tags=["daemon"])
    async def health() -> Response:
        """Who answers, and in which version."""
        found = {
            "status": "ok",
            "version": _core.__version__,
            "instance": service().instance,
            "process": os.getpid(),
            "store": store,
        }
        return Response(encoded(found), media_type="application/json")

    _add_handlers(app)
    return app


def openapi() -> dict[str, Any]:
    """The OpenAPI description; needs no store."""

    def none() -> Service:
        raise AssertionError("a description answers no request")

    return build_app(none).openapi()


def _known_query(request: Request) -> None:
    """A parameter that is misspelt, or there twice, is not passed over.

    Raises:
        InputError: Naming it.
    """
    known = {field.alias for field in request.scope["route"].dependant.query_params}
    seen: set[str] = set()
    for name, _ in request.query_params.multi_items():
        if name not in known or name in seen:
            there = ", ".join(sorted(known)) or "none"
            message = f"query parameters here are, once each: {there}; not {shown(name)}"
            raise InputError(message, "input.field")
        seen.add(name)


def _add_handlers(app: FastAPI) -> None:
    @app.exception_handler(EbbtideError)
    async def typed(request: Request, error: EbbtideError) -> Response:
        return _failure(status_of(error.code), error.code, str(error))

    @app.exception_handler(RequestValidationError)
    async def misshapen(request: Request, error: RequestValidationError) -> Response:
        code, message = _first(error.errors())
        return _failure(422, code, message)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        if error.status_code in (404, 405):
            message = f"there is no {request.method} {request.url.path}; see {PREFIX}/openapi.json"
            found = _failure(error.status_code, "daemon.route", message)
            if error.status_code == 405:
                # One path may be several routes; all their methods are meant.
                methods = app.openapi()["paths"].get(request.url.path, {})
                found.headers["Allow"] = ", ".join(sorted(method.upper() for method in methods))
            return found
        return _failure(422, "input.field", f"the body cannot be read: {error.detail}")

    @app.exception_handler(Exception)
    async def unforeseen(request: Request, error: Exception) -> Response:
        message = f"the daemon failed with {type(error).__name__}; its log has the details"
        return _failure(500, "daemon.failed", message)


def _failure(status: int, code: str, message: str) -> Response:
    return Response(error_data(code, message), status, media_type="application/json")


def _first(errors: Any) -> tuple[str, str]:
    """The first of the validator's complaints, in our words."""
    first = errors[0]
    where = ".".join(str(part) for part in first["loc"][1:]) or "the body"
    code = "input.unicode" if first["type"] == "string_unicode" else "input.field"
    return code, f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}"
