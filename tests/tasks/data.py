"""Data of others: packages from PyPI of which only the files are used. `make datasets` installs them."""

from __future__ import annotations

from pathlib import Path

import pytest

_PACKAGES = Path(__file__).parents[2] / ".venv" / "tasks"

BOKEH = _PACKAGES / "bokeh_sampledata" / "_data"
VEGA = _PACKAGES / "vega_datasets" / "_data"
RIVER = _PACKAGES / "river"

with_data = pytest.mark.skipif(
    not all(folder.is_dir() for folder in (BOKEH, VEGA, RIVER)),
    reason="the data of the twenty tasks is missing: NONE OF THEM IS TRIED. `make datasets` installs it",
)
