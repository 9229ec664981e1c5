"""One key divided into time slices gives what one worker finds, in the same order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from tests.hosts.functions_for_workers import dearer
from tests.hosts.workers import found_by_one_and_by_two
from tests.searching import share

from cepheid import Pattern, Skip
from cepheid.events.time import microseconds

FIRST = datetime(2026, 3, 2, tzinfo=UTC)
A = Pattern.begin("a").where("kind = 'a'")
B = A.followed_by("b").where("kind = 'b'")
PATTERNS = {
    "sequence": B,
    "any": A.followed_by_any("b").where("kind = 'b'"),
    "across": A.followed_by_any("b").where("n > a.n"),
    "strict": A.next("b").where("kind = 'b'"),
    "absent": A.not_followed_by("b").where("kind = 'b'"),
    "absent between": A.not_followed_by("b").where("kind = 'b'").followed_by("c").where("kind = 'c'"),
    "not next": A.not_next("b").where("kind = 'b'"),
    "loop": A.followed_by("b").where("kind = 'b'").one_or_more().followed_by("c").where("kind = 'c'"),
    "combinations": A.followed_by("b").where("n > 0").times(1, 3).allow_combinations(),
    "greedy": A.followed_by("b").where("n > 0").one_or_more().greedy().followed_by("c").where("n > 1"),
    "longest": A.next("b").where("n > 0").one_or_more().consecutive().longest(),
    "relaxed longest": A.followed_by("b").where("n > avg(a.n)").one_or_more().longest(),
    "until": A.followed_by("b").where("n > 0").one_or_more().until("kind = 'c'"),
    "optional": A.optional().followed_by("b").where("kind = 'b'").optional().followed_by("c").where("kind = 'c'"),
    "gaps": A.followed_by_any("b").where("n >= a.n").one_or_more().max_gap("2 seconds"),
    "without": A.begin_without("before", where="n = a.n", within="2 seconds").followed_by("b").where("kind = 'b'"),
    "without any": A.begin_without("before", where="kind = 'b'", within="3 seconds").followed_by("b"),
    "function": A.followed_by("b").where(dearer),
    "group": Pattern.begin(B).times(1, 2).followed_by("c").where("kind = 'c'"),
}
WITHIN = st.sampled_from(["1 second", "3 seconds", "7 seconds"])
SKIPS = {
    "": Skip(),
    "next": Skip.to_next(),
    "past last": Skip.past_last_event(),
    "first": Skip.to_first("b"),
    "last": Skip.to_last("b"),
}
OUTPUTS = st.sampled_from([None, ("matches", "timeouts", "no_match"), ("timeouts",), ("matches", "no_match")])


@st.composite
def tables(draw: st.DrawFn, keys: str = "p") -> pa.Table:
    """Events of a few instants, so that several of them have the same time, and some the same contents."""
    size = draw(st.integers(0, 16))
    row = st.tuples(st.sampled_from(keys), st.integers(0, 12), st.sampled_from("aabbcx"), st.integers(0, 2))
    rows = draw(st.lists(row, min_size=size, max_size=size))
    names = ("key", "at", "kind", "n")
    return pa.table(
        {
            "key": pa.array([row[0] for row in rows], pa.string()),
            "at": pa.array([FIRST + timedelta(seconds=row[1] / 2) for row in rows], pa.timestamp("us", "UTC")),
            "kind": pa.array([row[2] for row in rows], pa.string()),
            "n": pa.array([row[3] for row in rows], pa.int64()),
        }
    ).select(names)


@share(6)
@pytest.mark.parametrize("name", PATTERNS)
@given(data=st.data(), events=tables(), within=WITHIN, outputs=OUTPUTS, skip=st.sampled_from([*SKIPS]))
def test_equal_to_one_worker(  # noqa: PLR0917
    name: str, data: st.DataObject, events: pa.Table, within: str, outputs: tuple[str, ...] | None, skip: str
) -> None:
    """Rows, their order and all counts are the same, with ties, with as_of, and with the outputs of partial matches
    that ended without a match.
    """
    until, least = data.draw(st.none() | st.integers(0, 9)), data.draw(st.integers(1, 4))
    time = None if until is None else microseconds(FIRST + timedelta(seconds=until))
    (one, counted), (two, also) = found_by_one_and_by_two(
        events,
        PATTERNS[name].within(within).skip(SKIPS[skip]),
        key="key",
        time="at",
        outputs=outputs,
        least=least,
        until=time,
    )
    note(f"one {one[0].to_pylist()}\ntwo {two[0].to_pylist()}")
    assert two == one
    assert also == counted
