"""The order of the outbox."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.durable.killed import end_of, feed_of, prepare
from tests.durable.routing.hosts import opened, tier_opened
from tests.durable.test_stores import PAIRS, events

import cepheid
from cepheid.host import Host, InputOf, open_host
from cepheid.hosts.durable.outbox import places

OTHERS = PAIRS.named("others")


def order_of(host: Host) -> list[tuple[str, int, str]]:
    """By what the rows of the outbox are ordered, in the order of their numbers: time, number of the deployment, id."""
    deployed = host.sql("SELECT name, version, number FROM patterns").to_pylist()
    numbers = {(one["name"], one["version"]): one["number"] for one in deployed}
    rows = host.sql("SELECT pattern, version, match_id, content FROM outbox ORDER BY number").to_pylist()
    return [
        (json.loads(row["content"])["detected_at"], numbers[row["pattern"], row["version"]], row["match_id"])
        for row in rows
    ]


def test_order(url: str) -> None:
    """What a step finds is in the order of its detection over all keys and patterns, matches among timeouts and tiers
    among what they are made of; what is detected at one time, in that of deployments and ids.
    """
    with open_host(url) as host:
        prepare(host)
        numbers = [0]
        for first in (0, 5):
            host.feed(pa.concat_tables(feed_of(number) for number in range(first, first + 5)), input="clicks")
            numbers.append(host.figures().outbox)
        host.advance_time(end_of(12))
        order = order_of(host)
        for begin, end in zip(numbers, [*numbers[1:], len(order)], strict=True):
            assert order[begin:end] == sorted(order[begin:end])
        assert len({deployed for _, deployed, _ in order[: numbers[1]]}) == 2
        assert [one[0] for one in order] == sorted(one[0] for one in order)
        assert len({one[0] for one in order}) > 10
        numbered = host.sql("SELECT number FROM outbox ORDER BY number").column(0).to_pylist()
        assert numbered == [*range(1, len(order) + 1)]


def test_two_versions(url: str) -> None:
    """Versions of one pattern, of which the former drains, are in one order, also after the store is opened anew."""
    with opened(url) as host:
        host.feed(events(*"aaa"), input="events")
        host.deploy(PAIRS.named("pairs", version="2"), input="events", key="user", old="drain")
        host.feed(events(*"abbab", after=3), input="events")
        order = order_of(host)
    assert len({deployed for _, deployed, _ in order}) == 2
    assert order == sorted(order)
    with opened(url) as host:
        assert order_of(host) == order


def test_several_patterns_for_another_host(url: str, tmp_path: Path) -> None:
    """If two patterns find more in one feed than another host gets at once, nothing is late there."""
    with opened(url) as host, tier_opened(f"duckdb:///{tmp_path}/tier") as tier:
        host.deploy(OTHERS, input="events", key="user", measures={"id": "b.id"})
        tier.deploy(cepheid.Pattern.begin("x", name="each"), input="pairs", outputs=("matches", "late"))
        host.subscribe("tier", to=InputOf(tier, "pairs"))
        host.feed(events(*"ab" * 400), input="events")
        assert host.figures().outbox == 800
        assert host.deliver()
        assert tier.inputs["pairs"].events == 800
        assert tier.sql("SELECT count(*) AS n FROM late_each").to_pylist() == [{"n": 0}]
        assert tier.figures().patterns["each", "1"]["matches"] == 800


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=6), min_size=1, max_size=4))
def test_rows_of_one_pattern_stay_as_they_are(times: list[list[int]]) -> None:
    """Rows in real time, such as a retraction and the insertion before it, keep their order among those of other
    patterns; rows that are in the order of their times are so over all patterns.
    """
    found = [*places([pa.chunked_array([some], pa.timestamp("us", "UTC")) for some in times])]
    assert sorted(found) == [*range(len(found))]
    of_tables = [[found.pop(0) for _ in some] for some in times]
    assert all(own == sorted(own) for own in of_tables)
    if all(some == sorted(some) for some in times):
        numbered = [(time, i) for i, some in enumerate(times) for time in some]
        by_place = sorted(zip((place for own in of_tables for place in own), numbered, strict=True))
        assert [one for _, one in by_place] == sorted(numbered)
