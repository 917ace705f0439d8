"""An OpenAI Agents session in ebbtide: python with_openai_agents.py [STORE].

The model here is a stand-in, so that the example runs without a key; leave ``model`` out
to use OpenAI's.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from ebbtide import Memory
from ebbtide.adapters.openai_agents import EbbtideSession


class Parrot(Model):
    """Repeats the first thing that was said in the session."""

    async def get_response(self, *_: Any, **given: Any) -> ModelResponse:
        """The first item of the input, which the session brought."""
        text = f"First you said: {given['input'][0]['content']}"
        part = ResponseOutputText(type="output_text", text=text, annotations=[])
        message = ResponseOutputMessage(
            id="1", type="message", role="assistant", status="completed", content=[part]
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        """Not needed here."""
        raise NotImplementedError


async def main(store: str) -> None:
    """Two runs in one session, then a question to the memory itself."""
    agent = Agent(name="Parrot", model=Parrot())
    settings = RunConfig(tracing_disabled=True)
    with Memory.open(store) as memory:
        session = EbbtideSession("monday", memory)
        await Runner.run(agent, "I drink green tea.", session=session, run_config=settings)
        done = await Runner.run(agent, "And now?", session=session, run_config=settings)
        sys.stdout.write(f"{done.final_output}\n")
        best = memory.retrieve("What do I drink?", filters={"role": "user"})[0]
        sys.stdout.write(f"The memory knows: {best.turn.text}\n")


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "agents.db"))
