"""The MCP server, spoken to by the official client: in process, over stdio, over HTTP."""

from __future__ import annotations

import asyncio
import http.client
import json
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.server import MCPServer

from ebbtide import Config, Memory, connect
from ebbtide.daemon.server import Daemon, Settings
from ebbtide.mcp import build_server

COMMAND = [sys.executable, "-c", "from ebbtide.cli import main; main()", "mcp"]
TOOLS = {"remember", "recall", "context", "explain", "history", "forget", "stats"}
PYTHONPATH = str(Path(__file__).parents[2] / "python")


def data(result: Any) -> dict[str, Any]:
    assert not result.is_error, result.content[0].text
    found = json.loads(result.content[0].text)
    assert isinstance(found, dict)
    return found


def failure(result: Any) -> str:
    assert result.is_error
    return str(result.content[0].text)


@pytest.fixture
def memory(cheap: Config) -> Iterator[Memory]:
    with Memory.in_memory(config=cheap) as opened:
        yield opened


@pytest.fixture
def server(memory: Memory) -> MCPServer[Any]:
    return build_server(memory, clock=lambda: datetime(2024, 6, 1, 9, tzinfo=UTC))


async def converse(client: Client) -> None:
    """A whole round: two facts, a question, why, what was before, and one erased."""
    assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
    first = data(
        await client.call_tool("remember", {"text": "I live in Lisbon.", "speaker": "Ana"})
    )
    assert first == {"stored": True, "interaction_id": 0}
    second = data(
        await client.call_tool("remember", {"text": "I live in Porto now.", "speaker": "Ana"})
    )
    assert second == {"stored": True, "interaction_id": 1, "superseded": [0]}

    found = data(await client.call_tool("recall", {"question": "Where does Ana live?", "limit": 2}))
    assert found["turns"][0]["text"] == "I live in Porto now."
    assert found["turns"][0]["validity"] == "current"
    block = await client.call_tool("context", {"question": "Where does Ana live?"})
    assert "I live in Porto now." in block.content[0].text

    life = data(await client.call_tool("explain", {"interaction_id": 0}))
    assert life["turn"]["validity"] == "superseded"
    related = data(await client.call_tool("history", {"interaction_id": 1}))["turns"]
    assert [turn["interaction_id"] for turn in related] == [0, 1]

    gone = data(await client.call_tool("forget", {"interaction_id": 0}))
    assert gone == {"forgotten": 0, "text": "I live in Lisbon."}
    assert data(await client.call_tool("stats", {}))["turns"] == 1
    read = await client.read_resource("memory://turns/1")
    assert json.loads(read.contents[0].text)["text"] == "I live in Porto now."


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_round_in_process(server: MCPServer[Any], mode: str) -> None:
    """Clients of today's protocol, and those that begin with the older handshake."""

    async def main() -> None:
        async with Client(server, mode=mode) as client:
            await converse(client)

    asyncio.run(main())


def test_turns_without_a_time_get_the_clocks(server: MCPServer[Any], memory: Memory) -> None:
    async def main() -> None:
        async with Client(server) as client:
            await client.call_tool("remember", {"text": "Tea, please."})
            await client.call_tool(
                "remember", {"text": "Coffee, please.", "timestamp": "2023-01-01"}
            )

    asyncio.run(main())
    assert [turn.timestamp for turn in memory.turns()] == [
        "2024-06-01T09:00:00+00:00",
        "2023-01-01",
    ]


def test_a_known_id_is_stored_once(server: MCPServer[Any], memory: Memory) -> None:
    async def main() -> tuple[Any, Any]:
        async with Client(server) as client:
            words = {"text": "Tea, please.", "external_id": "m1", "metadata": {"topic": "tea"}}
            return (
                data(await client.call_tool("remember", words)),
                data(await client.call_tool("remember", words)),
            )

    first, again = asyncio.run(main())
    assert first["stored"]
    assert not again["stored"]
    assert again["interaction_id"] == first["interaction_id"]
    assert len(memory) == 1
    assert memory.get(0).metadata == {"topic": "tea"}


def test_a_message_is_not_told_twice(server: MCPServer[Any], memory: Memory) -> None:
    """An adapter keeps the message that a turn was made of beside it."""
    message = {"role": "user", "content": [{"type": "input_image", "image_url": "x" * 1000}]}
    memory.add("I drink tea.", metadata={"openai": message, "topic": "tea"})
    memory.add("I drink milk.", metadata={"langchain": message})
    memory.add("I drink gin.", metadata={"openai": "a word of the caller's"})

    async def main() -> list[dict[str, Any]]:
        async with Client(server) as client:
            read = [await client.read_resource(f"memory://turns/{n}") for n in range(3)]
            found = data(await client.call_tool("recall", {"question": "What do I drink?"}))
            turns = sorted(found["turns"], key=lambda turn: turn["interaction_id"])
            told = [turn.get("metadata") for turn in turns]
            assert told == [json.loads(r.contents[0].text).get("metadata") for r in read]
            return told

    assert asyncio.run(main()) == [{"topic": "tea"}, None, {"openai": "a word of the caller's"}]


