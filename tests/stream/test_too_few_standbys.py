"""A query whose hot keys need more standbys than it has says so; without a budget, its trigger's interval is one."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.live.events import PAIR, events
from tests.stream.running import finished, streamed, written
from tests.stream.test_copies_grow import HOT, last_with_events, told

from cepheid import CepheidWarning, CopiesChange, Pattern, SnapshotError, detect, prometheus_text
from cepheid.cli.stream_load import load_rows
from cepheid.hosts.spark.stream.copies.trigger import trigger_interval
from cepheid.streams import copy_hot_keys, progress, progress_listener

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

OPTIONS: dict[str, Any] = {"key": "k", "time": "at", "sequence": "id", "lateness": "5 seconds", "shards": 4}


@pytest.mark.slow
def test_no_standby_is_free(streams: SparkSession, tmp_path: Path) -> None:
    """The trigger's interval of a second is the budget: a key that takes 3.5 s a micro-batch gets the only standby.
    After that it is reported once that none is free, and `progress` says so until the key has cooled, as do the view
    and Prometheus. The listener is called as if the micro-batches had taken five seconds.
    """
    checkpoint, changes, seen = tmp_path / "checkpoint", list[CopiesChange](), list[Any]()
    listener = copy_hot_keys(checkpoint, report=changes.append)
    watching = progress_listener(seen.append, checkpoint)

    def one_more(number: int) -> None:
        written(
            [events(*((10 * number + i, "k0", number + i / 10, "a") for i in range(10)))], tmp_path / "events", number
        )

    one_more(0)
    rows = detect(streamed(streams, tmp_path / "events"), PAIR, standbys=1, checkpoint=checkpoint, **OPTIONS)
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(processingTime="1 second").start()
    try:
        for number, load in enumerate((3.5, 3.5, 3.5, 0.0), 1):
            event: Any = told(last_with_events(query), load)
            listener.onQueryProgress(event)
            watching.onQueryProgress(event)
            found = progress(query, checkpoint)
            assert found is not None
            assert seen[-1].short == found.short
            assert len(found.short or ()) == (number in (2, 3))
            if number == 2:
                assert found.short == (changes[-1],)
                assert_said(found, changes[-1])
            one_more(number)
        without_checkpoint = progress(query)
    finally:
        query.stop()
    assert without_checkpoint is not None
    assert without_checkpoint.short is None
    assert "standbys" not in prometheus_text(without_checkpoint)
    assert [(one.copies, one.wanted, one.decided, one.is_short) for one in changes] == [
        (1, 4, True, False),
        (1, 4, False, True),
        (0, 0, True, False),
    ]
    assert trigger_interval(streams, str(query.id)) is None  # it has ended


def assert_said(found: Any, change: CopiesChange) -> None:
    """The key that needs more standbys is named by its hash, with the remedy, everywhere but in Prometheus."""
    message = (
        f"key {HOT} of 'pattern' after batch {change.batch}: 1 copy; its load of 3.50 s a micro-batch needs 4, and no "
        "standby is free: give the query more standbys and a new checkpoint, in which their number is fixed, or a "
        "larger budget"
    )
    assert str(change) == message
    assert ("too few standbys", message) in [*load_rows(found, found, None)]
    lines = prometheus_text(found).splitlines()
    assert f'cepheid_keys_short_of_standbys{{query="{found.query}"}} 1' in lines
    assert f'cepheid_standbys_wanted{{query="{found.query}"}} 4' in lines


@pytest.mark.slow
def test_a_pattern_whose_events_come_later(streams: SparkSession, tmp_path: Path) -> None:
    """Its keys get copies, too: what is stored for it is known after its first events."""
    later = Pattern.begin("c").where("x = 'c'").followed_by("d").where("x = 'd'").within("10 seconds")
    checkpoint, changes = tmp_path / "checkpoint", list[CopiesChange]()
    listener = copy_hot_keys(checkpoint, budget="1 second", report=changes.append)
    patterns = {"pattern": PAIR, "later": later}
    for number, letter in enumerate("ac"):
        given = [events(*((10 * number + i, "k0", number + i / 10, letter) for i in range(10)))]
        written(given, tmp_path / "events", number)
        rows = detect(streamed(streams, tmp_path / "events"), patterns, standbys=1, checkpoint=checkpoint, **OPTIONS)
        query = finished(rows.writeStream.format("noop"), checkpoint)
        event: Any = told(last_with_events(query), 3.5, [*patterns][number])
        listener.onQueryProgress(event)
    assert [(one.pattern, one.copies) for one in changes] == [("pattern", 1), ("later", 1)]


def test_a_query_without_standbys(streams: SparkSession, tmp_path: Path) -> None:
    """A listener for its checkpoint is an error; before the checkpoint has state, that becomes a warning, once."""
    checkpoint = tmp_path / "checkpoint"
    early = copy_hot_keys(checkpoint, budget="1 second")
    written([events(*((number, "k0", number / 10, "a") for number in range(10)))], tmp_path / "events")
    rows = detect(streamed(streams, tmp_path / "events"), PAIR, checkpoint=checkpoint, **OPTIONS)
    query = finished(rows.writeStream.format("noop"), checkpoint)
    event: Any = told(last_with_events(query), 3.0)
    message = (
        f"the query of the checkpoint at '{checkpoint}' has no standbys, so its keys cannot have copies. Their number "
        "is fixed in the checkpoint: start the query with a new one and standbys, as in detect(…, standbys=4)"
    )
    with pytest.warns(CepheidWarning, match=f"^{re.escape(message)}$"):
        early.onQueryProgress(event)
    early.onQueryProgress(event)  # warnings are errors here
    with pytest.raises(SnapshotError, match=f"^{re.escape(message)}$"):
        copy_hot_keys(checkpoint, budget=timedelta(seconds=1))
