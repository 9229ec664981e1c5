"""Data of others, in packages from PyPI. Of two only the files are used: `make datasets` installs them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

_PACKAGES = Path(__file__).parents[2] / ".venv" / "tasks"

BOKEH = _PACKAGES / "bokeh_sampledata" / "_data"
VEGA = Path(str(find_spec("vega_datasets").submodule_search_locations[0])) / "_data"
RIVER = _PACKAGES / "river"

with_data = pytest.mark.skipif(
    not all(folder.is_dir() for folder in (BOKEH, RIVER)),
    reason="the data of the twenty tasks is missing: NONE OF THEM IS TRIED. `make datasets` installs it",
)
