"""A LoCoMo file with noise in it, in LoCoMo-Noise's published form."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ebbtide.errors import InputError
from ebbtide.evals.datasets import parse_locomo, text_with_caption
from ebbtide.evals.json_stream import json_values
from ebbtide.evals.noise.generate import (
    Insertion,
    NoiseReport,
    RatioOf,
    describe,
    merged,
    plan_noise,
)
from ebbtide.files import write_whole

__all__ = ["write_locomo"]


def write_locomo(
    source: str | Path, out: str | Path, *, ratio: float, ratio_of: RatioOf, seed: int
) -> list[NoiseReport]:
    """Write a LoCoMo file again, with noise turns in its sessions.

    The noise is that of :func:`~ebbtide.evals.noise.add_noise`: loading the file
    gives the same turns. All other fields keep their values and order. The result
    is a JSON list in ASCII, gzipped if the name ends in ``.gz``; it holds no time
    and no file name, so that the same arguments give the same bytes.

    Args:
        source: A LoCoMo file, plain or gzipped: a list of samples, one sample, or
            one a line.
        out: Where to write; its folder exists, an older file is overwritten.
        ratio: See :func:`~ebbtide.evals.noise.noise_count`.
        ratio_of: See :func:`~ebbtide.evals.noise.noise_count`.
        seed: At least 0.

    Returns:
        A report on every conversation, in the file's order.

    Raises:
        OSError: A file cannot be opened or written.
        InputError: ``input.transcript``: ``source`` is not JSON or not LoCoMo.
            ``input.field``: ``out`` is ``source``, or as
            :func:`~ebbtide.evals.noise.add_noise`. Nothing is written.
    """
    source, out = Path(source), Path(out)
    if out.resolve() == source.resolve():
        raise InputError(f"{out.name}: source and out are one file", "input.field")
    samples: list[dict[str, Any]] = []
    reports: list[NoiseReport] = []
    for number, sample in enumerate(json_values(source), start=1):
        if not isinstance(sample, dict) or "conversation" not in sample:
            raise InputError(
                f"{source.name}: sample {number} is not LoCoMo (no 'conversation')",
                "input.transcript",
            )
        conversation = parse_locomo(sample)
        insertions = plan_noise(conversation, ratio=ratio, ratio_of=ratio_of, seed=seed)
        reports.append(describe(merged(conversation, insertions)))
        sessions = [turn.session_id for turn in conversation.turns]
        samples.append(_with_noise(sample, sessions, insertions))
    write_whole(out, _packed(samples, zipped=out.name.endswith(".gz")))
    return reports


def _with_noise(
    sample: Mapping[str, Any], sessions: Sequence[str], insertions: Sequence[Insertion]
) -> dict[str, Any]:
    """Return the sample with the turns inserted; ``sessions`` names each loaded turn's."""
    following: dict[int, list[dict[str, Any]]] = {}
    for insertion in insertions:
        turn = insertion.turn
        following.setdefault(insertion.after, []).append(
            {"speaker": turn.speaker, "dia_id": turn.external_id, "text": turn.text}
        )
    body = dict(sample["conversation"])
    place = 0
    for session in dict.fromkeys(sessions):
        raw_turns: list[dict[str, Any]] = []
        for raw in body[session]:
            raw_turns.append(raw)
            # The loader leaves out empty turns; the plan's places do not count them.
            if text_with_caption(raw):
                raw_turns.extend(following.get(place, ()))
                place += 1
        body[session] = raw_turns
    return {**sample, "conversation": body}


def _packed(samples: Sequence[Mapping[str, Any]], *, zipped: bool) -> bytes:
    text = json.dumps(samples) + "\n"
    if not zipped:
        return text.encode("ascii")
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0) as stream:
        stream.write(text.encode("ascii"))
    return buffer.getvalue()
