"""A time as SQL, to compare the matches of a deployed pattern with."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events.time import arrow_zone
from cepheid.hosts.durable.documents import deployment_from_json, input_from_json
from cepheid.hosts.durable.tiers import sources_of
from cepheid.requests.request import instant_of


def detected_since(ask: Callable[[str], pa.Table], name: str, table: str, since: datetime) -> str:
    """The condition that a row in the table of matches of the pattern was detected from a time on. `table` is SQL. A
    time without a zone is read in the zone of the pattern's input, as its events are.

    Raises:
        SchemaError: the local time exists twice or not at all.
    """
    zone = _zone_of(ask, name)
    instant = instant_of(since, zone, argument="since")
    shown = _local(instant, zone) if _is_local(ask, table) else instant.astimezone(UTC).replace(tzinfo=None)
    # Without a zone: the sessions of all databases are in UTC.
    return f"detected_at >= '{shown.isoformat(timespec='microseconds')}'"


def _zone_of(ask: Callable[[str], pa.Table], name: str) -> str:
    """The zone of the local times in the events of the pattern."""
    contents = ask("SELECT content FROM patterns ORDER BY number").column(0).to_pylist()
    deployments = [deployment_from_json(json.loads(content)) for content in contents]
    newest = [one for one in deployments if one.name == name][-1]
    inputs = [
        input_from_json(json.loads(content)) for content in ask("SELECT content FROM inputs").column(0).to_pylist()
    ]
    source = min(sources_of(newest.input, deployments))
    return next(one.time_zone for one in inputs if one.name == source)


def _is_local(ask: Callable[[str], pa.Table], table: str) -> bool:
    """Whether the times in the table have no zone. In SQLite they are texts, which end with Z if they have one."""
    some = ask(f"SELECT detected_at FROM {table} LIMIT 1").column(0).to_pylist()
    if not some:
        return False
    return not some[0].endswith("Z") if isinstance(some[0], str) else some[0].tzinfo is None


def _local(instant: datetime, zone: str) -> datetime:
    """What clocks in the zone show at the instant."""
    local: datetime = pc.local_timestamp(pa.array([instant], pa.timestamp("us", arrow_zone(zone))))[0].as_py()
    return local
