"""A drained pattern goes on with what is open of it."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.durable.test_next_snapshot import feed
from tests.durable.test_stores import PAIRS, SCHEMA, count, events, prepared
from tests.live.events import PAIR, at
from tests.live.events import SCHEMA as PAIR_SCHEMA
from tests.live.events import events as pair_events
from tests.searching import share
from tests.stream.test_draining_shards import ABSENT, LOOP, Row, deliveries

from cepheid import OccurrencePattern, Pattern, PatternError, detect
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


@share(10)
@pytest.mark.parametrize("pattern", [PAIR, LOOP, ABSENT], ids=["pair", "loop", "absent"])
@given(data=st.data(), batches=deliveries())
def test_a_pattern_drains(data: st.DataObject, pattern: Pattern, batches: list[list[Row]]) -> None:
    """Whenever the host is opened anew and whatever its store has written of the next snapshot: what starts with an
    event from before the switch is found, and nothing else is. At the end the pattern is retired.
    """
    switch = data.draw(st.integers(1, len(batches)))
    opened = data.draw(st.sets(st.integers(0, len(batches))))
    small_log = data.draw(st.sampled_from([0, 3000, 1 << 16]))
    how: dict[str, Any] = {"time": "at", "sequence": "id", "lateness": "4 seconds"}
    rows = sorted(chain.from_iterable(batches))
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as change:
        change.setattr("cepheid.hosts.shards.log.SMALL_LOG", small_log)
        change.setattr("cepheid.hosts.durable.step.here.FEW_ENTRIES", 1)
        change.setattr("cepheid.hosts.durable.next_snapshot._LARGE", data.draw(st.sampled_from([0, 1 << 20])))
        change.setattr("cepheid.matchers.snapshot._PIECE", 1000)
        host = open_host(f"sqlite:///{folder}/host.db")
        host.input("events", PAIR_SCHEMA, **how)
        host.deploy(pattern.named("p"), input="events", key="k")
        for number, batch in enumerate(batches):
            if number == switch:
                host.retire("p", how="drain")
            if number in opened:
                host.close()
                host = open_host(f"sqlite:///{folder}/host.db")
            host.feed(pair_events(*batch), input="events")
        if switch == len(batches):
            host.retire("p", how="drain")
        host.advance_time(at(100))
        found = host.sql("SELECT match_id FROM matches_p").column("match_id").to_pylist()
        status = host.sql("SELECT status FROM patterns").column("status").to_pylist()
        host.close()
    before = {row[0] for row in chain.from_iterable(batches[:switch])}
    expected = detect(
        pair_events(*rows), pattern.named("p"), as_of=at(100), key="k", time="at", sequence="id", outputs=("matches",)
    )
    ids = [row["match_id"] for row in expected.to_pylist() if row["stages"][0][1][0]["id"] in before]
    assert sorted(found) == sorted(ids)
    assert status == ["retired"]


def test_nothing_is_written_anew(tmp_path: Path) -> None:
    """Its snapshot and log stay as they are, however large: no other feed waits for it."""
    with prepared(f"sqlite:///{tmp_path}/host.db") as host:
        for number in range(20):
            feed(host, number)
        before = host.sql("SELECT * FROM cepheid_heads").to_pylist()
        host.deploy(PAIRS.named("pairs", version=2), input="events", key="user", old="drain")
        assert host.sql("SELECT * FROM cepheid_heads WHERE deployment = 1").to_pylist() == before
        assert count(host, "open_pairs") == 200 - 3 * 15


def test_what_cannot_be_drained(tmp_path: Path) -> None:
    """Only patterns of stages can drain. Others are refused, and go on."""
    pattern = OccurrencePattern.of("a; b").named("apart").taxonomy("what").policy("recent")
    with open_host(f"sqlite:///{tmp_path}/host.db") as host:
        host.input("events", SCHEMA, time="at", sequence="id")
        host.deploy(pattern, input="events", key="user")
        host.feed(events("a"), input="events")
        with pytest.raises(PatternError, match=r"'apart' is .*, which cannot be drained: drop what"):
            host.retire("apart", how="drain")
        host.feed(events("b", "z", after=1), input="events")
        assert count(host, "matches_apart") == 1
