"""Pattern files and a supervised query over the events in a folder, for tests."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.stream.running import streamed

from cepheid import Pattern, pattern_to_yaml
from cepheid.streams import supervise

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter

    from cepheid.hosts.spark.supervised.supervisor import Supervisor

ARGUMENTS: dict[str, Any] = {"key": "k", "time": "at", "sequence": "id", "columns": "id"}


def pair(name: str, last: str, version: str | None = None, seconds: int = 20) -> Pattern:
    """An event a, and later an event `last` of the same key."""
    begun = Pattern.begin("a", name=name, version=version).where("x = 'a'")
    return begun.followed_by("b").where(f"x = '{last}'").within(f"{seconds} seconds")


def deployed(folder: Path, *patterns: Pattern) -> None:
    """Makes these patterns the files of the folder."""
    folder.mkdir(exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    for pattern in patterns:
        (folder / f"{pattern.name}.yaml").write_text(pattern_to_yaml(pattern))


def to_files(folder: Path, **trigger: Any) -> Callable[[DataFrame], DataStreamWriter]:
    def write(rows: DataFrame) -> DataStreamWriter:
        writer = rows.writeStream.format("parquet").option("path", str(folder / "found"))
        return writer.trigger(**trigger) if trigger else writer

    return write


def supervised(spark: SparkSession, folder: Path, news: list[Any] | None = None, **options: Any) -> Supervisor:
    """A supervised query over the events in the folder, with its patterns, sink and checkpoint there."""
    given = {
        "checkpoint": folder / "checkpoint",
        "lateness": "0 seconds",
        "shards": 2,
        "report": (news if news is not None else []).append,
        **ARGUMENTS,
        **options,
    }
    trigger = given.pop("trigger", {})
    return supervise(streamed(spark, folder / "events"), folder / "patterns", to_files(folder, **trigger), **given)


def looked(supervisor: Supervisor, news: list[Any], count: int) -> None:
    """Looks until there is so much news."""
    until = time.monotonic() + 120
    while len(news) < count:
        supervisor.look()
        assert time.monotonic() < until, news
