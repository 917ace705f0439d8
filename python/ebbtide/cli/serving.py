"""``ebbtide serve``: one process that writes a store for several."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ebbtide.cli.common import ConfigOption, examples, settings_from
from ebbtide.cli.output import stderr, write

__all__ = ["EXAMPLES", "serve"]

EXAMPLES = examples(
    "ebbtide serve --store memory.db",
    "ebbtide serve --store memory.db --socket /run/user/1000/ebbtide.sock",
    "ebbtide serve --store memory.db --port 8765 --token-file ~/.config/ebbtide.token",
    "ebbtide serve --openapi > openapi.json",
)


def serve(
    store: Annotated[
        Path | None, typer.Option("--store", "-s", help="The store file; made if missing.")
    ] = None,
    socket: Annotated[
        Path | None,
        typer.Option("--socket", help="Unix socket to listen on; STORE.sock by default."),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", help="Loopback address to listen on, with --port.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(
            "--port", min=0, max=65535, help="Listen on a port instead; 0 takes a free one."
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            help="File with the token, made if missing; with --port STORE.token by default.",
        ),
    ] = None,
    max_body: Annotated[
        int, typer.Option("--max-body", min=1024, help="Most bytes of a request's body.")
    ] = 8 * 2**20,
    warm_up: Annotated[
        bool,
        typer.Option(help="Load the models at the start, beside the first requests."),
    ] = True,
    openapi: Annotated[
        bool, typer.Option("--openapi", help="Print the OpenAPI description and end.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Hold a store for several processes.

    It speaks HTTP over a Unix socket, which is this user's alone, or over a loopback port,
    which asks for a token. Programs use it with ebbtide.connect(ADDRESS). SIGTERM, SIGHUP
    and Ctrl-C end it: requests that run are finished first.
    """
    if openapi:
        from ebbtide.daemon.app import openapi as described

        write(json.dumps(described(), indent=2))
        return
    if store is None:
        raise typer.BadParameter("name the store file", param_hint="--store")
    from ebbtide.daemon.server import Daemon, Settings

    daemon = Daemon(
        Settings(
            store=store,
            config=settings_from(config),
            socket=socket,
            host=host,
            port=port,
            token_file=token_file,
            max_body=max_body,
            warm_up=warm_up,
        )
    )
    daemon.run(lambda address: _say(store, address, token_file))


def _say(store: Path, address: str, token_file: Path | None) -> None:
    """Tell where it listens; the token itself is in its file alone."""
    if token_file is None and address.startswith("http"):
        token_file = Path(f"{store}.token")
    asked = "" if token_file is None else f", token in {token_file}"
    stderr().print(f"serving {store} at {address}{asked}; Ctrl-C ends it", soft_wrap=True)
