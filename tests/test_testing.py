"""assert_matches passes if the matches are the expected ones; if not, its message shows what to look at."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cepheid import Pattern, PatternError, SchemaError, Skip
from cepheid.testing import MOST_MATCHES, MOST_ROWS, assert_matches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = [{"id": n, "time": 60 * n, "letter": letter, "note": "…"} for n, letter in enumerate("axbbc")]
A = Pattern.begin("a", name="a_then_b").where("letter = 'a'")
LOOP = A.followed_by("b").where("letter = 'b'").one_or_more()
BOTH = [{"a": 0, "b": 2}, {"a": 0, "b": [2, 3]}]


def failure(expected: list[dict[str, Any]], rows: Any = ROWS, pattern: Pattern = LOOP, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_matches(pattern, rows, expected, **options)
    return str(caught.value)


def refusal(expected: Any = BOTH, rows: Any = ROWS, pattern: Pattern = LOOP, **options: Any) -> list[str]:
    with pytest.raises(SchemaError) as caught:
        assert_matches(pattern, rows, expected, **options)
    return str(caught.value).splitlines()


def test_matches_in_any_order() -> None:
    """The order of the matches does not count by default; a single id is short for a list with it."""
    assert_matches(LOOP, ROWS, BOTH)
    assert_matches(LOOP, ROWS, [{"a": [0], "b": (2, 3)}, {"a": 0, "b": [2]}])
    assert_matches(LOOP, ROWS, BOTH, in_order=True)


def test_no_matches() -> None:
    """The absence of any match can be asserted, too."""
    assert_matches(A.next("b").where("letter = 'b'"), ROWS, [])


def test_absent_stages() -> None:
    """A stage that took no event is omitted, None, or an empty list; a NOT stage never takes one."""
    maybe = A.next("b").where("letter = 'b'").optional().not_next("n").where("letter = 'b'").next("x")
    assert_matches(A.next("b").where("letter = 'b'").optional(), ROWS, [{"a": 0}])
    assert_matches(A.next("b").where("letter = 'b'").optional(), ROWS, [{"a": 0, "b": None}])
    with pytest.raises(PatternError, match="not_next cannot follow the optional"):
        assert_matches(maybe, ROWS, [])
    absent = A.not_followed_by("n").where("letter = 'z'").followed_by("c").where("letter = 'c'")
    assert_matches(absent, ROWS, [{"a": 0, "c": 4}])


def test_groups() -> None:
    """Stages within a group are named like other stages."""
    pair = Pattern.begin("b").where("letter = 'b'").next("c").where("letter = 'c'")
    assert_matches(A.followed_by_any(pair).times(1, 2), ROWS, [{"a": 0, "b": 3, "c": 4}])


def test_the_message_of_a_failure() -> None:
    """The message has the matches that differ, the events with the stages that took them, and the pattern."""
    assert failure([{"a": 0, "b": [2, 3]}, {"a": 0, "b": 3}]) == (
        "the matches are not those expected: 1 missing, 1 unexpected, 1 as expected\n"
        "\n"
        "  missing 1      {'a': 0, 'b': [3]}\n"
        "  unexpected 1   {'a': 0, 'b': [2]}\n"
        "  as expected 1  {'a': 0, 'b': [2, 3]}\n"
        "  missing 1 → unexpected 1: b -3, b +2\n"
        "\n"
        "  id  time  letter  missing 1  unexpected 1  as expected 1\n"
        "  --  ----  ------  ---------  ------------  -------------\n"
        "  0   0     a       a          a             a\n"
        "  1   60    x\n"
        "  2   120   b                  b             b\n"
        "  3   180   b       b                        b\n"
        "  4   240   c\n"
        "\n"
        "Pattern a_then_b\n"
        "\n"
        "  1. a: begins with\n"
        "     where letter = 'a'\n"
        "  2. b: followed by the next that matches, 1 event or more\n"
        "     where letter = 'b'\n"
        "\n"
        "Within: no limit\n"
        "Skip strategy: no_skip"
    )


def test_nothing_found() -> None:
    """If all expected matches are missing, the message says so and still shows the events."""
    lines = failure([{"a": 0}], pattern=A.where("letter = 'z'")).splitlines()
    assert lines[:3] == [
        "the matches are not those expected: 1 missing, 0 unexpected, 0 as expected",
        "",
        "  missing 1  {'a': 0}",
    ]
    assert lines[4] == "  id  time  letter  missing 1"


def test_a_match_counts_as_often_as_it_is_expected() -> None:
    """A match that is found once and expected twice is reported as missing."""
    assert failure([*BOTH, BOTH[0]]).splitlines()[:3] == [
        "the matches are not those expected: 1 missing, 0 unexpected, 2 as expected",
        "",
        "  missing 1      {'a': 0, 'b': [2]}",
    ]


def test_differences() -> None:
    """Each missing match is listed with the most similar unexpected one and the differences between them."""
    any_two = Pattern.begin("b").where("letter = 'b'").followed_by_any("c")
    lines = failure([{"b": 2, "c": 4}, {"b": 3, "c": 4}, {"b": 1}], pattern=any_two.optional()).splitlines()
    assert lines[0] == "the matches are not those expected: 1 missing, 3 unexpected, 2 as expected"
    assert not [line for line in lines if "→" in line]
    lines = failure([{"b": 3, "c": 3}, {"b": 2, "c": 0}, {"b": 2, "c": 3}], pattern=any_two).splitlines()
    assert [line for line in lines if "→" in line] == [
        "  missing 1 → unexpected 2: c -3, c +4",
        "  missing 2 → unexpected 1: c -0, c +4",
    ]


def test_timeouts() -> None:
    """If timeouts are given, they must equal those of the pattern; a failure lists both matches and timeouts."""
    soon = A.followed_by("b").where("letter = 'b'").times(2).followed_by("z").where("letter = 'z'").within("4 minutes")
    assert_matches(soon, ROWS, [], timeouts=[{"a": 0, "b": [2, 3]}])
    assert_matches(soon, ROWS, [], as_of=239, timeouts=[])
    assert_matches(LOOP, ROWS, BOTH, timeouts=[])
    lines = failure([{"a": 0}], pattern=soon, timeouts=[{"a": 0, "b": 2}])
    assert lines.startswith(
        "the matches are not those expected: 1 missing, 0 unexpected, 0 as expected\n"
        "\n"
        "  missing 1  {'a': 0}\n"
        "\n"
        "the timeouts are not those expected: 1 missing, 1 unexpected, 0 as expected\n"
        "\n"
        "  timeout missing 1     {'a': 0, 'b': [2]}\n"
        "  timeout unexpected 1  {'a': 0, 'b': [2, 3]}\n"
        "  missing 1 → unexpected 1: b +3\n"
        "\n"
        "  id  time  letter  missing 1  timeout missing 1  timeout unexpected 1\n"
    )
    assert failure([{"a": 0}], pattern=soon, timeouts=[{"a": 0, "b": [2, 3]}]).count("not those expected") == 1


def test_no_events() -> None:
    """Without events nothing matches; the columns are then known only if the events are an empty table."""
    assert_matches(LOOP, [], [])
    assert_matches(LOOP, [], [], key="k", timeouts=[])
    with pytest.raises(PatternError, match="no stage named 'z'"):
        assert_matches(A.skip(Skip.to_last("z")), [], [])
    table = pa.table({"id": pa.array([], pa.int64()), "time": pa.array([], pa.timestamp("us")), "n": pa.nulls(0)})
    with pytest.raises(PatternError, match="no column named 'letter'"):
        assert_matches(LOOP, table, [])


def test_order() -> None:
    """With `in_order`, the order within each key counts; the order of the keys does not, as hosts differ in it."""
    rows = [{**row, "time": row["time"], "id": f"{key}{row['id']}", "key": key} for key in "qp" for row in ROWS]
    wanted = [{stage: _of(key, its) for stage, its in match.items()} for key in "qp" for match in BOTH]
    assert_matches(LOOP, rows, wanted, key="key", in_order=True)
    assert_matches(LOOP, rows, [*wanted[2:], *wanted[:2]], key=["key"], in_order=True)
    assert failure([wanted[1], wanted[0], *wanted[2:]], rows, key="key", in_order=True).splitlines()[:6] == [
        "the matches are those expected, in another order",
        "",
        "  expected 1  {'a': 'q0', 'b': ['q2', 'q3']}",
        "  expected 2  {'a': 'q0', 'b': ['q2']}",
        "  expected 3  {'a': 'p0', 'b': ['p2']}",
        "  expected 4  {'a': 'p0', 'b': ['p2', 'p3']}",
    ]


def _of(key: str, ids: Any) -> Any:
    return [f"{key}{n}" for n in ids] if isinstance(ids, list) else f"{key}{ids}"


def test_long_output_is_shortened() -> None:
    """Long output is shortened: the first matches, the first events that these took, and the beginning of wide
    values.
    """
    rows = [{"id": n, "time": n, "letter": "a" if n % 2 else "z" * 50} for n in range(MOST_ROWS + 10)]
    lines = failure([], rows, A).splitlines()
    assert lines[0] == f"the matches are not those expected: 0 missing, {len(rows) // 2} unexpected, 0 as expected"
    assert lines[MOST_MATCHES + 2] == f"  unexpected: {len(rows) // 2 - MOST_MATCHES} more"
    assert f"  these are {MOST_MATCHES} of {len(rows)} events" in lines
    assert f"  0   0     {'z' * 31}…" in failure([], rows[:2], A).splitlines()


def test_columns_that_are_shown() -> None:
    """The table of events shows the columns that the test names and those that the conditions use."""
    pattern = Pattern.begin("a").where("x = 1 OR Y = 2").one_or_more().until("z = 1")
    row = {"n": 1, "at": None, "k": None, "s": 3, "x": 1, "y": 2, "z": 0, "other": 0}
    options = {"key": "k", "time": "at", "sequence": "s", "ids": "n"}
    rows = [{**row, "at": datetime(2026, 3, 2, tzinfo=UTC), "k": "p"}]
    lines = failure([], rows, pattern, **options).splitlines()
    assert lines[4] == "  n  k  at                         s  x  y  z  unexpected 1"
    assert lines[6] == "  1  p  2026-03-02 00:00:00+00:00  3  1  2  0  a"


@pytest.mark.parametrize("seconds", [int, float])
def test_times_as_numbers(seconds: type) -> None:
    """Numbers as times in rows are seconds since 1970 UTC; so is as_of."""
    rows = [{**row, "time": seconds(row["time"])} for row in ROWS]
    assert_matches(LOOP.within("3 minutes"), rows, [{"a": 0, "b": 2}])
    assert_matches(LOOP, rows, [{"a": 0, "b": 2}], as_of=seconds(120))
    assert_matches(LOOP, rows, [{"a": 0, "b": 2}], as_of="1970-01-01 00:02:59")
    assert_matches(A.within("1 hour"), [{"id": 1, "time": 0.25, "letter": "a"}], [{"a": 1}], as_of=0.25)
    assert "  0   0.0   a" in failure([], [{**ROWS[0], "time": 0.0}], A)


def test_processing_order() -> None:
    """Without a time column, rows count in their order, or in that of several columns."""
    rows = [{"id": n, "letter": letter} for n, letter in enumerate("axbbc")]
    assert_matches(LOOP, rows, BOTH, time=None)
    assert "  id  letter  missing 1  as" in failure([*BOTH, {"a": 0}], rows, time=None)
    ordered = [{**row, "m": -row["id"], "n": 0} for row in rows]
    assert "  id  n  m   letter  missing 1\n" in failure([{"a": 0}], ordered, time=None, sequence=["n", "m"])


def test_naive_times() -> None:
    """Times without a zone are read as detect reads them."""
    rows = [{"id": 1, "time": datetime(2026, 7, 1, 12)}]  # noqa: DTZ001
    early = Pattern.begin("a").where("hour(cast(time AS TIMESTAMP)) = 12")
    assert_matches(early, rows, [{"a": 1}], time_zone="Europe/Berlin")


def test_columns_that_rows_leave_out() -> None:
    """A column that a row omits is NULL there."""
    rows = [{"id": 1, "time": 0}, {"id": 2, "time": 1, "price": 5}]
    assert_matches(Pattern.begin("a").where("price IS NULL").next("b").where("price = 5"), rows, [{"a": 1, "b": 2}])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.Table.from_pylist])
def test_tables(make: Any) -> None:
    """The events may be any table that detect accepts."""
    rows = [{**row, "time": datetime.fromtimestamp(row["time"], UTC)} for row in ROWS]
    assert_matches(LOOP, make(rows), BOTH)
    assert "  0   1970-01-01 00:00:00+00:00  a       a          a             a\n" in failure([{"a": 0}], make(rows))


@pytest.mark.spark
def test_spark(spark: SparkSession) -> None:
    """A Spark DataFrame is matched by Spark, with the same failure message."""
    rows = [{**row, "time": datetime.fromtimestamp(row["time"], UTC)} for row in ROWS]
    frame = spark.createDataFrame(rows, "id INT, time TIMESTAMP, letter STRING").repartition(1)
    with pytest.warns(match="no key"):
        assert_matches(LOOP, frame, BOTH, in_order=True)
    assert failure([BOTH[0]], frame.withColumn("k", frame.id * 0), key="k").splitlines()[2:4] == [
        "  unexpected 1   {'a': 0, 'b': [2, 3]}",
        "  as expected 1  {'a': 0, 'b': [2]}",
    ]


REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({"expected": {"a": 0}}, "expected: a list of matches is expected, each as {stage: id}, got {'a': 0}"),
    ({"expected": [3]}, "expected[0]: a mapping of stage to id or ids is expected, got 3"),
    ({"expected": [{}]}, "expected[0]: at least one event is expected, got {}"),
    ({"expected": [BOTH[0], {"a": 7}]}, "expected[1]: no event has the id 7 (stage 'a')"),
    ({"expected": [{"a": [[]]}]}, "expected[0]: no event has the id [] (stage 'a')"),
    ({"expected": [{"aa": 0}]}, "expected[0]: no stage named 'aa' takes events. Did you mean 'a'?"),
    (
        {"expected": [{"n": 0}], "pattern": A.not_next("n").next("c")},
        "expected[0]: no stage named 'n' takes events. Known here: a, c",
    ),
    (
        {"ids": "nr"},
        (
            "ids: there is no column named 'nr'; name the one that identifies the events. "
            "Known here: id, time, letter, note"
        ),
    ),
    ({"ids": "letter"}, "ids: several events have the letter 'b'; each event needs its own"),
    (
        {"rows": [{"time": 0}, {"id": 1}]},
        "ids: None in column 'id' cannot identify an event; use numbers or texts",
    ),
    ({"rows": []}, "expected[0]: no event has the id 0 (stage 'a')"),
    ({"timeouts": 3}, "timeouts: a list of timeouts is expected, each as {stage: id}, got 3"),
    ({"timeouts": [{"b": 9}]}, "timeouts[0]: no event has the id 9 (stage 'b')"),
    ({"rows": [3]}, 'events: rows are mappings, as in {"id": 1, "time": 0}, got 3'),
    (
        {"rows": [{**ROWS[0], "time": "noon"}], "expected": []},
        "time: 'time' is of type STRING; event time is a TIMESTAMP",
    ),
    ({"as_of": "soon"}, "as_of: 'soon' is not a time; write it as '2026-01-31 12:00:00'"),
]


@pytest.mark.parametrize(("given", "message"), REFUSALS)
def test_mistakes_in_a_test(given: dict[str, Any], message: str) -> None:
    """Invalid arguments are not failures of the pattern: the message names them, with the known names."""
    assert refusal(**given)[0].startswith(message)


def test_all_mistakes_at_once() -> None:
    """Every mistake in the expected matches, and every unknown column, has its own line."""
    assert len(refusal([{"b": 9}, {"z": 0}, 3])) == 3
    rows = [{"id": 1, "time": 0, "x": 1, "y": 1}, {"id": 2, "time": datetime.now(UTC), "x": "1", "y": {}}]
    found = [re.match(r"events: column '(\w+)' is no column of one type: ", line) for line in refusal([], rows)]
    assert [match[1] for match in found if match] == ["time", "x", "y"]
    now = datetime.now(UTC)
    rows = [{"id": 1, "time": 0, "x": now}, {"id": 2, "time": 1, "x": now.replace(tzinfo=None)}]
    assert refusal([], rows)[0].startswith("events: column 'x' holds times with a zone and times without one, as ")
    rows = [{"id": 1, "time": 0, "x": now.date()}, {"id": 2, "time": 1, "x": now}]
    assert refusal([], rows)[0].startswith("events: column 'x' holds dates and times: the dates have no time of day")


def test_problems_of_the_pattern_are_reported_as_by_detect() -> None:
    """A wrong pattern is reported with the message of detect."""
    with pytest.raises(PatternError, match="no column named 'lettre'"):
        assert_matches(A.where("lettre = 'b'"), ROWS, [])
    with pytest.raises(PatternError, match="no stage named 'z'"):
        assert_matches(A.skip(Skip.to_last("z")), ROWS, [])
