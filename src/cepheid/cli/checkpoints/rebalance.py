"""`cepheid stream rebalance`: gives a stopped stream other numbers of shards and partitions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from cepheid.cli.failure import FileProblem, Unavailable, failures_reported


def rebalance(
    checkpoint: Annotated[Path, typer.Argument(help="The folder of the query's state.")],
    *,
    shards: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="The number of parts of the keys; as before if not given."),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="The number of Spark's partitions; as before if not given."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
) -> None:
    """Give a stopped stream other numbers of shards and partitions, from which it continues.

    The checkpoint is written anew beside the former one, then takes its place. The former one is kept.
    """
    with failures_reported(as_json=False):
        if not checkpoint.is_dir() and not checkpoint.with_name(f"{checkpoint.name}.rebalancing").is_dir():
            raise FileProblem(f"there is no folder {checkpoint}")
        from pyspark.errors import PySparkException
        from rich.console import Console

        from cepheid.cli.events import spark_session
        from cepheid.hosts.spark.failures import failure_message
        from cepheid.streams import rebalance as rebalanced

        with spark_session("cepheid stream rebalance", "UTC", Console(stderr=True)):
            try:
                done = rebalanced(checkpoint, shards=shards, partitions=partitions, dry_run=dry_run)
            except PySparkException as error:
                raise Unavailable(f"Spark could not rewrite the state: {failure_message(error)}") from None
        sys.stdout.write(f"{done}\n")
