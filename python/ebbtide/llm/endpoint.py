"""An endpoint's address, who may ask it, and the connections to it."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from ebbtide.errors import ExternalError, InputError
from ebbtide.extras import MissingExtraError

__all__ = ["Endpoint"]

_ANY = "http://127.0.0.1/v1"
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go.

    Attributes:
        address: Its base address, without a user name and password.
        key: The key, or nothing.
        login: User name and password as basic authentication has them, or nothing.
        password: The password alone.
    """

    address: str
    key: str = field(default="", repr=False)
    login: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    @classmethod
    def named(cls, url: str, key: str | None, variable: str | None) -> Endpoint:
        """The endpoint of an address, and a key or the environment variable that holds it.

        Raises:
            InputError: ``input.field``: one of them cannot be used, or not with another.
        """
        key = _key(key, variable)
        address, user, password = _parts(url)
        if user is None:
            return cls(address, key)
        if key:
            message = "give a key, or a user name and password in base_url, not both"
            raise InputError(message, "input.field")
        login = base64.b64encode(f"{user}:{password}".encode()).decode()
        return cls(address, login=login, password=password)

    def hide(self, text: str) -> str:
        """A text without what is secret: an endpoint may send it back."""
        for secret in (self.key, self.login, self.password):
            if secret:
                text = text.replace(secret, "***")
        return text

    def connect(self, timeout: float, attempts: int) -> Any:
        """A client of the openai package; nothing is sent yet.

        Raises:
            MissingExtraError: openai or jsonschema is not installed.
            InputError: ``input.field``: the address cannot be used.
            ExternalError: ``llm.unavailable``: proxies or certificates that the environment
                names cannot be used.
        """
        try:
            import jsonschema  # noqa: F401
            import openai
        except ImportError as error:
            raise MissingExtraError(error, "llm") from error
        try:
            client = openai.OpenAI(
                # Without a key the package would look for one of its own in the environment.
                api_key=self.key or "none",
                base_url=_ANY,
                timeout=timeout,
                max_retries=attempts - 1,
                default_headers={"Authorization": f"Basic {self.login}"} if self.login else None,
            )
        except Exception as error:  # whatever its transport says of proxies and certificates
            raise _unusable(error) from None
        # Likewise: an endpoint is told nothing that the caller did not name.
        client.organization = client.project = None
        try:
            client.base_url = self.address
        except Exception:  # the transport reads addresses more strictly
            raise _no_address() from None
        return client


def _key(given: str | None, variable: str | None) -> str:
    if given is not None and variable is not None:
        raise InputError("give api_key or api_key_variable, not both", "input.field")
    if variable is not None and not os.environ.get(variable):
        raise InputError(f"the environment variable {variable} is not set", "input.field")
    key = (given or "") if variable is None else os.environ[variable]
    # No header can hold another, and the error that says so would show the key.
    if not all("!" <= sign <= "~" for sign in key):
        message = "the key holds white space or signs outside of ASCII: is there a line end in it?"
        raise InputError(message, "input.field")
    return key


def _parts(url: str) -> tuple[str, str | None, str]:
    """The address without a user name and password; both, None where there is none."""
    try:
        parts = urlsplit(url)
        # Reading the port is what checks it.
        right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        right = False
    # Line breaks are left out when an address is taken apart: they would go unseen.
    if not right or not url.isprintable():
        raise _no_address()
    if "?" in url or "#" in url:
        message = (
            "base_url must not have a query or a fragment: the path of a request is put behind"
            " it; give what belongs into the body as parameters"
        )
        raise InputError(message, "input.field")
    login, _, host = parts.netloc.rpartition("@")
    address = urlunsplit(parts._replace(netloc=host))
    user, _, password = login.partition(":")
    return address, unquote(user) if login else None, unquote(password)


def _no_address() -> InputError:
    message = "base_url is no address of an endpoint such as http://127.0.0.1:80/v1"
    return InputError(message, "input.field")


def _unusable(error: Exception) -> ExternalError:
    """Names the variables that are to blame, and not what they hold: it may be a password."""
    blamed = _CERTIFICATES if isinstance(error, OSError) else _PROXIES
    found = sorted(name for name in os.environ if name.upper() in blamed)
    reason = str(error) if isinstance(error, ImportError | OSError) else "no address of a proxy"
    names = ", ".join(found) or "the environment"
    return ExternalError(f"no connection can be made with {names}: {reason}", "llm.unavailable")
