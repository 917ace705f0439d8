"""`ebbtide eval answers`: end to end, with a language model that answers and judges."""

from __future__ import annotations

from contextlib import ExitStack, closing
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ebbtide.cli.common import JsonOption
from ebbtide.cli.evaluating import (
    CacheOption,
    DataOption,
    FreshOption,
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


class StructuredChoice(StrEnum):
    """How a JSON reply is asked for."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    NONE = "none"


class ProtocolChoice(StrEnum):
    """The named runs; see :data:`ebbtide.evals.endtoend.PROTOCOLS`."""

    DMF_LOCOMO = "dmf-locomo"
    DMF_LONGMEMEVAL_10 = "dmf-longmemeval-10"


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
    protocol: Annotated[
        ProtocolChoice | None,
        typer.Option(
            "--protocol",
            help="The DMF paper's own run on LoCoMo, or on LongMemEval-10 (ten questions of each "
            "type): brings the dataset, the draw and the token budget.",
        ),
    ] = None,
    context_tokens: Annotated[
        int | None,
        typer.Option(
            "--context-tokens", min=1, help="Token budget of a context; 2048, or the protocol's."
        ),
    ] = None,
    per_category: Annotated[
        int | None,
        typer.Option(
            "--per-category",
            min=1,
            help="Most questions of each category, drawn by --seed.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Seed of that choice and of the models.")
    ] = 0,
    replies: Annotated[
        Path | None,
        typer.Option("--replies", help="File that keeps replies, so that none is paid for twice."),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option("--timeout", min=0.1, help="Seconds without a byte before another attempt."),
    ] = 60.0,
    structured: Annotated[
        StructuredChoice,
        typer.Option(
            "--structured",
            help="How verdicts are asked for; json_object and none are for endpoints that know "
            "no schemas. They are checked in any case.",
        ),
    ] = StructuredChoice.JSON_SCHEMA,
    dataset: Annotated[
        str | None,
        typer.Option("--dataset", help="Name for the report: locomo (the default), longmemeval"),
    ] = None,
    system: SystemOption = None,
    limit: LimitOption = None,
    cache: CacheOption = None,
    peer: PeerOption = None,
    setting: SetOption = None,
    fresh: FreshOption = False,
    as_json: JsonOption = False,
) -> None:
    """Let a language model answer from each system's context, and judge the answers."""
    from dataclasses import replace

    from ebbtide.evals.endtoend import end_to_end, protocol_of
    from ebbtide.llm import LlmCache, LlmClient

    named = protocol_of(protocol.value) if protocol else None
    if named is not None and (dataset or per_category):
        raise typer.BadParameter("--protocol brings its own --dataset and --per-category")
    dataset = named.dataset if named else dataset or "locomo"
    plan = plan_of(dataset, data, system, limit=limit, cache=cache, peer=peer, setting=setting)
    plan = replace(plan, seed=seed)
    with ExitStack() as stack:
        kept = stack.enter_context(closing(LlmCache(replies))) if replies else None

        def client_of(name: str) -> LlmClient:
            client = LlmClient(
                name,
                endpoint,
                api_key_variable=key_variable,
                cache=kept,
                seed=seed,
                timeout=timeout,
                structured=structured.value,
            )
            return stack.enter_context(client)

        client = client_of(model)
        judge = client_of(judge_model) if judge_model else client
        with counting(dataset, "questions") as progress:
            summary = end_to_end(
                plan,
                out,
                client,
                judge=judge,
                context_tokens=context_tokens,
                per_category=per_category,
                protocol=named,
                fresh=fresh,
                progress=progress,
            )
    if as_json:
        print_json(summary)
    else:
        write((out / "summary.md").read_text(encoding="utf-8"))
