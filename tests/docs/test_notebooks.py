"""The notebooks of the documentation run in a real Jupyter kernel, and give the outputs that are stored in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from scripts.run_notebooks import NOTEBOOKS, executed


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path) -> None:
    """Tables, texts and pictures of patterns are as stored; `python -m scripts.run_notebooks` stores new ones."""
    assert shown(executed(path)) == shown(nbformat.read(path, as_version=4))


def shown(notebook: nbformat.NotebookNode) -> list[tuple[str, Any, list[str]]]:
    """The outputs of all cells as text, and the kinds of the others."""
    outputs = [(cell.id, output) for cell in notebook.cells for output in cell.get("outputs", ())]
    assert outputs
    return [
        (name, (one.get("text") or one["data"]["text/plain"], sorted(one.get("data", ())))) for name, one in outputs
    ]
