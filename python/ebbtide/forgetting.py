"""Which turns a request to forget or a rule of retention means; nothing is erased here."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from ebbtide.errors import InputError
from ebbtide.inputs import positive
from ebbtide.messages import shown
from ebbtide.types import Turn

if TYPE_CHECKING:
    from ebbtide.reading import Reading

__all__ = ["checked_request", "checked_rule", "meant", "outlived", "several"]


def meant(memory: Reading, query_text: str | None, ids: Any, limit: int, before: Any) -> list[Turn]:
    """Turns that :meth:`Memory.forget` is asked for, each once, in id order.

    Raises:
        InputError: If nothing says which, or both a question and ids do.
        NotFoundError: If there is no turn of an id.
    """
    end = checked_request(query_text, ids, limit, before)
    if query_text is not None:
        try:
            # The filter takes the last moment that counts; the earliest there is has none.
            just = None if end is None else {"until": end - timedelta(microseconds=1)}
        except OverflowError:
            return []
        turns = [item.turn for item in memory.retrieve(query_text, limit=limit, filters=just)]
    elif ids is not None:
        turns = [memory.get(one) for one in several(ids)]
    else:
        turns = [turn for turn in memory.turns() if _earlier(turn.utc, end)]
    if end is not None:
        turns = [turn for turn in turns if _earlier(turn.utc, end)]
    kept = {int(turn.interaction_id or 0): turn for turn in turns}
    return [kept[number] for number in sorted(kept)]


def checked_request(query_text: Any, ids: Any, limit: Any, before: Any) -> datetime | None:
    """The moment before which turns are meant, where a request to forget is usable.

    Raises:
        InputError: As :func:`meant`.
    """
    if query_text is not None and ids is not None:
        raise InputError("forget takes a question or ids, not both", "input.field")
    if query_text is None and ids is None and before is None:
        message = "forget needs a question, ids or a time; delete_all() erases everything"
        raise InputError(message, "input.field")
    if query_text is not None:
        positive("limit", limit)
    return None if before is None else _moment("before", before)


def outlived(memory: Reading, max_age: Any, max_records: Any, now: Any) -> list[Turn]:
    """Turns that :meth:`Memory.retain` lets go, in id order.

    Raises:
        InputError: If there is no rule, or one is unusable.
    """
    before = checked_rule(max_age, max_records, now)
    # Ids and times alone: a long memory never stands in the working memory whole.
    dated = [(int(turn.interaction_id or 0), turn.utc) for turn in memory.turns()]
    old = {number for number, utc in dated if _earlier(utc, before)}
    staying = [number for number, _ in dated if number not in old]
    over = 0 if max_records is None else max(0, len(staying) - max_records)
    return [memory.get(number) for number in sorted(old.union(staying[:over]))]


def checked_rule(max_age: Any, max_records: Any, now: Any) -> datetime | None:
    """The moment from which on turns are young enough, where a rule of retention is usable.

    Raises:
        InputError: As :func:`outlived`.
    """
    if max_age is None and max_records is None:
        raise InputError("retain needs max_age, max_records or both", "input.field")
    if max_records is not None:
        positive("max_records", max_records)
    return None if max_age is None else _oldest(now, max_age)


def _earlier(utc: datetime | None, end: datetime | None) -> bool:
    """Whether a turn's own time is before a moment; one without a time is not."""
    return utc is not None and end is not None and utc < end


def several(ids: Any) -> list[Any]:
    """Ids as given: one, or any number of them."""
    if isinstance(ids, int | str):
        return [ids]
    try:
        return list(ids)
    except TypeError:
        message = f"ids must be interaction ids or external ids, not {shown(ids)}"
        raise InputError(message, "input.field") from None


def _moment(name: str, value: Any) -> datetime:
    from ebbtide.analysis.temporal import parse_timestamp

    try:
        return parse_timestamp(value).utc
    except InputError as error:
        raise InputError(f"{name}: {error}", error.code) from error


def _oldest(now: Any, max_age: Any) -> datetime:
    """The moment from which on turns are young enough."""
    if now is None:
        message = "max_age needs now, the moment that age is reckoned from"
        raise InputError(message, "input.field")
    try:
        return _moment("now", now) - _age(max_age)
    except OverflowError:  # before the first year: everything is young enough
        return datetime.min.replace(tzinfo=UTC)


def _age(value: Any) -> timedelta:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            value = timedelta(seconds=value)
        except (OverflowError, ValueError):
            value = None  # not finite, or longer than any calendar
    if not isinstance(value, timedelta) or value < timedelta(0):
        message = "max_age must be a timedelta or a number of seconds, of at least 0"
        raise InputError(message, "input.field")
    return value
