"""Cues that something is no longer what it was: "from now on", "instead", "as of today".

No signal of the paper and no part of the score. Recall uses them where a question
about the present finds two answers: the newer one, if it says that things changed,
stands before the older one.
"""

from __future__ import annotations

import re

from ebbtide.analysis.patterns import guarded
from ebbtide.analysis.signals.cue_rule import rules

__all__ = ["UPDATE", "UPDATE_NOT"]

_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
)
# A bare number is a day before a month only: not in "from 5 stars", "since the 10-year mark".
_DAY = (
    r"(?:today|tomorrow|now|monday|tuesday|wednesday|thursday|friday|saturday|sunday|"
    r"(?:this|next) (?:week|month|year|monday|term|quarter|season)|"
    rf"(?:the )?(?:first|\d{{1,2}}(?:st|nd|rd|th)\b(?!-)|\d{{1,2}}(?= {_MONTH}))|{_MONTH})"
)
_CHANGED = (
    r"(?:changed|switched|moved|replaced|swapped|renamed|rescheduled|postponed|relocated|"
    r"upgraded|migrated|dropped|quit|retired|bumped|raised|lowered|increased|reduced|"
    r"pushed back|brought forward|put (?:back|off)|taken over|took over|given up|gave up|"
    r"cancelled|canceled|started over)"
)

UPDATE = rules(
    ("now", r"\bnow\b"),
    (
        "from-then-on",
        (
            r"\b(?:from|starting(?: from| on| in)?|as of|as from|effective(?: from)?|since) "
            rf"{_DAY}\b"
            r"|\bfrom (?:now|here|then) on\b|\bhenceforth\b|\bgoing forward\b"
        ),
    ),
    ("instead", r"\binstead\b(?! of)"),
    ("instead-of", r"\b(?:instead of|rather than|in place of)\b"),
    ("no-longer", r"\b(?:no longer|not any ?more|any ?more|any longer)\b"),
    (
        "changed",
        (
            rf"\b(?:I|we|you|he|she|they|it|[\w'-]+)(?:'ve|'s| have| has| had| just| finally| now|"
            rf" was| were| got| been)* {_CHANGED}\b"
        ),
    ),
    ("goes-up", r"\b(?:goes|went|going|gone) (?:up|down) to\b|\b(?:is|was|are) (?:up|down) to\b"),
    ("new", r"\b(?:a|an|my|our|the|his|her|their|its|your) new\b(?! year)|^\W*new \w+\b"),
    ("another", r"\b(?:found|got|bought|picked|chose|have) another\b|\banother one\b"),
    ("in-the-end", r"\b(?:in the end|after all|turns out|it turned out)\b"),
    ("these-days", r"\b(?:these days|nowadays|lately|meanwhile)\b"),
    (
        "now-in-other-languages",
        (
            r"\b(?:jetzt|ab (?:jetzt|sofort|heute|morgen)|nunmehr|nicht mehr|stattdessen|geändert|"
            r"umgezogen|maintenant|désormais|dorénavant|ne \w+ plus|à partir d|ahora|ya no|"
            r"a partir de|en lugar|cambiado|agora|já não|adesso|d'ora in poi|non più|invece|"
            r"al posto|nu|voortaan)\b|现在|改成|改为|改到|换成|不再|今は|今では|もう|変更|変わ|"
            r"지금|이제|바뀌|변경"
        ),
    ),
)

UPDATE_NOT = guarded(
    r"\b(?:until|till|by|before|just|for|up to|even|only|right|every|than ever) now\b|"
    r"\bnow and (?:then|again)\b|\bnow that\b|\bwhat'?s new\b|\banything new\b",
    re.IGNORECASE,
)
