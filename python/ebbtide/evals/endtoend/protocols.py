"""The DMF paper's own protocol as named runs: which data, which questions, which tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ebbtide.errors import InputError
from ebbtide.evals.datasets import Conversation

__all__ = ["PROTOCOLS", "Protocol", "protocol_of"]


@dataclass(frozen=True, slots=True)
class Protocol:
    """A named run.

    Attributes:
        name: What it is called.
        dataset: ``locomo`` or ``longmemeval``.
        per_category: Questions drawn of each category, or None for all.
        context_tokens: Budget of a context. The paper names none; its prompts are
            6,900 (LoCoMo) and 9,500 (LongMemEval-10) tokens long on average.
        source: Where the paper describes it.
    """

    name: str
    dataset: str
    per_category: int | None
    context_tokens: int
    source: str

    def check(self, conversation: Conversation) -> None:
        """See that a conversation is of the protocol's dataset.

        Raises:
            InputError: ``input.field``: it is of the other one.
        """
        # LongMemEval alone says when a question is asked.
        dated = any(question.query_time is not None for question in conversation.questions)
        if conversation.questions and dated != (self.dataset == "longmemeval"):
            message = (
                f"{conversation.id} is not of {self.dataset}, which {self.name} is run on; "
                "name that dataset's file"
            )
            raise InputError(message, "input.field")

    def short(self, drawn: Collection[str]) -> dict[str, int]:
        """Categories with fewer questions than the protocol draws.

        Args:
            drawn: The categories of the questions that were drawn, repetitions counted.
        """
        if self.per_category is None:
            return {}
        counts = {name: list(drawn).count(name) for name in sorted(set(drawn))}
        return {name: count for name, count in counts.items() if count < self.per_category}


PROTOCOLS: Mapping[str, Protocol] = {
    one.name: one
    for one in (
        Protocol("dmf-locomo", "locomo", None, 8192, "DMF paper, section 11.1, tables 5 and 6"),
        Protocol(
            "dmf-longmemeval-10", "longmemeval", 10, 8192, "DMF paper, section 11.2, tables 7 and 8"
        ),
    )
}
"""By name."""


def protocol_of(name: str) -> Protocol:
    """The protocol of that name.

    Raises:
        InputError: ``input.field``: there is none.
    """
    if name not in PROTOCOLS:
        message = f"there is no protocol {name!r}; choose from {', '.join(PROTOCOLS)}"
        raise InputError(message, "input.field")
    return PROTOCOLS[name]
