"""`ebbtide eval answers`: end to end, with a language model that answers and judges."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ebbtide.cli.common import JsonOption
from ebbtide.cli.evaluating import (
    CacheOption,
    DataOption,
    LimitOption,
    OutOption,
    PeerOption,
    SetOption,
    SystemOption,
    plan_of,
)
from ebbtide.cli.output import print_json, write
from ebbtide.cli.progress import counting

__all__ = ["answers"]


def answers(
    data: DataOption,
    out: OutOption,
    model: Annotated[str, typer.Option("--model", help="The model that answers.")],
    endpoint: Annotated[
        str, typer.Option("--endpoint", help="Base address of an OpenAI-compatible endpoint.")
    ],
    key_variable: Annotated[
        str | None,
        typer.Option("--key-variable", help="Environment variable that holds the key."),
    ] = None,
    judge_model: Annotated[
        str | None, typer.Option("--judge-model", help="The model that judges; --model by default.")
    ] = None,
    context_tokens: Annotated[
        int, typer.Option("--context-tokens", min=1, help="Token budget of a context.")
    ] = 2048,
    per_category: Annotated[
        int | None,
        typer.Option(
            "--per-category",
            min=1,
            help="Most questions of each category, chosen by --seed; 10 on LongMemEval is the "
            "DMF paper's LongMemEval-10.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Seed of that choice and of the models.")
    ] = 0,
    replies: Annotated[
        Path | None,
        typer.Option("--replies", help="File that keeps replies, so that none is paid for twice."),
    ] = None,
    dataset: Annotated[
        str, typer.Option("--dataset", help="Name for the report: locomo, longmemeval, ...")
    ] = "locomo",
    system: SystemOption = None,
    limit: LimitOption = None,
    cache: CacheOption = None,
    peer: PeerOption = None,
    setting: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a language model answer from each system's context, and judge the answers."""
    from dataclasses import replace

    from ebbtide.evals.endtoend import end_to_end
    from ebbtide.llm import LlmCache, LlmClient

    plan = plan_of(dataset, data, system, limit=limit, cache=cache, peer=peer, setting=setting)
    plan = replace(plan, seed=seed)
    kept = LlmCache(replies) if replies else None
    client = LlmClient(model, endpoint, api_key_variable=key_variable, cache=kept, seed=seed)
    judge = client
    if judge_model:
        judge = LlmClient(
            judge_model, endpoint, api_key_variable=key_variable, cache=kept, seed=seed
        )
    with counting(dataset, "questions") as progress:
        summary = end_to_end(
            plan,
            out,
            client,
            judge=judge,
            context_tokens=context_tokens,
            per_category=per_category,
            progress=progress,
        )
    if as_json:
        print_json(summary)
    else:
        write((out / "summary.md").read_text(encoding="utf-8"))
