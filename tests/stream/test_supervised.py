"""A supervisor deploys, replaces and retires patterns while a query runs."""

from __future__ import annotations

from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException
from tests.live.events import events
from tests.stream.running import written
from tests.stream.supervised import END, expected, looked_until, pair, put, summary, supervised
from tests.stream.test_kill import committed_rows
from tests.stream.test_spark_stream import random_events

from cepheid import SnapshotError, partial_matches, pattern_to_yaml
from cepheid.hosts.spark.stream.placement import Placement
from cepheid.hosts.spark.stream.stored_state import open_by_number
from cepheid.hosts.spark.supervised.news import Refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

AB, AC = pair("ab", "b"), pair("ac", "c")


@pytest.mark.slow
def test_patterns_come_and_go(streams: SparkSession, tmp_path: Path) -> None:
    """A new pattern takes the events from its first micro-batch on; a pattern that stays keeps what is open; a version
    that is replaced drains while the new one runs; so does a pattern whose file is removed. A wrong file changes
    nothing.
    """
    rows, cuts = random_events(5, 240, 8), [0, 60, 120, 180, 240]
    parts = [rows[start:end] for start, end in pairwise(cuts)]
    files, news = tmp_path / "patterns", list[Any]()
    put(files, AB)
    written([events(*parts[0])], tmp_path / "events")
    supervisor = supervised(streams, tmp_path, news)
    supervisor.query.processAllAvailable()

    put(files, AB, AC)
    looked_until(supervisor, lambda: len(news) == 2)
    assert [str(one) for one in news[-1].change.deployed] == ["ac, version 1"]
    assert 0 < news[-1].pause.total_seconds() < 60
    written([events(*parts[1])], tmp_path / "events", first=1)
    supervisor.query.processAllAvailable()

    new = pair("ab", "z", version=2)
    (files / "ab.yaml").write_text(pattern_to_yaml(new).replace("x = 'z'", "y = 'z'"))
    looked_until(supervisor, lambda: len(news) == 3)
    assert isinstance(news[-1], Refusal)
    assert "no column named 'y' " in news[-1].problems
    assert f"{files / 'ab.yaml'}, pattern 'ab'" in news[-1].problems or str(files / "ab.yaml") in news[-1].problems
    put(files, new, AC)
    looked_until(supervisor, lambda: len(news) == 4)
    assert {(one.name, one.version): one.drains for one in supervisor.patterns.deployments} == {
        ("ac", "1"): False,
        ("ab", "2"): False,
        ("ab", "1"): True,
    }
    assert partial_matches(tmp_path / "checkpoint", "ab@1").count()  # the new version has had no events yet
    written([events(*parts[2])], tmp_path / "events", first=2)
    supervisor.query.processAllAvailable()
    listed = partial_matches(tmp_path / "checkpoint", "ab@1").collect()
    assert all(row.stages["a"][0].id < cuts[2] for row in listed)

    put(files, new)
    looked_until(supervisor, lambda: any(one.name == "ac" for one in supervisor.patterns.draining))
    written([events(*parts[3]), *(events(one) for one in END)], tmp_path / "events", first=3)
    supervisor.query.processAllAvailable()
    looked_until(supervisor, lambda: not supervisor.patterns.draining)
    supervisor.stop()
    assert [str(one) for one in supervisor.patterns.deployments] == ["ab, version 2"]
    assert summary(committed_rows(tmp_path / "found")) == sorted(
        [
            *expected(AB, rows, starts_before=cuts[2]),
            *expected(AC, rows, since=cuts[1], starts_before=cuts[3]),
            *expected(new, rows, since=cuts[2], version="2"),
        ]
    )


@pytest.mark.long
@pytest.mark.slow
def test_patterns_put_back(streams: SparkSession, tmp_path: Path) -> None:
    """A pattern whose file is removed and put back runs again, from the events after that on, while what was open
    before goes on.
    """
    rows, cuts = random_events(7, 80, 4), [0, 40, 80]
    parts = [rows[start:end] for start, end in pairwise(cuts)]
    files, news = tmp_path / "patterns", list[Any]()
    put(files, AB, AC)
    written([events(*parts[0])], tmp_path / "events")
    supervisor = supervised(streams, tmp_path, news)
    supervisor.query.processAllAvailable()
    for number, part in enumerate(parts[1:], 1):
        for patterns in ((AC,), (AB, AC)):
            put(files, *patterns)
            expected_news = len(news) + 1
            looked_until(supervisor, lambda count=expected_news: len(news) >= count)
        written([events(*part)], tmp_path / "events", first=number)
        supervisor.query.processAllAvailable()
    assert [str(one) for one in supervisor.patterns.running.values()] == ["ac, version 1", "ab, version 1"]
    written([events(*(one,)) for one in END], tmp_path / "events", first=len(parts))
    supervisor.query.processAllAvailable()
    looked_until(supervisor, lambda: not supervisor.patterns.draining)
    supervisor.stop()
    assert not any(isinstance(one, Refusal) for one in news)
    each = [expected(AB, rows, since=start, starts_before=end) for start, end in pairwise(cuts)]
    assert summary(committed_rows(tmp_path / "found")) == sorted([*expected(AC, rows), *chain(*each)])


