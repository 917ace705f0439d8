"""Made-up conversations that take noise."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from ebbtide.evals.datasets import Conversation, DatasetTurn

START = datetime(2024, 1, 2, 9, 30, tzinfo=UTC)


def conversation(*sizes: int, name: str = "conv-x", roles: bool = False) -> Conversation:
    """Sessions of the given sizes, two speakers (or two roles) in turn."""
    turns: list[DatasetTurn] = []
    for session, size in enumerate(sizes, start=1):
        for number in range(1, size + 1):
            first = number % 2 == 1
            turns.append(
                DatasetTurn(
                    external_id=f"D{session}:{number}",
                    text=f"original {session} {number}",
                    role="assistant" if roles and not first else "user",
                    speaker=None if roles else ("Ana" if first else "Luis"),
                    timestamp=START + timedelta(days=session),
                    session_id=f"session_{session}",
                )
            )
    return Conversation(name, () if roles else ("Ana", "Luis"), turns, [], [])


def locomo(name: str = "conv-x") -> dict[str, Any]:
    """A raw sample with an empty turn, a captioned one, a repeated id and odd extras."""

    def turn(dia_id: str, text: str, speaker: str, **extra: object) -> dict[str, object]:
        return {"speaker": speaker, "dia_id": dia_id, "text": text, **extra}

    return {
        "qa": [{"question": "Où?", "answer": 7, "evidence": ["D1:2"], "category": 4}],
        "conversation": {
            "speaker_a": "Ana",
            "speaker_b": "Luis",
            "session_2_date_time": "12:30 pm on 9 May, 2023",
            "session_2": [turn("D2:1", "Alone here", "Luis", img_url=["u"])],
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                turn("D1:1", "Hello 🌊 \ud83d", "Ana"),
                turn("D1:2", "  ", "Luis"),
                turn("D1:2", "", "Luis", blip_caption="a photo of a boat"),
                turn("D1:3", "Nice", "Ana", re_download=1.5),
            ],
            "session_3_date_time": "9:00 am on 1 March, 2024",
            "session_3": [],
        },
        "event_summary": {"later": None},
        "sample_id": name,
    }


def texts(noisy: Conversation) -> list[str]:
    return [turn.text for turn in noisy.turns if turn.noise]
