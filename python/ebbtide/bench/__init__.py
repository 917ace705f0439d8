"""Benchmarks that ship with the package: ``ebbtide bench`` measures the machine it runs on."""

from ebbtide.bench.figures import Figure, Machine
from ebbtide.bench.suites import SECTIONS, run

__all__ = ["SECTIONS", "Figure", "Machine", "run"]
