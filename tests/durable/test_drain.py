"""A drained pattern goes on with what is open of it."""

from __future__ import annotations

from pathlib import Path

from tests.durable.test_stores import PAIRS, SCHEMA, events, prepared

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


def test_waiting_events_start_in_the_version_that_drains(tmp_path: Path) -> None:
    """What came before the switch and still waits for the watermark starts in the old version, as the new one never
    gets it; what comes later starts in the new one alone. So nothing is lost or found twice.
    """
    with open_host(f"sqlite:///{tmp_path}/host.db") as host:
        host.input("events", SCHEMA, time="at", sequence="id", lateness="2 minutes")
        host.deploy(PAIRS, input="events", key="user")
        host.feed(events("z", "a", "a"), input="events")
        host.deploy(PAIRS.named("pairs", version=2), input="events", key="user", old="drain")
        host.feed(events("a", "b", after=3), input="events")
        host.advance_time("2024-03-04T10:05:00Z")
        found = host.sql("SELECT version, match_start FROM matches_pairs ORDER BY match_start").to_pylist()
    assert [(row["version"], row["match_start"][14:16]) for row in found] == [("1", "01"), ("1", "02"), ("2", "03")]
