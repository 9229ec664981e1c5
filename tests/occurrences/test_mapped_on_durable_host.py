"""A durable host stores the knowledge and the mapping of a pattern, and what events said."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from cepheid import OccurrencePattern
from cepheid.host import open_host
from occurrences.test_mapped_events import KNOWLEDGE, MAPPING, START, events


@pytest.mark.filterwarnings("ignore:policy 'recent'")
def test_reopened_after_each_event(tmp_path: Path) -> None:
    """A host that is opened again after each event needs no file, and knows what the events before said."""
    pattern = OccurrencePattern.of(
        "(?l: LogIn; ?r: Request) [ about(?r, ?i) ^ Film(?i) ^ input(?x, ?b) ^ objectValue(?b, ?j) ^ Book(?j) ]",
        knowledge=KNOWLEDGE,
        mapping=MAPPING,
    ).named("films")
    store, table = f"sqlite:///{tmp_path}/films.db", events(shop=["graz"] * 3)
    with open_host(store) as host:
        host.input("log", table.schema, time="at", sequence="id")
        host.deploy(pattern, input="log", key="shop", columns=["id"])
    for row in range(3):
        with open_host(store) as host:
            host.feed(table.slice(row, 1), input="log", position=row + 1)
    with open_host(store) as host:
        host.advance_time(START + timedelta(minutes=1))
        (found,) = host.sql("SELECT events FROM matches_films").to_pylist()
    assert [one["id"] for one in json.loads(found["events"])] == [1, 3]
