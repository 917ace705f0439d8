"""Clauses of a sentence with the subject, tense and negation that a card needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ebbtide.analysis.cards.lexicon import (
    INTERJECTIONS,
    SAYING_VERBS,
    UNREAL_MODALS,
    WRAPPER_VERBS,
)
from ebbtide.analysis.signals.people import PRONOUNS, meant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spacy.tokens import Span, Token

__all__ = ["Clause", "clauses_of", "lemma_of", "noun_subject"]

_SUBJECTS = frozenset({"nsubj", "nsubjpass"})
_FIRST = frozenset({"i", "we"})
_MODALS = {"can": "can", "ca": "can", "must": "must", "will": "will", "'ll": "will", "’ll": "will"}
_OWN = frozenset({"my", "our"})
_NAMES = frozenset({"PERSON", "GPE", "LOC", "FAC", "NORP"})
_FIXED = {
    "'m": "be", "’m": "be", "'re": "be", "’re": "be", "'ve": "have", "’ve": "have",
    "hates": "hate", "hated": "hate",
}  # fmt: skip
_SEASON_OF_LIFE = frozenset({"best", "younger", "older", "elder", "little", "big", "late", "twin"})


@dataclass(frozen=True, slots=True)
class Clause:
    """One statement: who, the verb, when, and whether it is denied.

    Attributes:
        verb: The lexical verb (a copula stands for itself).
        subject: Normalised subject.
        person: ``first``, ``own`` ("my sister"), ``named``, ``noun`` ("the port")
            or ``label`` (a sentence's first word, perhaps a name).
        subject_token: The subject's head, None where "I" is left out.
        auxiliaries: The clause's auxiliary words, lower case.
        modal: ``can``, ``must``, ``will`` or None.
        negated: Whether the clause is denied.
        temporal: ``current``, ``past`` or ``future``.
        progressive: Whether the verb is a progressive form.
        perfect: Whether the verb is a perfect form.
        passive: Whether the verb is passive.
        words: Tokens whose time adverbials date the clause.
    """

    verb: Token
    subject: str
    person: str
    subject_token: Token | None
    auxiliaries: tuple[str, ...]
    modal: str | None
    negated: bool
    temporal: str
    progressive: bool
    perfect: bool
    passive: bool
    words: tuple[Token, ...]


def lemma_of(token: Token) -> str:
    """Give the lower-case lemma, with the contractions that spaCy leaves as they are."""
    fixed = _FIXED.get(token.lower_)
    if fixed is not None:
        return fixed
    lemma = str(token.lemma_).lower()
    # The rule lemmatiser makes "blogge" of "blogging".
    if (
        len(lemma) > 4
        and lemma.endswith(("gge", "mme", "nne", "ppe", "bbe", "dde"))
        and token.tag_ != "VB"
    ):
        return lemma[:-2]
    return lemma


def clauses_of(sentence: Span, speaker: str) -> Iterator[Clause]:
    """Yield the statements of a sentence in text order.

    Subordinate clauses are left out, apart from what a comma splice makes of a
    main clause ("I adopted a puppy, she's so cute").

    Args:
        sentence: A sentence that neither asks nor supposes.
        speaker: What "I" stands for.
    """
    nested = _Nested()
    for verb in sentence:
        if verb.pos_ in {"VERB", "AUX"} and nested.states(verb):
            clause = _clause(verb, nested, speaker)
            if clause is not None:
                yield clause


class _Nested:
    """What a sentence's verbs have from those above them, worked out once for each.

    A sentence may nest thousands of clauses: none is walked through twice.
    """

    __slots__ = ("_states", "_subjects")

    def __init__(self) -> None:
        self._states: dict[int, bool] = {}
        self._subjects: dict[int, tuple[Token, Token | None]] = {}

    def states(self, verb: Token) -> bool:
        """Whether what a verb says is stated: each clause is as the one above, the root is."""
        passed = []
        while verb.i not in self._states:
            passed.append(verb.i)
            if verb.dep_ == "ROOT" or not _is_part(verb):
                self._states[verb.i] = verb.dep_ == "ROOT"
            else:
                verb = verb.head
        for place in passed:
            self._states[place] = self._states[verb.i]
        return self._states[verb.i]

    def subject_of(self, verb: Token) -> tuple[Token, Token | None]:
        """The verb that has the clause's subject, and it; a coordinated verb shares its head's."""
        passed = []
        while verb.i not in self._subjects:
            passed.append(verb.i)
            found = next((child for child in verb.children if child.dep_ in _SUBJECTS), None)
            if found is not None or verb.dep_ != "conj":
                self._subjects[verb.i] = verb, found
            else:
                verb = verb.head
        for place in passed:
            self._subjects[place] = self._subjects[verb.i]
        return self._subjects[verb.i]


def _is_part(verb: Token) -> bool:
    """Whether a clause is stated if the one above it is."""
    head = verb.head
    if verb.dep_ == "conj":
        return head.pos_ in {"VERB", "AUX"}
    if verb.dep_ in {"ccomp", "parataxis"} and verb.i > head.i:
        # "I've been great - I won a tournament": the dash, not the verb, joins them.
        first = verb.left_edge.i
        broken = first > 0 and verb.doc[first - 1].text in {"-", "–", "—", ";", ":"}
        return broken and lemma_of(head) not in SAYING_VERBS
    if verb.dep_ in {"ccomp", "parataxis"} and verb.i < head.i:
        marked = any(
            child.dep_ == "mark" or child.tag_ in {"WP", "WRB", "WDT"} for child in verb.children
        )
        return not marked and lemma_of(head) not in SAYING_VERBS
    if verb.dep_ == "advcl":
        marks = {child.lower_ for child in verb.children if child.dep_ in {"mark", "advmod"}}
        return bool(marks & {"since", "because", "after"}) and verb.tag_ in {"VBD", "VBN"}
    return False


def _clause(verb: Token, nested: _Nested, speaker: str) -> Clause | None:
    owner, subject_token = nested.subject_of(verb)
    if any(child.dep_ == "expl" for child in owner.children):
        return None
    if subject_token is None:
        if not _elided_first_person(owner):
            return None
        subject, person = speaker, "first"
    else:
        found = noun_subject(subject_token, speaker)
        if found is None or not _agrees(subject_token, owner, found[1]):
            return None
        subject, person = found
    return _with_tense(verb, owner, subject, person, subject_token)


def _elided_first_person(verb: Token) -> bool:
    """Accept "Went to Rome yesterday": a past-tense root that opens its sentence."""
    if verb.dep_ != "ROOT" or verb.tag_ != "VBD" or lemma_of(verb) in {"be", "have"}:
        return False
    before = [token for token in verb.doc[verb.sent.start : verb.i] if not token.is_punct]
    return all(token.pos_ in {"ADV", "INTJ", "SPACE", "CCONJ"} for token in before)


def noun_subject(token: Token, speaker: str) -> tuple[str, str] | None:
    """Normalise a subject.

    Args:
        token: Head of the subject phrase.
        speaker: What "I" stands for.

    Returns:
        ``(subject, person)``, or None when it is a pronoun that nobody or more than one stands
        behind, the person spoken to, or a phrase that nobody could name later.
    """
    group = [token, *token.conjuncts]
    if any(member.lower_ in _FIRST for member in group):
        return speaker, "first"
    if len(group) > 1:
        parts = [_single_subject(member, speaker) for member in group]
        if any(part is None or part[1] in {"noun", "label"} for part in parts):
            return None
        return " and ".join(part[0] for part in parts if part), "named"
    return _single_subject(token, speaker)


def _single_subject(token: Token, speaker: str) -> tuple[str, str] | None:
    if token.lower_ in PRONOUNS:
        who = meant(token.doc, token.lower_, token.idx, speaker)
        return None if who is None else (who, "named")
    if token.pos_ == "PRON" or token.pos_ == "DET":
        return None
    if any(child.dep_ in {"relcl", "acl"} for child in token.children):
        return None
    if token.pos_ == "PROPN" and any(child.dep_ == "prep" for child in token.children):
        # "Friends with Benefits": half a title is another name.
        return None
    before = [child for child in token.children if child.i < token.i]
    kept = [c for c in before if c.dep_ in {"compound", "nmod"} or c.lower_ in _SEASON_OF_LIFE]
    core = " ".join(part.lower_ for part in [*kept, token])
    if not core.replace(" ", "").replace("-", "").replace(".", "").replace("'", "").isalnum():
        return None
    owners = [child for child in before if child.dep_ == "poss"]
    if owners:
        return _owned(token, owners[0], core, speaker)
    if token.pos_ == "PROPN":
        return _named(token, before, core)
    return _thing(token, before)


def _owned(token: Token, owner: Token, core: str, speaker: str) -> tuple[str, str] | None:
    for child in token.children:
        if child.dep_ == "appos" and child.ent_type_ == "PERSON":
            name = [c for c in child.children if c.dep_ == "compound" and c.i < child.i]
            return " ".join(part.lower_ for part in [*name, child]), "named"
    if owner.lower_ in _OWN:
        return f"{speaker}'s {core}", "own"
    if owner.pos_ == "PROPN":
        return f"{owner.lower_}'s {core}", "own"
    inner = [child for child in owner.children if child.dep_ == "poss"]
    if owner.pos_ == "NOUN" and inner and inner[0].lower_ in _OWN:
        return f"{speaker}'s {owner.lower_}'s {core}", "own"
    return None


def _named(token: Token, before: list[Token], core: str) -> tuple[str, str] | None:
    if any(child.dep_ == "det" for child in before) or token.lower_ in INTERJECTIONS:
        return None
    if not token.text[:1].isupper() or any(c.dep_ == "intj" for c in before):
        return None
    nxt = token.doc[token.i + 1] if token.i + 1 < len(token.doc) else None
    vocative = nxt is not None and nxt.text in {",", "!", "-", "–", "—"}
    if vocative and not any(child.dep_ == "appos" for child in token.children):
        return None
    if any(part in INTERJECTIONS for part in core.split()):
        return None
    first = min([token.i, *(child.i for child in before)])
    if token.ent_type_ not in _NAMES and first == token.sent.start:
        # A capital at the start of a sentence proves no name ("Dance has power").
        return core, "label"
    return core, "named"


def _thing(token: Token, before: list[Token]) -> tuple[str, str] | None:
    """Accept "the port" or "the deadline for project A" as a subject of its own."""
    determiners = [child for child in before if child.dep_ == "det"]
    if token.pos_ != "NOUN" or [d.lower_ for d in determiners] != ["the"]:
        return None
    if any(child.tag_ == "PRP$" or child.pos_ == "PRON" for child in token.subtree):
        return None
    words = [part for part in token.subtree if part not in determiners]
    if len(words) > 6:
        return None
    return " ".join(part.lower_ for part in words), "noun"


def _agrees(subject: Token, verb: Token, person: str) -> bool:
    """Refuse "Mel love your painting": a name called out, not a subject."""
    if person == "first":
        return True
    finite = [child for child in verb.children if child.dep_ in {"aux", "auxpass"}] or [verb]
    tag = finite[0].tag_
    return not (person == "named" and tag in {"VB", "VBP", "VBG"} and not list(subject.conjuncts))


def _auxiliaries(verb: Token, owner: Token) -> list[Token]:
    own = [child for child in verb.children if child.dep_ in {"aux", "auxpass"}]
    if own or verb is owner or verb.tag_ not in {"VB", "VBN", "VBG"}:
        return own
    # "I would go and buy it": a bare conjunct stands under the first verb's words.
    return [child for child in owner.children if child.dep_ in {"aux", "auxpass"}]


def _denied(verb: Token, owner: Token, shared: bool) -> bool:
    nodes = [verb, owner] if shared else [verb]
    for node in nodes:
        for child in node.children:
            if child.dep_ == "neg" or child.lower_ in {"never", "neither"}:
                after = child.doc[child.i + 1].lower_ if child.i + 1 < len(child.doc) else ""
                if after not in {"only", "just", "merely", "simply"}:
                    return True
            if child.lower_ == "longer" and any(g.lower_ == "no" for g in child.children):
                return True
    return False


def _with_tense(
    verb: Token, owner: Token, subject: str, person: str, subject_token: Token | None
) -> Clause | None:
    auxiliaries = _auxiliaries(verb, owner)
    words = tuple(token.lower_ for token in auxiliaries)
    if any(word in UNREAL_MODALS for word in words):
        return None
    negated = _denied(verb, owner, bool(auxiliaries) and auxiliaries[0].head is owner)
    inner, chain, future = _unwrap(verb)
    tags = {token.tag_ for token in auxiliaries}
    modal = next((_MODALS[word] for word in words if word in _MODALS), None)
    lemmas = {lemma_of(token) for token in auxiliaries}
    perfect = (verb.tag_ == "VBN" and "have" in lemmas) or ("have" in lemmas and "been" in words)
    progressive = inner.tag_ == "VBG" and "be" in lemmas and inner is verb
    passive = any(token.dep_ == "auxpass" for token in auxiliaries)
    temporal = _temporal(verb, tags, modal, person, future, perfect and not progressive)
    if temporal is None:
        return None
    return Clause(
        inner,
        subject,
        person,
        subject_token,
        words,
        modal,
        negated,
        temporal,
        progressive,
        perfect,
        passive,
        (verb, *chain),
    )


def _temporal(
    verb: Token, tags: set[str], modal: str | None, person: str, future: bool, done: bool
) -> str | None:
    """Place a clause in time; None for a verb that no finite form carries."""
    if future or modal == "will":
        return "future"
    if verb.tag_ == "VBD" or "VBD" in tags or done:
        return "past"
    if verb.tag_ in {"VBZ", "VBP"} or tags & {"VBZ", "VBP"} or modal is not None:
        return "current"
    if not tags:
        # The tagger takes "met them and supported them" for a participle.
        return (
            "past"
            if verb.tag_ == "VBN" and verb.dep_ == "conj" and verb.head.tag_ == "VBD"
            else None
        )
    return "current" if verb.tag_ == "VB" and person == "first" else "past"


def _unwrap(verb: Token) -> tuple[Token, tuple[Token, ...], bool]:
    """Step from "going to", "managed to", "got to" to the verb that tells."""
    for child in verb.children:
        if child.dep_ != "xcomp" or child.tag_ != "VB":
            continue
        if lemma_of(verb) == "go" and verb.tag_ == "VBG":
            return child, (child,), True
        if WRAPPER_VERBS.get(lemma_of(verb)) == "to" and verb.tag_ in {"VBD", "VBN"}:
            return child, (child,), False
    return verb, (), False
