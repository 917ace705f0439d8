"""``ebbtide mcp``: the memory for clients of the Model Context Protocol."""

from __future__ import annotations

import os
import signal
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli.common import ConfigOption, examples, settings_from
from ebbtide.cli.output import stderr

if TYPE_CHECKING:
    from ebbtide.daemon import RemoteMemory
    from ebbtide.memory import Memory

__all__ = ["MCP_EXAMPLES", "mcp"]

MCP_EXAMPLES = examples(
    "ebbtide mcp --store memory.db",
    "ebbtide mcp --store memory.db --namespace ana --http --port 8000",
    "ebbtide mcp --daemon memory.db.sock --namespace ana",
)


def mcp(
    store: Annotated[
        Path | None, typer.Option("--store", "-s", help="The store file; or --daemon.")
    ] = None,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Which memory of the store; made if missing.")
    ] = "default",
    http: Annotated[
        bool, typer.Option("--http", help="Streamable HTTP, for several clients; else stdio.")
    ] = False,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=1, max=65535, help="Port to listen on.")
    ] = 8000,
    read_only: Annotated[
        bool,
        typer.Option(
            "--read-only", help="Recall from the memory as it is now, without tools that change it."
        ),
    ] = False,
    daemon: Annotated[
        str | None,
        typer.Option(
            "--daemon", help="Address of an `ebbtide serve` that holds the store, for --store."
        ),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="File with the daemon's token.")
    ] = None,
    warm_up: Annotated[
        bool, typer.Option(help="Load the models at the start, beside the client's first messages.")
    ] = True,
    config: ConfigOption = None,
) -> None:
    """Serve a memory to clients of the Model Context Protocol (MCP).

    Over stdio the client starts this command and the store is that client's alone. For
    several clients, start it once with --http and give them http://HOST:PORT/mcp, or let
    each start one with --daemon.
    """
    from ebbtide.daemon.guard import is_loopback
    from ebbtide.mcp import serve
    from ebbtide.memory import Memory

    if http and not is_loopback(host):
        stderr().print(f"note: {host} is no loopback address, and the server asks nobody who it is")
    with _meant(store, daemon, namespace, config, token_file, read_only) as memory:
        shown = f"[{host}]" if ":" in host else host
        where = f"serving {store or daemon} at http://{shown}:{port}/mcp; Ctrl-C ends it"

        def say() -> None:
            stderr().print(where, soft_wrap=True)

        if warm_up and isinstance(memory, Memory):
            memory.warm_up(wait=False)
        with nullcontext() if http else _leaving(memory):
            serve(memory, http=http, host=host, port=port, read_only=read_only, ready=say)


def _leaving(memory: Memory | RemoteMemory) -> AbstractContextManager[None]:
    """What tells the process to end closes the memory and ends it at once.

    A thread waits for the client's next line, and Python would wait for that thread.
    """
    from ebbtide.threads import when_told_to_end

    def leave(number: int, _: object) -> None:
        status = 1
        try:
            memory.close()
            status = 130 if number == signal.SIGINT else 0
        finally:
            os._exit(status)

    return when_told_to_end(leave)


def _meant(
    store: Path | None,
    daemon: str | None,
    namespace: str,
    config: Path | None,
    token_file: Path | None,
    read_only: bool,
) -> Memory | RemoteMemory:
    """The memory of a store, or of a daemon that holds one."""
    if (store is None) == (daemon is None):
        raise typer.BadParameter(
            "name the store, or the daemon that holds it", param_hint="--store"
        )
    if store is not None:
        return _opened(store, namespace, config, read_only=read_only)
    if config is not None:
        raise typer.BadParameter("the daemon has its own settings", param_hint="--config")
    assert daemon is not None
    from ebbtide.daemon import connect

    return connect(daemon, token=token_file, namespace=namespace)


def _opened(store: Path, namespace: str, config: Path | None, *, read_only: bool) -> Memory:
    """The memory, or an error that says how several clients share one."""
    from ebbtide.errors import StoreError
    from ebbtide.memory import Memory

    try:
        return Memory.open(
            store, namespace=namespace, config=settings_from(config), read_only=read_only
        )
    except StoreError as error:
        if error.code != "store.locked":
            raise
        message = (
            f"{error}; to share a memory, start `ebbtide mcp --http` once and give every "
            "client its address, or name a daemon with --daemon, or add --read-only here"
        )
        raise StoreError(message, error.code) from error
