"""Subtypes and parameters give the same matches in process and on Spark, which evaluates the user's own text."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from cepheid import Pattern, detect, pattern_from_text
from cepheid.events.batch import Schema
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.plan.stages.build import build_plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime(2026, 3, 2, tzinfo=UTC)
TYPES = ["card", "transfer", "refund", "payment", None, "it's \\ ${x}", "card", "refund"]
EVENTS = pa.table(
    {
        "kind of event": TYPES,
        "key": ["k"] * len(TYPES),
        "amount": [10.0, 200.0, 30.0, 40.0, 5.0, 60.0, 700.0, 80.0],
        "who": ["a", "it's", "it's", "${spark.app.name}", "b", "a' OR TRUE --", "100%", "a\\b"],
        "day": [date(2026, 3, n) for n in range(1, 9)],
        "n": pa.array(range(8), pa.int32()),
        "at": pa.array([START + timedelta(minutes=n) for n in range(8)], pa.timestamp("us", "UTC")),
    }
)
KINDS = {"card": "payment", "transfer": ["payment"], "refund": [], "it's \\ ${x}": "refund"}
REFUNDED = (
    Pattern.begin("paid")
    .subtype("payment")
    .where("amount>$least")
    .or_where("n = $n")
    .followed_by("back")
    .where("amount < paid.amount*$share+$minus")
    .subtype("refund")
    .taxonomy("kind of event", KINDS)
    .with_parameters(least=100, share=0.5, minus=-1, n=0)
)


def found(matches: Any) -> list[tuple[Any, ...]]:
    arrow = matches if isinstance(matches, pa.Table) else matches.toArrow()
    return sorted(tuple(value for name, value in row.items() if name != "match_id") for row in arrow.to_pylist())


def test_in_process() -> None:
    """A type stands for all types below it, and parameters for their values, in conditions and measures."""
    matches = detect(EVENTS, REFUNDED, time="at", measures={"p": "paid.n", "b": "back.n", "m": "back.n * $minus"})
    assert [row[-3:] for row in found(matches)] == [(1, 2, -2), (6, 7, -7)]


WATCHED = (
    Pattern.begin("one")
    .where("who IN ($watch)")
    .followed_by_any("two")
    .where("n + one.n IN ($sums, 1) AND who NOT IN ($watch, one.who)")
    .with_parameters(watch=EVENTS["who"].slice(0, 3), sums=[4, -5, 9])
)


def test_lists_in_process() -> None:
    """A list stands for its values: in conditions on one event, across events and in measures."""
    watched, sums = {"a", "it's"}, {4, -5, 9, 1}
    rows = EVENTS.to_pylist()
    pairs = [(one, two) for i, one in enumerate(rows) for two in rows[i + 1 :]]
    expected = [
        (one["n"], two["n"], two["n"] in sums)
        for one, two in pairs
        if one["who"] in watched and one["n"] + two["n"] in sums and two["who"] not in watched
    ]
    measures = {"p": "one.n", "b": "two.n", "listed": "two.n IN ($sums, 1)"}
    assert sorted(row[-3:] for row in found(detect(EVENTS, WATCHED, time="at", measures=measures))) == sorted(expected)
    assert expected


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("occurrence: (?one:a; ?two:b)[one.n IN ($list) AND two.n + one.n IN ($sums, -1)]", "at"),
        ("interval: EVENT SEQ(a one, b two) WHERE one.n IN ($list) AND two.n + one.n IN ($sums, -1)", ("at", "at")),
    ],
)
def test_lists_in_other_kinds_of_patterns(text: str, time: str | tuple[str, str]) -> None:
    """Patterns of occurrences and of intervals have lists, too."""
    pattern = pattern_from_text(f"taxonomy: {{column: who}}\n{text}")
    for sums, count in (([4], 1), ([3, 5], 0)):
        matches = detect(EVENTS, pattern.with_parameters(list=[0, 7], sums=sums), time=time)
        assert len(matches) == count


def test_types_of_a_dictionary() -> None:
    """Categories of pandas are text like any other."""
    column = EVENTS["kind of event"].combine_chunks().dictionary_encode()
    encoded = EVENTS.set_column(0, "kind of event", column)
    measures = {"p": "paid.n", "b": "back.n", "m": "back.n * $minus"}
    assert found(detect(encoded, REFUNDED, time="at", measures=measures)) == found(
        detect(EVENTS, REFUNDED, time="at", measures=measures)
    )


CONDITIONS: list[tuple[str, dict[str, Any]]] = [
    *((f"who = $who AND n = {n}", {"who": who}) for n, who in enumerate(EVENTS["who"].to_pylist())),
    ("who LIKE '%$%' ESCAPE '/' OR who = '$who' -- $nothing\n OR n = $n", {"n": 3}),
    ("who LIKE $like ESCAPE $escape", {"like": "100|%", "escape": "|"}),
    ("who LIKE $like", {"like": "a\\\\%"}),
    ("n-$n > 0 AND$yes", {"n": -2147483640, "yes": True}),
    ("day BETWEEN $first AND $last", {"first": date(2026, 3, 2), "last": date(2026, 3, 3)}),
    ("who IN ($who) AND n NOT IN ($n, 7)", {"who": ["it's", "${spark.app.name}"], "n": [-1, 1]}),
    ("day IN ($days, DATE '2026-03-04')", {"days": [date(2026, 3, 2)]}),
    ("at >= $since", {"since": START + timedelta(minutes=6)}),
    ("at < $until", {"until": datetime(2026, 3, 2, 0, 2)}),  # noqa: DTZ001 in the session's zone
    ("n = cast($x AS INT) AND amount > $x::DOUBLE", {"x": Decimal("4.00")}),
    ("n * $big > 10000000000", {"big": 2147483648}),
    ("cast(n AS DOUBLE) * $tenth = 0.30000000000000004D", {"tenth": 0.1}),
]


@pytest.mark.spark
def test_matches_on_spark(spark: SparkSession) -> None:
    """Both hosts find the same."""
    measures = {"p": "paid.n", "b": "back.n", "m": "back.n * $minus", "s": "$share"}
    expected = found(detect(EVENTS, REFUNDED, key="key", time="at", measures=measures))
    assert len(expected) == 2
    events = spark.createDataFrame(EVENTS)
    assert found(detect(events, REFUNDED, key="key", time="at", measures=measures)) == expected
    measures = {"p": "one.n", "b": "two.n", "listed": "two.n IN ($sums, 1)"}
    assert found(detect(events, WATCHED, key="key", time="at", measures=measures)) == found(
        detect(EVENTS, WATCHED, key="key", time="at", measures=measures)
    )


@pytest.mark.spark
def test_values_on_spark(spark: SparkSession) -> None:
    """Each value is the same literal on Spark as in process, whatever characters a text has: the same events match."""
    from cepheid.hosts.spark.engine import expression

    engine = DuckDbEngine()
    schema = Schema(EVENTS.schema, (), "at")
    bits = []
    for text, values in CONDITIONS:
        (bit,) = build_plan(Pattern.begin("one").where(text).with_parameters(**values), schema, engine).bits
        bits.append(bit)
    columns = [f"{expression(bit.sql)} AS c{number}" for number, bit in enumerate(bits)]
    on_spark = spark.createDataFrame(EVENTS).coalesce(1).selectExpr(*columns).toArrow()
    for bit, here, there in zip(bits, engine.evaluate(EVENTS, values=bits).values, on_spark.columns, strict=True):
        assert here.to_pylist() == there.to_pylist(), bit.sql
        assert any(here.to_pylist()), bit.sql
