"""Other memory systems, each in a virtual environment of its own, under the harness."""

from ebbtide.evals.peers.install import (
    PEER,
    PeerEnvironment,
    PeerUnavailableError,
    open_environment,
    peer_environment,
)
from ebbtide.evals.peers.protocol import PeerError, PeerProcess
from ebbtide.evals.peers.system import DmfMemory, open_dmf

__all__ = [
    "PEER",
    "DmfMemory",
    "PeerEnvironment",
    "PeerError",
    "PeerProcess",
    "PeerUnavailableError",
    "open_dmf",
    "open_environment",
    "peer_environment",
]