@pytest.mark.long
@pytest.mark.slow
def test_dropped_patterns_and_a_new_supervisor(streams: SparkSession, tmp_path: Path) -> None:
    """With `drop`, nothing more is found of a version that is replaced, and its state is cleared. A new supervisor goes
    on with the former patterns; if files have changed meanwhile, it deploys them first, and wrong ones change nothing.
    """
    rows = random_events(6, 90, 4)
    files, news = tmp_path / "patterns", list[Any]()
    put(files, AB, AC)
    written([events(*rows[:30])], tmp_path / "events")
    supervisor = supervised(streams, tmp_path, news, old="drop")
    supervisor.query.processAllAvailable()
    supervisor.stop()
    assert {*open_by_number(str(tmp_path / "checkpoint"), Placement(2))} == {0, 1}

    new = pair("ab", "b", version=2)
    put(files, new, AC)
    supervisor = supervised(streams, tmp_path, news, old="drop")
    assert [str(one) for one in news[-1].change.gone] == ["ab, version 1"]
    written([events(*rows[30:60])], tmp_path / "events", first=1)
    supervisor.query.processAllAvailable()
    supervisor.stop()
    assert {*open_by_number(str(tmp_path / "checkpoint"), Placement(2))} == {1, 2}
    assert {row.pattern for row in partial_matches(tmp_path / "checkpoint", "ab").collect()} <= {"ab"}

    (files / "ab.yaml").write_text("name: ab\nstages:\n  - begin: a\n    wher")  # half written
    supervisor = supervised(streams, tmp_path, news, old="drop")
    assert isinstance(news[-2], Refusal)
    assert [str(one) for one in supervisor.patterns.deployments] == ["ac, version 1", "ab, version 2"]
    written([events(*rows[60:]), *(events(one) for one in END)], tmp_path / "events", first=2)
    supervisor.query.processAllAvailable()
    supervisor.stop()
    found = summary(committed_rows(tmp_path / "found"))
    assert [row for row in found if row[0] == "ac"] == expected(AC, rows)
    assert [row for row in found if row[1] == "2"] == expected(new, rows, since=30, version="2")
    of_old = [row for row in found if row[:2] == ("ab", "1")]
    assert of_old == [row for row in expected(AB, rows[:30]) if row in of_old]


@pytest.mark.long
@pytest.mark.slow
def test_a_pattern_that_fails_is_mended(streams: SparkSession, tmp_path: Path) -> None:
    """A micro-batch that fails with its set of patterns is repeated with the set that is in the folder when the next
    supervisor starts. The pattern that fails must be dropped: draining, it would fail again. What stays has each row
    once.
    """
    rows, files, news = random_events(8, 60, 3), tmp_path / "patterns", list[Any]()
    bad = pair("bad", "c' AND 1 / (id - 40) > 0 AND x <> '")
    put(files, AB)
    written([events(*rows[:30])], tmp_path / "events")
    supervisor = supervised(streams, tmp_path, news)
    supervisor.query.processAllAvailable()
    put(files, AB, bad)
    looked_until(supervisor, lambda: len(news) == 2)
    written([events(*rows[30:], (40, "k", 299, "c")), *(events(one) for one in END)], tmp_path / "events", first=1)
    with pytest.raises(StreamingQueryException, match="Division by zero"):
        supervisor.run()
    put(files, AB, AC.named("bad", version=2))
    supervisor = supervised(streams, tmp_path, news, old="drop")
    assert news[-1].patterns.first == news[-2].patterns.first
    supervisor.query.processAllAvailable()
    supervisor.stop()
    mended = expected(AC.named("bad"), rows, since=30, version="2")
    assert summary(committed_rows(tmp_path / "found")) == sorted([*expected(AB, rows), *mended])


def test_a_checkpoint_without_a_supervisor_is_refused(streams: SparkSession, tmp_path: Path) -> None:
    """A checkpoint belongs to supervised queries, or to one without a supervisor."""
    put(tmp_path / "patterns", AB)
    written([events((1, "k", 0, "a"))], tmp_path / "events")
    (tmp_path / "checkpoint" / "offsets").mkdir(parents=True)
    (tmp_path / "checkpoint" / "offsets" / "0").write_text("v1\n")
    with pytest.raises(SnapshotError) as caught:
        supervised(streams, tmp_path, [])
    assert str(caught.value).endswith(
        "belongs to a query without a supervisor, whose patterns stay the same. Give this query a new one"
    )
