"""Small examples of what a matcher with a consistency emits."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.live.events import at, events, matcher

from cepheid import Limits, Matcher, Pattern, SchemaError, SnapshotError

ABSENT = Pattern.begin("a").where("x = 'a'").not_followed_by("b").where("x = 'b'").within("5 seconds")


def changes(rows: pa.Table) -> list[tuple[Any, ...]]:
    """For each row: its kind, whether it is a match or a timeout, and the ids of its events."""
    return [
        (row["kind"], row["found"], *(event["id"] for _, taken in row["stages"] or () for event in taken))
        for row in rows.to_pylist()
    ]


def test_timeouts_are_retracted() -> None:
    """A timeout that was emitted when its deadline passed is retracted by the missing event, which completes a
    match.
    """
    live = matcher(lateness="20 seconds", consistency="realtime")
    live.process(events((1, "p", 0, "a")))
    assert changes(live.process(events((2, "q", 12, "-")))) == [("insertion", "timeout", 1)]
    counts = live.counts
    assert (counts.matches, counts.timeouts) == (0, 1)
    emitted = live.process(events((3, "p", 4, "b")))
    assert changes(emitted) == [("retraction", "timeout", 1), ("insertion", "match", 1, 3)]
    assert emitted.column("detected_at").to_pylist() == [at(12), at(4)]
    assert (live.counts.matches, live.counts.timeouts) == (1, 0)


def test_absence_is_retracted() -> None:
    """A match with an absence is emitted when the time of the absence has passed, and retracted if the event comes
    after all.
    """
    live = matcher(ABSENT, lateness="20 seconds", consistency="realtime")
    live.process(events((1, "p", 0, "a")))
    assert changes(live.process(events((2, "q", 6, "-")))) == [("insertion", "match", 1)]
    assert changes(live.process(events((3, "p", 4, "b")))) == [("retraction", "match", 1)]
    assert changes(live.finish()) == []


def test_conservative() -> None:
    """A conservative matcher emits the same matches as one without a consistency, at the same calls."""
    live, plain = matcher(lateness="3 seconds", consistency="conservative"), matcher(lateness="3 seconds")
    for batch in ((1, "p", 0, "a"), (2, "p", 4, "b")), ((3, "p", 2, "b"),), ((4, "p", 6, "-"),), ((5, "p", 9, "-"),):
        emitted, expected = live.process(events(*batch)), plain.process(events(*batch))
        assert emitted.column("match_id").to_pylist() == expected.column("match_id").to_pylist()
        assert set(emitted.column("kind").to_pylist()) <= {"insertion"}


def test_without_outputs() -> None:
    """Without `outputs` there are matches and late events, and no column that distinguishes matches from timeouts."""
    live = matcher(lateness="1 second", consistency="realtime", outputs=None)
    live.process(events((1, "p", 0, "a"), (2, "p", 9, "-")))
    rows = live.process(events((3, "p", 1, "b"), (4, "p", 9, "b")))
    assert rows.column("kind").to_pylist() == ["late", "insertion"]
    assert "found" not in rows.schema.names


@pytest.mark.parametrize(
    "options",
    [
        {"measures": {"n": "count(b)"}, "outputs": None},
        {"key": None},
        {"sequence": None},
        {"limits": Limits(max_partial_matches=3)},
        {"limits": Limits(max_partial_matches=3, on_limit="drop")},
    ],
)
def test_with_other_arguments(options: dict[str, Any]) -> None:
    """With any other argument, an earlier event retracts a match, also after a restored snapshot."""
    live = matcher(lateness="10 seconds", consistency="realtime", **options)
    assert live.process(events((1, "p", 0, "a"), (2, "p", 5, "b"))).column("kind").to_pylist() == ["insertion"]
    other = matcher(lateness="10 seconds", consistency="conservative", **options)
    other.restore(live.snapshot())
    for second in (4, 3):
        rows = other.process(events((second, "p", second, "b")))
        assert rows.column("kind").to_pylist() == ["retraction", "insertion"]
    assert other.counts.matches == 1


def test_late_events_change_nothing() -> None:
    """A late event is emitted once and changes nothing."""
    live = matcher(lateness="1 second", consistency="realtime")
    live.process(events((1, "p", 0, "a"), (2, "p", 9, "b")))
    assert changes(live.process(events((3, "p", 1, "b")))) == [("late", None)]
    assert live.counts.late == 1


def test_snapshots_are_bound_to_the_consistency() -> None:
    """A snapshot of a matcher with a consistency is refused by a matcher without one, and the other way round."""
    with_consistency, without = matcher(consistency="realtime"), matcher()
    for wants, has in ((with_consistency, without), (without, with_consistency)):
        with pytest.raises(SnapshotError, match="consistency was"):
            wants.restore(has.snapshot())


def test_partial_matches() -> None:
    """Each partial match is listed and counted once, although rollback points have copies of it."""
    live = matcher(lateness="5 seconds", consistency="realtime")
    for number in range(3):
        live.process(events((number, "p", number, "a")))
    assert live.counts.open_partial_matches == live.partial_matches().num_rows == 3


def test_key_named_as_a_column() -> None:
    """The key column cannot have the name of the output column that distinguishes timeouts from matches."""
    schema = pa.schema([("found", pa.string()), ("at", pa.timestamp("us", "UTC")), ("x", pa.string())])
    with pytest.raises(SchemaError) as caught:
        Matcher(ABSENT, schema, key="found", time="at", outputs=["timeouts"], consistency="realtime")
    assert str(caught.value) == ("the output has its own column 'found': rename the key column or measure of that name")
