"""The arguments that the commands of hosts share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import typer

from cepheid.cli.failure import FileProblem

StoreUrl = Annotated[
    str,
    typer.Argument(
        metavar="STORE",
        help="The store: a folder, or file:///folder, sqlite:///file, duckdb:///file or postgresql:///database.",
        show_default=False,
    ),
]
PatternName = Annotated[str, typer.Argument(metavar="NAME", help="The name of a deployed pattern.", show_default=False)]
OutputFile = Annotated[
    Path | None,
    typer.Option("--output", help="A .parquet, .csv or .jsonl file. Default: a table, or JSON lines when piped."),
]
How = Literal["drain", "drop"]


_DATABASES = {".db": "sqlite", ".sqlite": "sqlite", ".sqlite3": "sqlite", ".duckdb": "duckdb"}


def url_of(store: str) -> str:
    """The URL of the store; a folder may be given by its path.

    Raises:
        FileProblem: the path would be a folder with the name of a database.
    """
    if "://" in store:
        return store
    path = Path(store)
    if (scheme := _DATABASES.get(path.suffix.lower())) is not None and not path.is_dir():
        raise FileProblem(f"{store} would be a folder of files: write {scheme}:///{store} for a database")
    return f"file://{path.absolute()}"


def store_name(store: str) -> str:
    """The store's name in figures: that of its file, folder or database."""
    return urlsplit(url_of(store)).path.rstrip("/").rpartition("/")[2]
