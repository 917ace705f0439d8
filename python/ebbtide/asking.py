"""From a question's words to what the core ranks, and a language model's part in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ebbtide.config import PRESETS, Config
from ebbtide.errors import InputError
from ebbtide.inputs import filters_for_core, positive, query_moment
from ebbtide.opened import PAGE, Opened

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ebbtide.llm.deliberation import Line, Ruling

__all__ = ["Asked", "Asking", "overruled"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as the core takes it.

    Attributes:
        text: The question.
        query: Its frame, its vector, its token vectors and their terms.
        options: Limit, preset, filters, and what the graph index found for it.
    """

    text: str
    query: tuple[Any, ...]
    options: Mapping[str, Any]

    @property
    def vector(self) -> NDArray[np.float32]:
        """float32 [d], as the embedder returns it."""
        vector: NDArray[np.float32] = self.query[1]
        return vector


class Asking:
    """How one memory reads the questions that it is asked."""

    def __init__(self, opened: Opened, flush: Callable[[], None]) -> None:
        """Read questions for an open memory.

        Args:
            opened: The memory.
            flush: Called before a question is looked up, so that everything added
                is there.
        """
        self._handle = opened.handle
        self._analyser = opened.analyser
        self._graphs = opened.graphs
        self._config = opened.config
        self._writable = opened.writable
        self._llm = opened.llm
        self._flush = flush
        self.presets = {name: opened.config.on_preset(name) for name in PRESETS}

    def ask(
        self,
        text: str,
        limit: int | None = None,
        query_time: Any = None,
        preset: str | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> Asked:
        """Read a question; arguments as for ``Memory.retrieve``.

        Raises:
            InputError: If the question or an argument is unusable.
        """
        self._check(text)
        if limit is not None:
            limit = positive("limit", limit)
        if preset is not None and preset not in PRESETS:
            Config(preset)  # raises the error that names the presets
        self._flush()
        settings = self.presets[preset] if preset else self._config
        question = self._analyser.question(
            text,
            query_time=query_moment(query_time, self._handle.newest_time()),
            speakers=self._handle.speakers(),
            bare=not settings["retrieval"]["late_interaction"],
        )
        query = (question.frame.to_dict(), question.vector, question.tokens, question.token_terms)
        options: dict[str, Any] = {
            "limit": limit,
            "preset": preset,
            "filters": filters_for_core(filters),
        }
        if not options["filters"]:
            options["graph"] = self._graphs.search(question.vector, writable=self._writable)
        return Asked(text, query, options)

    def _check(self, text: str) -> None:
        most = self._config["limits"]["max_query_chars"]
        if not isinstance(text, str) or not text.strip():
            raise InputError("a question needs text", "input.field")
        if len(text) > most:
            message = f"the question has {len(text):,} characters, the limit is {most:,}"
            raise InputError(message, "input.too_long")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            message = f"the question is not valid Unicode at character {error.start}"
            raise InputError(message, "input.unicode") from error

    def ruling(self, asked: Asked, *, answers: bool = False) -> Ruling | None:
        """What the language model decides for a question; None where it has no part."""
        policy = self._config["policy"]["deliberation"]
        if self._llm is None or policy == "off":
            return None
        from ebbtide.llm import deliberation

        fast = {**asked.options, "limit": deliberation.TOP}
        judges = policy == "quality"
        # The votes of retrievers need no language model: they are taken first.
        plain = (False, None, None) if judges else None
        found = self._handle.recall(asked.query, trace=False, overruled=plain, **fast)
        escalate = None if judges else found["deliberation"]["escalated"]
        recalled = [_line(row["turn"]) for row in found["evidence"]]
        return deliberation.deliberate(
            self._llm,
            asked.text,
            recalled,
            lambda: self._history(asked),
            self._config["deliberation"],
            judges=judges,
            escalate=escalate,
            answers=answers,
        )

    def _history(self, asked: Asked) -> Iterator[Line]:
        """Stored turns in id order, those that the filters let in."""
        first = 0
        while page := self._handle.history_page(first, PAGE, asked.options["filters"]):
            yield from (_line(row) for row in page)
            first = page[-1]["interaction_id"] + 1


def overruled(ruling: Ruling | None, answer: str | None = None) -> tuple[Any, ...] | None:
    """A ruling as the core takes it: whether to escalate, what was found, the answer.

    Of one that failed nothing counts: the evidence is that of a memory without a model.
    """
    if ruling is None or not ruling.holds:
        return None if answer is None else (None, None, answer)
    return ruling.escalate, ruling.facts, ruling.answer if answer is None else answer


def _line(row: Mapping[str, Any]) -> Line:
    from ebbtide.llm.deliberation import Line
    from ebbtide.llm.seam import message_line

    said = message_line(row["speaker"] or row["role"], row["text"], row["timestamp"])
    return Line(row["interaction_id"], said)
