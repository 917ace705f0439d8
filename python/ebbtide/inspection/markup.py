"""HTML made of elements, so that no text of a turn can become markup."""

from __future__ import annotations

import html

__all__ = ["Html", "element", "join", "number"]

_VOID = frozenset({"input", "meta", "path", "line", "rect", "circle"})

Attribute = str | int | float | bool | None


class Html(str):
    """Text that is markup already; every other text is escaped."""

    __slots__ = ()


def element(name: str, /, *children: str | None, **attributes: Attribute) -> Html:
    """One element.

    Args:
        name: Its name.
        children: Markup (:class:`Html`) or text, which is escaped; None is left out.
        attributes: ``class_`` is ``class``, ``data_x`` is ``data-x``. None and False are
            left out, True stands without a value.
    """
    head = "".join(
        f" {_name(key)}" if value is True else f' {_name(key)}="{html.escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Html(f"<{name}{head}>" if name in ("input", "meta") else f"<{name}{head}/>")
    return Html(f"<{name}{head}>{join(*children)}</{name}>")


def join(*children: str | None) -> Html:
    """Markup and text behind each other."""
    return Html(
        "".join(
            child if isinstance(child, Html) else html.escape(child, quote=False)
            for child in children
            if child is not None
        )
    )


def number(value: float, digits: int = 0) -> str:
    """A number for people: thousands apart."""
    return f"{value:,.{digits}f}"


def _name(key: str) -> str:
    name = key.rstrip("_")
    return name if name in ("viewBox", "preserveAspectRatio") else name.replace("_", "-")
