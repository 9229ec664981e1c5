"""Pattern files and a supervised query over the events in a folder, for tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from tests.live.events import events
from tests.stream.running import streamed

from cepheid import Pattern, detect, pattern_to_yaml
from cepheid.streams import supervise

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from cepheid.hosts.spark.supervised.supervisor import Supervisor

ARGUMENTS: dict[str, Any] = {
    "key": "k",
    "time": "at",
    "sequence": "id",
    "columns": "id",
    "outputs": ("matches", "timeouts"),
}
END = (-1, "end", 300, "z"), (-2, "end", 301, "z")
"""Events after all others, so that all deadlines expire."""

Row = tuple[int, str, float, str]


def pair(name: str, last: str, version: int | None = None) -> Pattern:
    """An event a, and within twenty seconds an event `last` of the same key."""
    begun = Pattern.begin("a", name=name, version=version).where("x = 'a'")
    return begun.followed_by("b").where(f"x = '{last}'").within("20 seconds")


def put(folder: Path, *patterns: Pattern) -> None:
    """Makes these patterns the files of the folder."""
    folder.mkdir(exist_ok=True)
    for pattern in patterns:
        (folder / f"{pattern.name}.yaml").write_text(pattern_to_yaml(pattern))
    for file in folder.iterdir():
        if file.stem not in {pattern.name for pattern in patterns}:
            file.unlink()


def supervised(spark: SparkSession, folder: Path, news: list[Any], **options: Any) -> Supervisor:
    """A supervised query over the events in the folder, whose patterns, sink and checkpoint are there, too."""

    def write(rows: DataFrame) -> DataStreamWriter:
        return rows.writeStream.format("parquet").option("path", str(folder / "found"))

    given = {
        "write": write,
        "checkpoint": folder / "checkpoint",
        "lateness": "0 seconds",
        "shards": 2,
        "report": news.append,
        **ARGUMENTS,
        **options,
    }
    return supervise(streamed(spark, folder / "events"), folder / "patterns", **given)


def looked_until(supervisor: Supervisor, is_done: Callable[[], bool]) -> None:
    """Looks at the folder until something is as it should be."""
    until = time.monotonic() + 120
    while not is_done():
        supervisor.look()
        assert time.monotonic() < until, supervisor.patterns


def summary(rows: pa.Table, version: str | None = None) -> list[tuple[Any, ...]]:
    """Each row as (pattern, version, kind, match id), sorted."""
    return sorted(
        (row["pattern"], row.get("version", version), row["kind"], row["match_id"])
        for row in rows.drop_columns(["match_start", "match_end", "detected_at"]).to_pylist()
    )


def expected(
    pattern: Pattern, rows: Sequence[Row], *, since: int = 0, starts_before: int | None = None, version: str = "1"
) -> list[tuple[Any, ...]]:
    """What the pattern finds in the events with ids from `since`. `starts_before`: only by partial matches that start
    with an event of a smaller id.
    """
    found = detect(events(*rows[since:], *END), pattern, **ARGUMENTS)
    starts = [stages[0][1][0]["id"] for stages in found.column("stages").to_pylist()]
    kept = [starts_before is None or start < starts_before for start in starts]
    return summary(found.filter(pa.array(kept, pa.bool_())), version)
