"""Limits: exceeding one is an error that says what to do, or the oldest are dropped and counted."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from cepheid import CepheidWarning, LimitExceeded, Limits, Pattern, Report, SchemaError, Skip, detect
from cepheid.requests.request import MEMORY_CAN_BE_BOUND

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from cepheid.plan.limits import OnLimit

T = datetime(2024, 3, 1, tzinfo=UTC)
OPTIONS: dict[str, Any] = {"key": "k", "time": "at", "sequence": "id", "columns": ["id"]}
PAIRS = Pattern.begin("a").where("x = 'a'").followed_by("b").where("x = 'b'").skip(Skip.no_skip())
ADVICE = "Give the pattern a shorter within, raise the limit, or let it drop the oldest with on_limit='drop'"


def events(letters: str, key: str = "p") -> pa.Table:
    count = len(letters)
    times = pa.array([T + timedelta(seconds=i) for i in range(count)], pa.timestamp("us", "UTC"))
    return pa.table({"id": range(count), "k": [key] * count, "at": times, "x": [*letters]})


def pairs(found: pa.Table) -> list[tuple[int, int]]:
    return [(row["a"]["id"], row["b"]["id"]) for row in found.to_pylist()]


def dropping(**limits: int) -> Limits:
    return Limits(**limits, on_limit="drop")


def test_too_many_partial_matches() -> None:
    """The message names the limit, the event at which the key exceeded it, and what to do."""
    assert pairs(detect(events("aaab"), PAIRS, limits=Limits(max_partial_matches=3), **OPTIONS)) == [
        (0, 3),
        (1, 3),
        (2, 3),
    ]
    with pytest.raises(LimitExceeded) as caught:
        detect(events("aaab"), PAIRS, limits=Limits(max_partial_matches=2), **OPTIONS)
    assert str(caught.value) == (
        "more than 2 partial matches are open for one key (max_partial_matches), that of the event with k = 'p', at = "
        f"2024-03-01 00:00:00 UTC, id = 0. {ADVICE}"
    )


def test_each_key_has_its_limit() -> None:
    """Partial matches of other keys do not count."""
    table = pa.concat_tables([events("aab", key) for key in "pqr"])
    assert len(detect(table, PAIRS, limits=Limits(max_partial_matches=2), **OPTIONS)) == 6


@pytest.mark.parametrize("skip", [Skip.no_skip(), Skip.to_next(), Skip.to_first("b"), Skip.to_last("b")])
def test_the_oldest_partial_matches_are_dropped(skip: Skip) -> None:
    """The partial matches with the earliest start are dropped and counted, whatever the skip strategy."""
    report = Report()
    found = detect(events("aaaab"), PAIRS.skip(skip), limits=dropping(max_partial_matches=2), report=report, **OPTIONS)
    assert pairs(found) == {"no_skip": [(2, 4), (3, 4)], "to_next": [(2, 4), (3, 4)]}.get(skip.to.value, [(2, 4)])
    assert report.counts.dropped_partial_matches == 2


def test_dropped_starts_release_withheld_matches() -> None:
    """A match that is withheld because an earlier start is open is emitted when that start is dropped."""
    report = Report()
    held = Pattern.begin("a").where("x = 'a'").followed_by("b").where("x = 'b' AND id % 2 = a.id % 2")
    held = held.skip(Skip.past_last_event())
    found = detect(events("aaxb"), held, limits=dropping(max_partial_matches=1), report=report, **OPTIONS)
    assert pairs(found) == [(1, 3)]
    assert report.counts.dropped_partial_matches == 1


def test_too_many_matches() -> None:
    """The number of matches that one event completes is bounded; the message names it."""
    limits = Limits(max_matches_per_event=2)
    assert pairs(detect(events("aabb"), PAIRS, limits=limits, **OPTIONS)) == [(0, 2), (1, 2)]
    with pytest.raises(LimitExceeded) as caught:
        detect(events("aaab"), PAIRS, limits=limits, **OPTIONS)
    assert str(caught.value) == (
        "more than 2 matches are completed at once for one key (max_matches_per_event), "
        f"that of the event with k = 'p', at = 2024-03-01 00:00:03 UTC, id = 3. {ADVICE}"
    )


@pytest.mark.parametrize(
    ("skip", "remaining"),
    [
        (Skip.no_skip(), [(2, 4), (3, 4)]),
        (Skip.to_next(), [(2, 4), (3, 4)]),
        (Skip.past_last_event(), [(2, 4)]),
    ],
)
def test_the_oldest_matches_are_dropped(skip: Skip, remaining: list[tuple[int, int]]) -> None:
    """The matches with the earliest start are dropped and counted, before the skip strategy chooses."""
    report = Report()
    limits = dropping(max_matches_per_event=2)
    found = detect(events("aaaab"), PAIRS.skip(skip), limits=limits, report=report, **OPTIONS)
    assert pairs(found) == remaining
    assert report.counts.dropped_matches == 2
    assert report.counts.matches == len(remaining)


def test_matches_of_a_deadline_and_of_the_end() -> None:
    """The limit on the matches of one event also applies to a deadline and to the end of the input."""
    absent = Pattern.begin("a").where("x = 'a'").not_followed_by("b").where("x = 'b'").within("30 seconds")
    table = events("aaa").set_column(2, "at", pa.array([T] * 3, pa.timestamp("us", "UTC")))
    report = Report()
    assert len(detect(table, absent, limits=dropping(max_matches_per_event=1), report=report, **OPTIONS)) == 1
    assert report.counts.dropped_matches == 2
    keys = pa.concat_tables([table.slice(0, 1).set_column(1, "k", pa.array(["o"])), table])
    with pytest.raises(LimitExceeded, match=r"max_matches_per_event.*with at = .* UTC, id = 0, k = 'p'"):
        detect(keys, absent, limits=Limits(max_matches_per_event=2), **{**OPTIONS, "columns": ["id", "k"]})


def test_timeouts_are_not_bounded() -> None:
    """There are at most as many timeouts as open partial matches, so they have no limit."""
    table = events("aaa").set_column(2, "at", pa.array([T] * 3, pa.timestamp("us", "UTC")))
    limits = Limits(max_matches_per_event=1)
    assert len(detect(table, PAIRS.within("5 seconds"), limits=limits, outputs="timeouts", **OPTIONS)) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_partial_matches": 0}, "limits: max_partial_matches is a whole number from 1 to 2**63 - 1, got 0"),
        (
            {"max_partial_matches": 2**63},
            "limits: max_partial_matches is a whole number from 1 to 2**63 - 1, got 9223372036854775808",
        ),
        (
            {"max_matches_per_event": 1.5},
            "limits: max_matches_per_event is a whole number from 1 to 2**63 - 1, got 1.5",
        ),
        (
            {"max_matches_per_event": True},
            "limits: max_matches_per_event is a whole number from 1 to 2**63 - 1, got True",
        ),
        ({"on_limit": "ignore"}, "limits: on_limit is 'raise' or 'drop', got 'ignore'"),
    ],
)
def test_invalid_limits(arguments: dict[str, Any], message: str) -> None:
    """The message names the wrong value and what is expected."""
    with pytest.raises(SchemaError) as caught:
        Limits(**arguments)
    assert str(caught.value) == message


@pytest.mark.parametrize("on_limit", ["raise", "drop"])
def test_the_largest_limits(on_limit: OnLimit) -> None:
    """They are accepted in every form of the matcher."""
    limits = Limits(max_partial_matches=2**63 - 1, max_matches_per_event=2**63 - 1, on_limit=on_limit)
    for condition in ("x = 'b'", "x = 'b' AND id > a.id"):
        pattern = Pattern.begin("a").where("x = 'a'").followed_by("b").where(condition).skip(Skip.no_skip())
        assert len(detect(events("aaab"), pattern, limits=limits, **OPTIONS)) == 3


def test_dropping_is_reported() -> None:
    """Without a report, a warning says what was dropped."""
    message = "dropped, as on_limit is 'drop': 2 partial matches over a limit"
    with pytest.warns(CepheidWarning, match=message):
        detect(events("aaaab"), PAIRS, limits=dropping(max_partial_matches=2), **OPTIONS)


def test_no_limits() -> None:
    """Another value than Limits is refused; all problems are in one message."""
    with pytest.raises(SchemaError) as caught:
        detect(events("ab"), PAIRS, limits=5, **OPTIONS)  # type: ignore[arg-type]
    assert str(caught.value) == ("limits: a value such as Limits(max_partial_matches=100_000) is expected, got 5")
    with pytest.raises(SchemaError) as caught:
        Limits(max_partial_matches=-1, on_limit="x")  # type: ignore[arg-type]
    assert len(str(caught.value).splitlines()) == 2


# On Spark


@pytest.mark.spark
def test_spark_reports_the_limit(spark: SparkSession) -> None:
    """The action fails with Cepheid's message first."""
    from pyspark.errors import PySparkException

    frame = spark.createDataFrame(events("aaab"))
    with pytest.raises(PySparkException) as caught:
        detect(frame, PAIRS, limits=Limits(max_partial_matches=2), **OPTIONS).collect()
    which = "that of the event with k = 'p', at = 2024-03-01 00:00:00 UTC, id = 0. "
    message = f"more than 2 partial matches are open for one key (max_partial_matches), {which}"
    assert str(caught.value).startswith(f"[USER_RAISED_EXCEPTION] {message}{ADVICE}")


