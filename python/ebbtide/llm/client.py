"""A client for language models behind an OpenAI-compatible endpoint.

Requests are as repeatable as an endpoint allows: temperature 0, a fixed seed, and
an optional cache on disk. What goes wrong outside (a refused connection, a
time-out, a reply that is no JSON) is tried again a bounded number of times, then
raised with a code of the ``llm`` family, so that a caller can go on without:

    llm.unavailable   the endpoint cannot be reached or used at all
    llm.request       it refused this request, say because it is too long, or the
                      text cannot be sent at all
    llm.answer        it replied, but with nothing that can be used
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ebbtide.closing import Closing
from ebbtide.errors import ExternalError, InputError
from ebbtide.llm.breaking import CircuitBreaker
from ebbtide.llm.cache import LlmCache
from ebbtide.llm.endpoint import Endpoint
from ebbtide.llm.parsing import completion_of, cost_of, is_unicode, reply_value, validator
from ebbtide.llm.replies import Message, Reply, Usage, plausible
from ebbtide.llm.tally import used

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

__all__ = ["LlmClient"]

Structured = Literal["json_schema", "json_object", "none"]

_REFUSED_REQUEST = frozenset({400, 413, 422})
"""HTTP statuses that blame the request and not the endpoint or the key."""
_SHOWN = 300
_OBJECT_TOKENS = 1024
"""Most tokens of a JSON object from :meth:`LlmClient.complete_json`."""


class LlmClient(Closing):
    """A model behind an OpenAI-compatible endpoint. Safe to share between threads."""

    def __init__(
        self,
        model: str,
        base_url: str,
        *,
        api_key: str | None = None,
        api_key_variable: str | None = None,
        cache: LlmCache | None = None,
        seed: int = 0,
        timeout: float = 60.0,
        attempts: int = 4,
        failures: int = 3,
        skipped: int = 20,
        structured: Structured = "json_schema",
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        """Make a client; nothing is sent yet.

        Args:
            model: Name of the model at the endpoint.
            base_url: The endpoint, up to and including ``/v1``, without a query. A
                user name and password in it are sent as basic authentication, instead
                of a key, and treated as a key is.
            api_key: The key, where the endpoint wants one. It is neither stored,
                logged nor shown.
            api_key_variable: Name of the environment variable that holds it, instead.
            cache: Where replies are kept; closed by whoever opened it.
            seed: Sent along, for endpoints that honour it.
            timeout: Seconds without a byte from the endpoint, per attempt.
            attempts: How often a request is tried, at least 1: on a lost connection,
                a time-out, HTTP 408, 409, 429 and 5xx, with growing pauses or
                those that the endpoint asks for, and as often on unusable replies.
            failures: So many requests in a row that end with ``llm.unavailable`` make the
                next ones end with it at once, and with the same words; 0 never does.
            skipped: How many of them, before one is sent again.
            structured: How a JSON reply is asked for; ``json_object`` and ``none``
                are for endpoints that know no schemas. It is validated in any case.
            parameters: Fields of the request's body to set, known to the package or
                not, or, with None, to leave out, for models that refuse a field, as
                in ``{"temperature": None, "reasoning_effort": "low"}``.

        Raises:
            MissingExtraError: openai or jsonschema is not installed (a ``ConfigError``).
            InputError: ``input.field``: an argument that cannot be used, or no such
                environment variable.
            ExternalError: ``llm.unavailable``: no connection can be made with the proxy
                or the certificates that the environment names.
        """
        if not model:
            raise InputError("a language model needs a name", "input.field")
        if attempts < 1 or not 0.0 < timeout < math.inf:
            message = "attempts must be at least 1 and timeout a positive number of seconds"
            raise InputError(message, "input.field")
        if failures < 0 or skipped < 0:
            raise InputError("failures and skipped must be 0 or more", "input.field")
        self._model = model
        self._endpoint = Endpoint.named(base_url, api_key, api_key_variable)
        self._cache = cache
        self._attempts = attempts
        self._breaker = CircuitBreaker(failures, skipped)
        self._structured = structured
        defaults = {"model": model, "temperature": 0.0, "seed": seed}
        self._defaults = defaults | _fields(parameters or {})
        self._lock = threading.Lock()
        self._logical = self._spent = Usage()
        self._client = self._endpoint.connect(timeout, attempts)

    def __repr__(self) -> str:
        return f"LlmClient({self._model!r}, {self._endpoint.address!r})"

    def close(self) -> None:
        """Free the connections."""
        self._client.close()

    @property
    def logical(self) -> Usage:
        """What the replies so far cost, cached ones at what they cost when first asked."""
        return self._logical

    @property
    def spent(self) -> Usage:
        """What was really asked of the endpoint so far."""
        return self._spent

    def identity(self) -> dict[str, Any]:
        """What replies depend on besides the messages; JSON, no credentials."""
        return {
            "base_url": self._endpoint.address,
            "structured": self._structured,
            **self._defaults,
        }

    def ask(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        schema: Mapping[str, Any] | None = None,
    ) -> Reply:
        """Reply to a conversation, from the cache where it has been asked before.

        Args:
            messages: The conversation.
            max_tokens: Most tokens of the reply.
            schema: JSON schema of the reply, of the subset that endpoints know as
                strict: every property required, no additional ones. Without one the
                reply is plain text.

        Raises:
            ExternalError: ``llm.unavailable``, ``llm.request`` or ``llm.answer``.
            InputError: ``input.field``: the schema cannot be used.
            StoreError: ``store.sqlite``: the cache cannot be read or written.
        """
        checker = None if schema is None else validator(schema)
        if not all(is_unicode(message["content"]) for message in messages):
            raise self._failed("the text is not valid Unicode, mend it first", "llm.request")
        request = self._request(messages, max_tokens, schema)
        if self._cache is None:
            return self._fresh(request, checker)
        key = LlmCache.key({"identity": self.identity(), "request": request})
        reply = _from_cache(self._cache.get(key), checker)
        if reply is not None:
            self._meter(reply.usage, spent=False)
            return reply
        reply = self._fresh(request, checker)
        kept = {"text": reply.text, "finish": reply.finish, "usage": asdict(reply.usage)}
        self._cache.put(key, kept)
        return reply

    def complete_json(self, system: str, user: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """A reply of one JSON object; see :meth:`ask` for what is raised.

        Args:
            system: Who the model is and how it replies.
            user: What is asked.
            schema: JSON schema of the reply, an object.
        """
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        reply = self.ask(messages, max_tokens=_OBJECT_TOKENS, schema=schema)
        if not isinstance(reply.data, dict):
            raise self._failed("the schema of the reply is that of no object", "llm.answer")
        return reply.data

    def _request(
        self, messages: Sequence[Message], max_tokens: int, schema: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        fields: dict[str, Any] = {"messages": [dict(m) for m in messages], "max_tokens": max_tokens}
        if schema is not None and self._structured == "json_schema":
            described = {"name": "reply", "strict": True, "schema": dict(schema)}
            fields["response_format"] = {"type": "json_schema", "json_schema": described}
        elif schema is not None and self._structured == "json_object":
            fields["response_format"] = {"type": "json_object"}
        fields |= self._defaults
        return {name: value for name, value in fields.items() if value is not None}

    def _fresh(self, request: dict[str, Any], checker: Validator | None) -> Reply:
        """Ask, and ask again with the mistake pointed out while the reply cannot be used."""
        messages = list(request["messages"])
        usage = Usage()
        wrong = ""
        for _ in range(self._attempts):
            try:
                text, finish, refusal, cost = self._send(request | {"messages": messages})
            except ValueError as error:
                wrong = f"not a chat completion ({error})"
                continue
            usage += cost
            self._meter(cost, spent=True)
            try:
                return Reply(text, reply_value(text, checker), finish, usage, cached=False)
            except ValueError as error:
                wrong = f"{error} (it stopped for: {finish})"
                if refusal:
                    wrong += f", it refuses: {refusal}"
            if checker is None:  # there is no mistake to point out
                raise self._failed(f"no usable reply: {wrong}", "llm.answer")
            # The same messages would get the same reply: temperature and seed are fixed.
            correction = f"That cannot be used: {wrong}. Reply with valid JSON only."
            messages = [
                *request["messages"],
                {"role": "assistant", "content": text or "(nothing)"},
                {"role": "user", "content": correction},
            ]
        raise self._failed(f"no usable reply in {self._attempts} attempts: {wrong}", "llm.answer")

    def _send(self, request: dict[str, Any]) -> _Sent:
        """One reply, unless the endpoint was not there the last times.

        Raises:
            ValueError: The body is no chat completion.
        """
        if self._client.is_closed():
            raise self._failed("the client was closed; make another", "llm.unavailable")
        if (reason := self._breaker.refusal()) is not None:
            raise ExternalError(reason, "llm.unavailable")
        gone = None
        try:
            body = self._posted(request)
        except ExternalError as error:
            gone = str(error) if error.code == "llm.unavailable" else None
            raise
        finally:
            self._breaker.tell(gone)
        # JSON is UTF-8, whatever else a header may say.
        completion = completion_of(body.decode("utf-8", "replace"))
        choice = completion["choices"][0]
        text = _mended(choice["message"].get("content") or "")
        finish = _mended(str(choice.get("finish_reason") or "unknown"))
        refusal = _mended(str(choice["message"].get("refusal") or ""))
        return _Sent(text, finish, refusal, cost_of(completion, request["messages"], text))

    def _posted(self, request: dict[str, Any]) -> bytes:
        """The body of a reply.

        Raises:
            ValueError: The package cannot make anything of it.
        """
        import openai

        fields = {name: value for name, value in request.items() if name != "messages"}
        try:
            # The body as it came: the package's own types let anything through.
            response = self._client.chat.completions.with_raw_response.create(
                messages=request["messages"], model=self._model, extra_body=fields
            )
        except openai.APIStatusError as error:
            refused = error.status_code in _REFUSED_REQUEST
            code = "llm.request" if refused else "llm.unavailable"
            raise self._failed(f"HTTP {error.status_code}: {error.message}", code) from None
        except openai.APITimeoutError:
            raise self._failed("no reply in time", "llm.unavailable") from None
        except openai.APIConnectionError as error:
            reason = f"no connection ({error.__cause__ or error})"
            raise self._failed(reason, "llm.unavailable") from None
        except openai.APIError as error:
            raise ValueError(error.message) from None
        except Exception as error:  # what the package does not foresee, as an unknown charset
            reason = f"the reply cannot be read ({type(error).__name__})"
            raise self._failed(reason, "llm.answer") from None
        return bytes(response.http_response.content)

    def _failed(self, reason: str, code: str) -> ExternalError:
        reason = _mended(self._endpoint.hide(reason)[:_SHOWN])
        return ExternalError(f"{self._model} at {self._endpoint.address}: {reason}", code)

    def _meter(self, usage: Usage, *, spent: bool) -> None:
        with self._lock:
            self._logical += usage
            if spent:
                self._spent += usage
        used(usage)


class _Sent(NamedTuple):
    """One reply, as far as it was understood."""

    text: str
    finish: str
    refusal: str
    cost: Usage


def _mended(text: str) -> str:
    """JSON can hold half a surrogate pair, which nothing could write to a file."""
    return text.encode("utf-8", "replace").decode()


def _fields(parameters: Mapping[str, Any]) -> dict[str, Any]:
    if parameters.keys() & {"messages", "model", "stream", "n"}:
        message = "parameters cannot set messages, model, stream or n: the client needs its own"
        raise InputError(message, "input.field")
    try:
        json.dumps(dict(parameters), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"parameters must be JSON: {error}", "input.field") from error
    return dict(parameters)


def _from_cache(kept: Mapping[str, Any] | None, checker: Validator | None) -> Reply | None:
    """A kept reply; None where there is none, or it is damaged."""
    try:
        if kept is None:
            return None
        text, finish, usage = kept["text"], kept["finish"], Usage(**kept["usage"])
        texts = isinstance(text, str) and isinstance(finish, str)
        if not (texts and is_unicode(text + finish) and plausible(usage)):
            return None
        return Reply(text, reply_value(text, checker), finish, usage, cached=True)
    except (KeyError, TypeError, ValueError):
        return None
