"""What is kept away from cards before any rule looks at it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ebbtide.analysis.cards.lexicon import HYPOTHETICAL_WORDS
from ebbtide.analysis.signals.text import handed_over

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

__all__ = ["SILENT_ROLES", "masked_spans", "sentence_is_open"]

SILENT_ROLES = frozenset({"system", "tool", "function", "developer"})
"""Roles whose text is configuration or machine output, never what somebody did."""

_FENCE = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_QUOTED = re.compile(r"\"[^\"\n]{1,400}\"|“[^”\n]{1,400}”")
_LONGEST_LINE = 2_000
_MACHINE_LINE = re.compile(
    r"""^[ \t]*(?:
        \[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d          # log time stamp
      | \[?(?:INFO|WARN(?:ING)?|ERROR|DEBUG|TRACE|FATAL|CRITICAL)\b
      | Traceback\b | File[ ]"[^"]+",[ ]line[ ]\d | at[ ][\w.$<>]+\(
      | [\w.]+(?:Error|Exception):
      | [>$#%][ ] | >>>                            # quoted mail, shell, prompt
      | (?:def|class|import|from|return|const|let|var|function|public|private|for|while|if)\b
        .*[:;{(=]\s*(?:\#.*|//.*)?$
      | [\w.]+\s*(?:=|\+=|:=|=>)\s*\S
      | .*[;{}]\s*$
      | .*"[\w.-]+"\s*:\s*(?:["\[{\d]|true|false|null)
      | [\[\]{}<].*[\]}>,]\s*$
      | (?:\t|[ ]{4,})\S
      | (?:user|assistant|system|human|ai)\s*:\s
    )[^\n]*""",
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
_CASED_LOG = re.compile(r"^[ \t]*\[?(?:info|warn|warning|error|debug|trace|fatal|critical)\b")
_ASKING = frozenset({"who", "what", "why", "how", "where", "which", "whose", "whom"})


def masked_spans(text: str, role: str = "user") -> tuple[tuple[int, int], ...]:
    """Find spans that are code, logs, JSON, somebody else's words or a text to be worked on.

    Args:
        text: The turn.
        role: Whose it is.

    Returns:
        Half-open spans, sorted; they may overlap.
    """
    spans = [match.span() for match in _FENCE.finditer(text)]
    spans += [match.span() for match in _QUOTED.finditer(text)]
    for line in re.finditer(r"[^\n]+", text):
        # The pattern takes time by the square of a line: a dump is told by its runs.
        if len(line.group()) > _LONGEST_LINE:
            if re.search(r"\S{200}|\s{200}", line.group()):
                spans.append(line.span())
            continue
        match = _MACHINE_LINE.match(text, line.start(), line.end())
        if match is None:
            continue
        # "Error messages confuse me" in lower or title case is prose, not a log.
        if not _CASED_LOG.match(match.group()) and not match.group().startswith(
            ("Error ", "Info ")
        ):
            spans.append(match.span())
    start = handed_over(text, role)
    if start is not None:
        spans.append((start, len(text)))
    return tuple(sorted(spans))


def sentence_is_open(sentence: Span, words: list[str]) -> bool:
    """Tell whether a sentence asks or supposes, and so states nothing.

    Args:
        sentence: One sentence of the parse.
        words: Its words, lower case.

    Returns:
        True for questions and for sentences with a hypothetical word.
    """
    if "?" in "".join(words) or not HYPOTHETICAL_WORDS.isdisjoint(words):
        return True
    said = (token for token in sentence if not token.is_punct and not token.is_space)
    first = next(said, None)
    return first is None or _asks_without_mark(first)


def _asks_without_mark(first: Token) -> bool:
    if first.lower_ in _ASKING:
        return True
    if first.pos_ not in {"AUX", "VERB"} or first.tag_ == "VBG":
        return False
    verb = first if first.dep_ == "ROOT" else first.head
    subjects = [child for child in verb.children if child.dep_ in {"nsubj", "nsubjpass", "expl"}]
    return any(child.i > first.i for child in subjects) and first.lower_ not in {"let", "check"}
