"""Marks as rows of data for Vega-Lite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cepheid.plotting.bins import Steps
from cepheid.plotting.text import Tooltip


@dataclass(frozen=True)
class Kind:
    """Marks of one kind, with the lines of their tooltips."""

    rows: list[dict[str, Any]]
    tooltip: Tooltip = ()
    steps: Steps | None = None
    """The steps of time in which they are aggregated; None: they are drawn one by one."""


def finite(value: float) -> float | None:
    """The number; None for NaN, which JSON does not have."""
    return float(value) if np.isfinite(value) else None
