"""A drained pattern goes on with what is open of it."""

from __future__ import annotations

from tests.durable.test_stores import events, prepared

from cepheid.host import open_host


def test_a_drained_pattern_survives_the_end_of_its_process(url: str) -> None:
    """What a pattern had open when it was retired completes its matches, also in a host that is opened later."""
    with prepared(url) as host:
        host.feed(events("a"), input="events")
        host.feed(events("a", after=1), input="events")
        host.retire("pairs", how="drain")
    with open_host(url) as host:
        found = host.feed(events("b", after=2), input="events")
        assert found.rows["pairs"].num_rows == 2
