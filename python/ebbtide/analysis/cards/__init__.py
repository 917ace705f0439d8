"""MemoryCards: conservative subject-predicate-object projections of a turn.

A card is an index entry, not a memory: recall finds it and shows the turn it
came from (DMF paper, section 9.2 and eq. 31). So a card that is not made costs
little, and a wrong one misleads; every rule here errs on the side of silence.
"""

from __future__ import annotations

from ebbtide.analysis.cards.project import CARD_KINDS_ON, MAX_CARDS, card_text, project

__all__ = ["CARD_KINDS_ON", "MAX_CARDS", "card_text", "project"]