def test_a_turn_has_its_own_id_though_others_write(
    server: MCPServer[Any], memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.add("Water.")
    adding = memory._writing.add

    def then_another(*given: Any) -> Any:
        report = adding(*given)
        monkeypatch.setattr(memory._writing, "add", adding)
        memory.add("Said elsewhere in the program.")
        return report

    async def main() -> dict[str, Any]:
        async with Client(server) as client:
            data(await client.call_tool("remember", {"text": "Coffee."}))
            monkeypatch.setattr(memory._writing, "add", then_another)
            return data(await client.call_tool("remember", {"text": "Tea, please."}))

    stored = asyncio.run(main())
    assert memory.get(stored["interaction_id"]).text == "Tea, please."
    assert len(memory) == 4


def test_a_turn_that_is_not_kept(cheap: Config) -> None:
    """The paper's preset may evict a turn on its own insertion; here nothing is archived."""
    paper = Config("paper", {"ltm": {"enabled": False}, "capacity": {"token_budget": 8}})
    small = paper.with_embedder(cheap.embedder)

    async def main(server: MCPServer[Any]) -> list[dict[str, Any]]:
        async with Client(server) as client:
            texts = ("Word number one is here.", "Word number two is here.")
            return [data(await client.call_tool("remember", {"text": text})) for text in texts]

    with Memory.in_memory(config=small) as memory:
        first, second = asyncio.run(main(build_server(memory)))
        assert first == {"stored": True, "interaction_id": 0}
        assert not second["stored"]
        assert "archive" in second["note"]
        assert [turn.interaction_id for turn in memory.turns()] == [0]


def test_what_was_rendered_is_not_stored_anew(server: MCPServer[Any], memory: Memory) -> None:
    memory.add("I live in Porto.", speaker="Ana")

    async def main() -> Any:
        async with Client(server) as client:
            block = await client.call_tool("context", {"question": "Where does Ana live?"})
            return data(await client.call_tool("remember", {"text": block.content[0].text}))

    answer = asyncio.run(main())
    assert not answer["stored"]
    assert "rendered" in answer["note"]
    assert len(memory) == 1


def test_errors_say_what_to_do_next(server: MCPServer[Any]) -> None:
    async def main() -> list[str]:
        async with Client(server) as client:
            calls = [
                ("explain", {"interaction_id": 7}),
                ("forget", {}),
                ("history", {"interaction_id": 1, "external_id": "x"}),
                ("remember", {"text": "Tea.", "timestamp": "yesterday-ish"}),
                ("remember", {}),
                ("recall", {"question": " "}),
                ("recall", {"question": "Tea?", "limit": 0}),
                ("recal", {"question": "Tea?"}),
            ]
            return [failure(await client.call_tool(*call)) for call in calls]

    unknown, nameless, both, late, empty, blank, none, mistyped = asyncio.run(main())
    assert "[not_found.turn] Call recall" in unknown
    assert "interaction_id or by external_id" in nameless
    assert "interaction_id or by external_id" in both
    assert "2024-06-01T09:00:00Z" in late
    assert "text" in empty
    assert "a question needs text" in blank
    assert "limit" in none
    assert "recal" in mistyped


def test_an_empty_memory_says_so(server: MCPServer[Any]) -> None:
    async def main() -> tuple[Any, str]:
        async with Client(server) as client:
            found = data(await client.call_tool("recall", {"question": "Where does Ana live?"}))
            block = await client.call_tool("context", {"question": "Where does Ana live?"})
            return found, block.content[0].text

    found, block = asyncio.run(main())
    assert found["turns"] == []
    assert "Do not guess" in found["note"]
    assert "nothing yet" in block


def test_a_block_that_is_too_small_for_any_turn(server: MCPServer[Any], memory: Memory) -> None:
    memory.add("I live in Porto.")

    async def main() -> str:
        async with Client(server) as client:
            asked = {"question": "Where does Ana live?", "max_tokens": 1}
            block = await client.call_tool("context", asked)
            return str(block.content[0].text)

    text = asyncio.run(main())
    assert "nothing yet" not in text
    assert "max_tokens" in text


@pytest.mark.parametrize("tool", ["explain", "history", "forget"])
def test_true_and_false_are_no_ids(server: MCPServer[Any], memory: Memory, tool: str) -> None:
    memory.add("I live in Porto.")
    memory.add("I drink tea.")

    async def main() -> None:
        async with Client(server) as client:
            for wrong in (False, True):
                answer = await client.call_tool(tool, {"interaction_id": wrong})
                assert "interaction_id" in failure(answer)

    asyncio.run(main())
    assert len(memory) == 2


@pytest.mark.parametrize("number", [1, "1", 1.0])
def test_ids_come_as_models_write_them(
    server: MCPServer[Any], memory: Memory, number: object
) -> None:
    memory.add("I live in Porto.")
    memory.add("I drink tea.")

    async def main() -> None:
        async with Client(server) as client:
            answer = await client.call_tool("forget", {"interaction_id": number})
            assert not answer.is_error

    asyncio.run(main())
    assert [turn.text for turn in memory.turns()] == ["I live in Porto."]


def test_what_is_left_blank_is_not_given(server: MCPServer[Any], memory: Memory) -> None:
    blank = {"role": "", "speaker": "", "timestamp": " ", "session_id": "", "external_id": ""}

    async def main() -> list[str]:
        async with Client(server) as client:
            for text in ("I live in Porto.", "I drink tea."):
                stored = await client.call_tool("remember", {"text": text, "metadata": "", **blank})
                assert data(stored)["stored"]
            asked = {"speaker": "", "session_id": "", "since": "", "until": "", "query_time": ""}
            found = await client.call_tool("recall", {"question": "What do I drink?", **asked})
            named = {"interaction_id": 0, "external_id": ""}
            for tool in ("explain", "history", "forget"):
                assert not (await client.call_tool(tool, named)).is_error
            block = {"question": "What do I drink?", "max_tokens": "", "query_time": ""}
            assert not (await client.call_tool("context", block)).is_error
            return [turn["text"] for turn in data(found)["turns"]]

    assert asyncio.run(main())[0] == "I drink tea."
    (turn,) = memory.turns()
    assert (turn.role, turn.speaker, turn.session_id, turn.external_id, turn.metadata) == (
        "user",
        None,
        None,
        None,
        None,
    )
    assert turn.timestamp == "2024-06-01T09:00:00+00:00"


def test_a_resource_says_why_it_cannot_be_read(server: MCPServer[Any], memory: Memory) -> None:
    memory.close()

    async def main() -> None:
        async with Client(server) as client:
            for address in ("memory://stats", "memory://turns/0"):
                with pytest.raises(MCPError, match="closed"):
                    await client.read_resource(address)

    asyncio.run(main())


def test_resources(server: MCPServer[Any], memory: Memory) -> None:
    memory.add("I live in Porto.")

    async def main() -> tuple[list[str], dict[str, Any]]:
        async with Client(server) as client:
            listed = [str(r.uri) for r in (await client.list_resources()).resources]
            read = await client.read_resource("memory://stats")
            for missing in ("memory://turns/99", "memory://turns/x"):
                with pytest.raises(MCPError):
                    await client.read_resource(missing)
            return listed, json.loads(read.contents[0].text)

    listed, numbers = asyncio.run(main())
    assert listed == ["memory://stats"]
    assert numbers["turns"] == 1
    assert numbers["digest"] == memory.digest()


def test_a_reading_server_has_no_tool_that_writes(memory: Memory) -> None:
    async def main() -> set[str]:
        async with Client(build_server(memory, read_only=True)) as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    assert asyncio.run(main()) == TOOLS - {"remember", "forget"}


def test_clients_at_the_same_time(server: MCPServer[Any], memory: Memory) -> None:
    async def client(number: int) -> list[int]:
        async with Client(server) as one:
            ids = []
            for i in range(5):
                text = f"Client {number} says {i}."
                stored = data(await one.call_tool("remember", {"text": text}))
                assert memory.get(stored["interaction_id"]).text == text
                data(await one.call_tool("recall", {"question": "Who says 3?"}))
                ids.append(stored["interaction_id"])
            return ids

    async def main() -> list[list[int]]:
        return await asyncio.gather(*(client(n) for n in range(4)))

    ids = [i for one in asyncio.run(main()) for i in one]
    assert sorted(ids) == list(range(20))


# The real command


def test_over_stdio(store_path: Path) -> None:
    command = StdioServerParameters(
        command=COMMAND[0],
        args=[*COMMAND[1:], "--store", str(store_path), "--namespace", "ana"],
        env={"PYTHONPATH": PYTHONPATH},
    )

    async def main() -> None:
        async with Client(command) as client:
            await converse(client)

    asyncio.run(main())
    with Memory.open(store_path, namespace="ana") as memory:
        assert [turn.text for turn in memory.turns()] == ["I live in Porto now."]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_ends_it_over_stdio(store_path: Path, number: signal.Signals, status: int) -> None:
    """Although a thread waits for the client's next line."""
    client = {"name": "client", "version": "1"}
    about = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": client}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
    with subprocess.Popen(
        [*COMMAND, "--store", str(store_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(hello) + "\n")
        process.stdin.flush()
        assert "ebbtide" in process.stdout.readline()
        process.send_signal(number)
        try:
            assert process.wait(60) == status
        finally:
            process.kill()
    # A store that was closed has no log beside it.
    assert not store_path.with_name(f"{store_path.name}-wal").exists()


@contextmanager
def served(store: Path) -> Iterator[str]:
    """The server over HTTP on a port of its own; gives its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [*COMMAND, "--store", str(store), "--http", "--port", str(port)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            for _ in range(600):
                assert process.poll() is None, process.stderr and process.stderr.read()
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()
            process.communicate(timeout=30)


def test_over_http_with_two_clients(store_path: Path) -> None:
    async def main(address: str) -> None:
        async with Client(address) as one:
            await converse(one)
            async with Client(address) as other:
                data(await other.call_tool("remember", {"text": "I drink tea.", "speaker": "Ana"}))
                question = {"question": "What does Ana drink?"}
                found = data(await one.call_tool("recall", question))
                assert found["turns"][0]["text"] == "I drink tea."

    async def beside() -> list[str]:
        words = [*COMMAND[1:], "--store", str(store_path), "--read-only"]
        reading = StdioServerParameters(
            command=COMMAND[0], args=words, env={"PYTHONPATH": PYTHONPATH}
        )
        async with Client(reading) as client:
            assert "forget" not in {tool.name for tool in (await client.list_tools()).tools}
            found = data(await client.call_tool("recall", {"question": "What does Ana drink?"}))
            return [turn["text"] for turn in found["turns"]]

    with served(store_path) as address:
        asyncio.run(main(address))
        # The store has its one writer; a second server says how to share it.
        second = subprocess.run(
            [*COMMAND, "--store", str(store_path)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert second.returncode == 1
        assert "ebbtide mcp --http" in second.stderr
        assert asyncio.run(beside())[0] == "I drink tea."
        # A page in a browser that reaches the port under another name is turned away.
        assert status(address, host="rebound.example") == 421
    with Memory.open(store_path) as memory:
        assert len(memory) == 2


def status(address: str, *, host: str) -> int:
    connection = http.client.HTTPConnection(address.split("/")[2], timeout=30)
    try:
        kind = {"Content-Type": "application/json", "Accept": "application/json"}
        connection.request("POST", "/mcp", body="{}", headers={"Host": host, **kind})
        return connection.getresponse().status
    finally:
        connection.close()


def test_servers_that_share_a_daemon(cheap: Config, store_path: Path) -> None:
    ready: queue.Queue[str] = queue.Queue()
    daemon = Daemon(Settings(store_path, config=cheap))
    thread = threading.Thread(target=daemon.run, args=[ready.put])
    thread.start()
    try:
        address = ready.get(timeout=60)

        async def one(number: int) -> list[int]:
            with connect(address, namespace="shared") as memory:
                async with Client(build_server(memory)) as client:
                    ids = []
                    for i in range(4):
                        text = f"Client {number} says {i}."
                        stored = data(await client.call_tool("remember", {"text": text}))
                        assert memory.get(stored["interaction_id"]).text == text
                        ids.append(stored["interaction_id"])
                    return ids

        async def main() -> list[list[int]]:
            return await asyncio.gather(*(one(number) for number in range(3)))

        assert sorted(i for ids in asyncio.run(main()) for i in ids) == list(range(12))
        command = StdioServerParameters(
            command=COMMAND[0],
            args=[*COMMAND[1:], "--daemon", address, "--namespace", "ana"],
            env={"PYTHONPATH": PYTHONPATH},
        )

        async def over_stdio() -> None:
            async with Client(command) as client:
                await converse(client)

        asyncio.run(over_stdio())
    finally:
        daemon.stop()
        thread.join(60)


def test_a_server_is_given_a_store_or_a_daemon(tmp_path: Path) -> None:
    for words in ([], ["--store", "x.db", "--daemon", "x.sock"]):
        done = subprocess.run(
            [*COMMAND, *words], capture_output=True, text=True, cwd=tmp_path, timeout=60
        )
        assert done.returncode == 2
        assert "daemon" in done.stderr
    assert list(tmp_path.iterdir()) == []
