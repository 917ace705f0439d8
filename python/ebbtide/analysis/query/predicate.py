"""What a question says of whom: subject focus and predicate focus."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ebbtide.analysis.patterns import guarded
from ebbtide.analysis.query.lexicon import AUXILIARIES, LIGHT, NOT_IN_NOUN
from ebbtide.analysis.query.question import Question

if TYPE_CHECKING:
    from spacy.tokens import Token

__all__ = ["hidden_verb", "main_verb", "predicate_focus", "subject_focus", "synonyms"]

_GROUPS = (
    ("live", "reside", "move", "stay"),
    ("work", "job", "employ", "occupation", "career", "profession"),
    ("like", "love", "prefer", "favorite", "favourite", "enjoy", "preference", "fan"),
    ("dislike", "hate", "avoid"),
    ("buy", "purchase", "get", "acquire", "order"),
    ("use", "run", "switch"),
    ("name", "call"),
    ("visit", "travel", "go", "trip"),
    ("marry", "wedding", "married", "spouse"),
    ("study", "learn", "take", "course", "class"),
    ("start", "begin", "launch", "open"),
    ("finish", "complete", "end"),
    ("win", "victory", "place"),
    ("see", "watch"),
    ("meet", "encounter"),
    ("adopt", "get"),
    ("participate", "attend", "join"),
    ("suggest", "recommend", "advise"),
    ("make", "create", "prepare", "cook", "bake"),
    ("say", "tell", "mention", "describe"),
    ("own", "have"),
)
_CANONICAL = {
    "live": "live_in", "reside": "live_in", "work": "work_at", "employ": "work_at",
    "job": "work_as", "occupation": "work_as", "profession": "work_as", "career": "work_as",
    "name": "be_named", "call": "be_named", "age": "be_aged", "origin": "be_from",
    "hometown": "be_from", "residence": "live_in", "employer": "work_at",
}  # fmt: skip
_OTHER = frozenset(["with", "on", "through", "out", "off", "from", "toward", "towards"])
_FAVOURITE = guarded(r"\bfavou?rite\s+((?:[a-z-]+\s+)?[a-z-]+)", re.IGNORECASE)


def synonyms(lemma: str) -> tuple[str, ...]:
    """The light synonym group of a lemma, the lemma first."""
    words = [lemma]
    for group in _GROUPS:
        if lemma in group:
            words.extend(group)
    return tuple(dict.fromkeys(words))


def main_verb(question: Question) -> Token | None:
    """The verb that the question word or the auxiliary belongs to."""
    if question.wh is not None:
        token = question.noun if question.noun is not None else question.wh
        for _ in range(8):
            if _is_main(token) and token != question.noun:
                return token
            if token.head == token:
                break
            token = token.head
    root = question.span.root
    return root if _is_main(root) and root != question.noun else None


def _is_main(token: Token) -> bool:
    """A verb that says something: no auxiliary, and no finite "does".

    "Does Jon like tea": the parser may take "like" for a preposition of "does".
    """
    if token.lower_ in {"do", "does", "did"} and token.tag_ != "VB":
        return False
    return token.pos_ in {"VERB", "AUX"} and token.dep_ not in {"aux", "auxpass"}


def hidden_verb(question: Question) -> Token | None:
    """The last word of "What does Nate own?" where the parser saw no verb."""
    helper = None
    for token in question.span:
        if token.lower_ in {"do", "does", "did"}:
            helper = token
    if helper is None:
        return None
    for token in question.span:
        if token.lower_ == "like" and token.i > helper.i + 1:
            return token
    for token in reversed(list(question.span)):
        preposition = token.pos_ == "ADP" and token.lower_ != "like"
        if token.is_alpha and token.i > helper.i + 1 and token.pos_ != "PRON" and not preposition:
            return token if token.pos_ != "PROPN" else None
    return None


def _subject(verb: Token) -> Token | None:
    for label in ("nsubj", "nsubjpass"):
        for child in verb.children:
            if child.dep_ == label:
                return child
    return None


def _phrase(token: Token) -> str:
    keep = [t for t in token.subtree if not _in_clause(t, token)]
    if not keep:
        return token.text
    text = token.doc[keep[0].i : keep[-1].i + 1].text
    return re.sub(r"(?:\s*['’]s?)$", "", text.strip(" ,?.!")).strip()


def _in_clause(token: Token, top: Token) -> bool:
    """Inside a relative clause or a time clause below ``top``."""
    while token != top and token.head != token:
        if token.dep_ in {"relcl", "acl", "advcl", "punct"}:
            return True
        token = token.head
    return False


def subject_focus(question: Question) -> str | None:
    """The phrase the question is about: "my dog", "Caroline", "the staging server".

    Of a possessive ("my dog's name") the owner; of "who supports Caroline" the
    object, since the subject is what is asked for.
    """
    verb = main_verb(question)
    subject = _subject(verb) if verb is not None else None
    if subject is not None and _is_asked(subject, question):
        subject = None
    if subject is not None and subject.lower_ == "you" and question.wh is None:
        # "Can you recommend a film": the request is about the film.
        subject = None
    if subject is None:
        spoken = _after_auxiliary(question)
        if spoken is not None:
            return spoken
        subject = _other_argument(verb, question) if verb is not None else None
    if subject is None:
        return _fallback(question)
    owner = next((child for child in subject.children if child.dep_ == "poss"), None)
    if owner is not None and owner.tag_ not in {"PRP$", "WP$"}:
        return _phrase(owner)
    return _phrase(subject) or None


def _is_asked(token: Token, question: Question) -> bool:
    """Whether a phrase is what is asked for, not what is asked about."""
    if token in (question.wh, question.noun):
        return True
    return any(t.tag_ in {"WP", "WDT", "WP$"} and t.i < token.i for t in token.subtree)


def _after_auxiliary(question: Question) -> str | None:
    """The phrase behind the auxiliary: "have *I* attended", "does *Nate* own".

    The parser at times takes the verb of an inverted question for a noun; the
    place of its subject is still plain.
    """
    if question.wh is None:
        return None
    for token in question.span:
        inverted = token.lower_ in AUXILIARIES and token.i > question.wh.i
        verb_first = token.pos_ == "VERB" and token.i > question.wh.i and token != question.noun
        if verb_first and not inverted:
            # A verb before any auxiliary: "Who supports Caroline when she has ...".
            return None
        if not inverted or token.i + 1 >= question.span.end:
            continue
        return _noun_phrase_at(question, token.i + 1)
    return None


def _noun_phrase_at(question: Question, start: int) -> str | None:
    for chunk in question.span.noun_chunks:
        if chunk.start != start or chunk.root.lower_ == "you":
            continue
        verb = hidden_verb(question) if len(chunk) > 1 else None
        kept = chunk[:-1] if verb is not None and chunk.root == verb else chunk
        text = re.split(r"['’]s\b", kept.text)[0].removeprefix("both ")
        return text.strip() or None
    stop = start
    while stop < question.span.end and question.span.doc[stop].pos_ == "PROPN":
        stop += 1
    return question.span.doc[start:stop].text or None


def _other_argument(verb: Token, question: Question) -> Token | None:
    for label in ("nsubj", "nsubjpass", "attr", "dobj", "obj"):
        for child in verb.children:
            if child.dep_ == label and not _is_asked(child, question) and child.lower_ != "you":
                return child
    for preposition in verb.children:
        if preposition.dep_ == "prep":
            for child in preposition.children:
                if child.dep_ == "pobj" and not _is_asked(child, question):
                    return child
    return None


def _fallback(question: Question) -> str | None:
    for chunk in question.span.noun_chunks:
        if chunk.root not in (question.wh, question.noun) and chunk.root.pos_ != "PRON":
            return re.sub(r"\s*['’]s$", "", chunk.text)
    return None


def predicate_focus(question: Question) -> tuple[str | None, tuple[str, ...]]:
    """The canonical predicate and its lemmas with light synonyms.

    Canonical names are those of the cards: ``live_in``, ``work_at``,
    ``be_named``, ``favorite_color``; otherwise the verb with its particle and
    preposition (``go_to``), or for "what is my ..." the noun (``breed``).
    """
    text = question.text
    favourite = _FAVOURITE.search(text)
    if favourite is not None:
        noun = favourite.group(1).lower().split()
        lemmas = tuple(dict.fromkeys((*synonyms("favorite"), *noun)))
        return "favorite_" + "_".join(_until_verb(noun)), lemmas
    if re.search(r"\bhow old\b", text, re.IGNORECASE):
        return "be_aged", ("old", "age", "birthday")
    if re.search(r"\bfor (?:a living|work)\b", text, re.IGNORECASE):
        return "work_as", synonyms("work")
    verb = main_verb(question)
    if verb is None:
        hidden = hidden_verb(question)
        return (None, ()) if hidden is None else _verbal(question, hidden, hidden.lemma_.lower())
    lemma = verb.lemma_.lower()
    if lemma in {"be", "have"} or lemma in LIGHT:
        return _nominal(question, verb)
    return _verbal(question, verb, lemma)


def _until_verb(words: list[str]) -> list[str]:
    return words if len(words) < 2 or words[1] not in NOT_IN_NOUN else words[:1]


def _verbal(question: Question, verb: Token, lemma: str) -> tuple[str, tuple[str, ...]]:
    lemmas = list(synonyms(lemma))
    if question.noun is not None:
        lemmas.extend(synonyms(question.noun.lemma_.lower()))
    name = _CANONICAL.get(lemma, lemma)
    if name != lemma and verb.i + 1 < len(verb.doc) and verb.nbor(1).lower_ not in _OTHER:
        return name, tuple(dict.fromkeys(lemmas))
    name = lemma
    for child in verb.children:
        if (
            child.dep_ in {"prt", "prep"}
            and child.i == verb.i + 1
            and child.pos_ in {"ADP", "ADV", "PART"}
        ):
            name = f"{lemma}_{child.lower_}"
            break
    return name, tuple(dict.fromkeys(lemmas))


def _nominal(question: Question, verb: Token) -> tuple[str | None, tuple[str, ...]]:
    """Predicates with a weak verb: the noun carries the meaning."""
    nouns = [question.noun] if question.noun is not None else []
    for child in verb.children:
        if child.dep_ in {"attr", "nsubj", "acomp", "dobj"} and child not in nouns:
            nouns.append(child)
    lemmas: list[str] = []
    canonical: str | None = None
    for token in nouns:
        if token.pos_ in {"NOUN", "ADJ"} and token.tag_ not in {"WP", "WDT"}:
            lemma = token.lemma_.lower()
            canonical = canonical or _CANONICAL.get(lemma, lemma)
            lemmas.extend(synonyms(lemma))
    if canonical is None and verb.lemma_ == "be":
        if re.search(r"\bfrom\s*\?", question.text):
            return "be_from", ("from", "origin", "hometown")
        return "be", ()
    return canonical or verb.lemma_.lower(), tuple(dict.fromkeys(lemmas))
