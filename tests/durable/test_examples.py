"""The pages of docs/examples: on each store they show what is on the page, and find what `detect` finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pytest
from tests.docs.page import PAGES, run_page

from cepheid import detect
from cepheid.host import Host, open_host
from cepheid.hosts.durable.state import Deployment, MatchesOf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = {page.stem: page for page in PAGES if page.parent.name == "examples"}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


Found: TypeAlias = Counter[tuple[str, str]]
"""Kinds and ids of rows."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_stores(name: str, url: str, tmp_path: Path) -> None:
    """Each store gives the output on the page, and its tables have the ids that `detect` gives in process."""
    names = run_page(EXAMPLES[name], tmp_path, store=url)
    with open_host(url) as host:
        assert found_by(detect, host, names) == in_tables(host, names)


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:no key")  # in some examples conditions alone say what belongs together
@pytest.mark.parametrize("name", EXAMPLES)
def test_spark(name: str, tmp_path: Path, spark: SparkSession) -> None:
    """Spark finds the same in the page's events."""

    def on_spark(events: pa.Table, pattern: Any, **arguments: Any) -> pa.Table:
        return detect(spark.createDataFrame(events), pattern, **arguments).toArrow()

    url = f"sqlite:///{tmp_path}/store"
    names = run_page(EXAMPLES[name], tmp_path, store=url)
    with open_host(url) as host:
        assert found_by(on_spark, host, names) == in_tables(host, names)


def deployments_of(names: Mapping[str, Any]) -> list[Deployment]:
    """What the page calls `deployed`: one or several deployments that have seen all of its events."""
    deployed = names["deployed"]
    return [deployed] if isinstance(deployed, Deployment) else deployed


def found_by(detect: Callable[..., pa.Table], host: Host, names: Mapping[str, Any]) -> dict[str, Found]:
    """What `detect` gives for each deployment. Time is where the host has advanced it to."""
    (source,) = host.inputs.values()
    now = EPOCH + timedelta(microseconds=source.reached.time)
    found: dict[str, pa.Table] = {}
    for one in deployments_of(names):
        found[one.name] = detect(
            names["events"] if isinstance(one.input, str) else tier_events(one, found),
            one.pattern,
            key=one.key or None,
            time=source.time,
            sequence=source.sequence,
            measures=one.measures,
            outputs=one.outputs,
            as_of=now,
        )
    return {name: Counter(map(kind_and_id, rows.to_pylist())) for name, rows in found.items()}


def tier_events(tier: Deployment, found: Mapping[str, pa.Table]) -> pa.Table:
    """The matches of the patterns that are the tier's input, as events."""
    assert isinstance(tier.input, MatchesOf)
    without = ("kind", "match_id", "match_start", "match_end")
    parts = [found[name].rename_columns({"detected_at": "at"}) for name in tier.input.patterns]
    parts = [rows.select([column for column in rows.schema.names if column not in without]) for rows in parts]
    return pa.concat_tables(parts, promote_options="default")


def in_tables(host: Host, names: Mapping[str, Any]) -> dict[str, Found]:
    """The same for what the host's tables have."""
    tables = {"matches": "match", "timeouts": "timeout"}
    return {
        one.name: Counter(
            (tables[output], row["match_id"])
            for output in one.outputs
            for row in host.sql(f"SELECT match_id FROM {output}_{one.slug}").to_pylist()
        )
        for one in deployments_of(names)
    }


def kind_and_id(row: Mapping[str, Any]) -> tuple[str, str]:
    return row.get("kind", "match"), row["match_id"]
