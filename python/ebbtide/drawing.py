"""Figures by matplotlib, in one look and without a trace of the machine they were drawn on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ebbtide.extras import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["INK", "drawing"]

INK = {"ink": "#22211f", "soft": "#66645f", "grid": "#dedcd5", "paper": "#fdfcfa"}
"""Colours of everything that is no data, on light paper."""

_SETTINGS: Any = {
    "axes.edgecolor": INK["soft"],
    "axes.grid": True,
    "axes.labelcolor": INK["ink"],
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.axisbelow": True,
    "figure.dpi": 100,
    "figure.facecolor": INK["paper"],
    "axes.facecolor": "none",
    "font.family": ["DejaVu Sans"],
    "font.size": 10,
    "grid.color": INK["grid"],
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.labelcolor": INK["ink"],
    "svg.fonttype": "none",
    "svg.hashsalt": "ebbtide",
    "text.color": INK["ink"],
    "text.parse_math": False,
    "xtick.color": INK["soft"],
    "ytick.color": INK["soft"],
}


@contextmanager
def drawing(width: float, height: float) -> Iterator[Figure]:
    """A figure, in inches, under the settings of every plot here.

    Raises:
        MissingExtraError: If matplotlib is not installed (extra ``plot``).
    """
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingExtraError(error, "plot") from error

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        yield figure