@pytest.mark.spark
def test_spark_drops_and_counts(spark: SparkSession) -> None:
    """Spark drops and counts the same partial matches and matches as in process."""
    here, there = Report(), Report()
    options = {**OPTIONS, "limits": dropping(max_partial_matches=2, max_matches_per_event=1)}
    expected = pairs(detect(events("aaaab"), PAIRS, report=here, **options))
    found = detect(spark.createDataFrame(events("aaaab")), PAIRS, report=there, **options)
    assert pairs(found.toArrow()) == expected == [(3, 4)]
    assert there.counts == here.counts
    assert (here.counts.dropped_partial_matches, here.counts.dropped_matches) == (2, 1)


_TOO_MUCH = """
import pyarrow as pa
from cepheid import LimitExceeded, Pattern, detect, why
from cepheid.hosts.worker_memory import bound_memory

events = pa.table({"at": pa.array(range(4000), pa.int64()).cast(pa.timestamp("us")), "text": ["x" * 200] * 4000})
many = pa.table({"at": pa.array(range(4_000_000), pa.int64()).cast(pa.timestamp("us"))})
pattern = Pattern.begin("a").followed_by_any("b").within("2 microseconds")
detect(events.slice(0, 10), pattern, time="at")
why(events.slice(0, 10), pattern, time="at").near_misses  # loads compiled functions, which may not fail later
found = why(many, pattern, time="at")
bound_memory(MEMORY)
try:
    CALL
except LimitExceeded as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("call", "memory"),
    [
        ("detect(events, Pattern.begin('a').followed_by_any('b'), time='at')", 300_000_000),
        ("why(pa.concat_tables([many] * 3), pattern, time='at')", 30_000_000),
        ("found.near_misses", 30_000_000),
    ],
)
@pytest.mark.skipif(not MEMORY_CAN_BE_BOUND, reason="memory can be bounded on Linux")
def test_what_does_not_fit_into_memory(call: str, memory: int) -> None:
    """Where an allocation fails, the error says how to need less memory."""
    code = _TOO_MUCH.replace("CALL", call).replace("MEMORY", str(memory))
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("this process cannot allocate the memory for what is found. "), done.stderr
