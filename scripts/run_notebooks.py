"""Runs the notebooks of the documentation, and stores their outputs in them. A test compares these with new ones."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))
_LARGE = 100_000
"""Characters: pages of pictures are longer, and tables are not."""


def main() -> None:
    for path in NOTEBOOKS:
        nbformat.write(executed(path), path)


def executed(path: Path) -> nbformat.NotebookNode:
    """The notebook with new outputs, but without the pages of pictures: each is a megabyte."""
    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as folder:
        environment = {**os.environ, "IPYTHONDIR": folder}  # no settings of the user
        NotebookClient(notebook, timeout=300, kernel_name="python3").execute(cwd=folder, env=environment)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # the times of the run
        for output in cell.get("outputs", ()):
            if "data" in output:
                output["data"] = {kind: value for kind, value in output["data"].items() if len(str(value)) < _LARGE}
    return notebook


if __name__ == "__main__":
    main()
