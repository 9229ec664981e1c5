"""Events with literals of all types, and filters over them, for tests of semantic filters as SQL."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

from cepheid.knowledge.events.mapping import EventMapping
from cepheid.knowledge.knowledge import Knowledge

MOST = 2**63 - 1
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "long": (pa.int64(), st.sampled_from([0, 1, -1, 2, 3, -5, 7, 10**10, MOST, -MOST - 1, MOST - 1, 3_037_000_500])),
    "big": (pa.int64(), st.integers(-MOST - 1, MOST)),
    "int": (pa.int32(), st.sampled_from([0, 1, -1, 2, 3, -5, 7, 2**31 - 1, -(2**31)])),
    "decimal": (
        pa.decimal128(12, 2),
        st.sampled_from([*map(Decimal, ("0", "1", "-1.5", "2.25", "9999999999.99", "3", "0.1"))]),
    ),
    "double": (
        pa.float64(),
        st.sampled_from([0.0, -0.0, 1.0, 0.1, -1.5, 3.0, 1e308, -1e308, math.inf, -math.inf, math.nan, 5e-324]),
    ),
    "float": (pa.float32(), st.sampled_from([0.0, 1.0, 0.5, -1.5, math.inf, math.nan])),
    "text": (
        pa.string(),
        st.one_of(
            st.sampled_from(["", "abc", "ABC", "aK", "a\u212a", "i", "\u0130", "a\n"]),
            st.text("abCk\u00e9\U0001f600 %'\\.", max_size=4),
        ),
    ),
    "flag": (pa.bool_(), st.booleans()),
    "zoned": (
        pa.timestamp("us", "UTC"),
        st.sampled_from(
            [
                *(datetime(2026, 3, 29, hour, 30, tzinfo=UTC) for hour in range(4)),
                datetime(1, 1, 1, tzinfo=UTC),
                datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
                datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
            ]
        ),
    ),
    "local": (
        pa.timestamp("us"),
        st.sampled_from(
            [*map(datetime.fromisoformat, ("2026-03-29T01:30:00", "2026-03-29T02:30:00.000001", "0001-01-01"))]
        ),
    ),
    "day": (pa.date32(), st.sampled_from([date(2026, 3, day) for day in (28, 29, 30)])),
    "length": (
        pa.duration("us"),
        st.sampled_from([timedelta(0), timedelta(hours=1), timedelta(days=-2, microseconds=1), timedelta(days=3)]),
    ),
}
"""By name: a type, and values."""
COMPARISONS = ["equal", "notEqual", "lessThan", "lessThanOrEqual", "greaterThan", "greaterThanOrEqual"]


class Subject(NamedTuple):
    """Columns, constants and built-ins that may go together."""

    columns: list[str]
    constants: list[str]
    computed: dict[str, tuple[int, int]]
    """Each with the least and the greatest number of its arguments after the first."""
    tested: list[str] = COMPARISONS


SUBJECTS = [
    Subject(
        ["long", "big", "int", "decimal", "double", "float"],
        [
            *("0", "1", "-1", "3", "10000000000", "9223372036854775807", "9223372036854775808", "-9223372036854775809"),
            *("0.1", "1.5", "-2.25", "3.0", "1e0", "0.1e0", "1e308", "-1.5e0", '"NaN"^^xsd:double'),
            *('"x"^^xsd:integer', '"7"^^xsd:unsignedByte'),
        ],
        {
            **dict.fromkeys(("add", "multiply"), (1, 3)),
            **dict.fromkeys(("subtract", "divide", "integerDivide", "mod"), (2, 2)),
            **dict.fromkeys(("unaryPlus", "unaryMinus", "abs", "floor", "ceiling", "round"), (1, 1)),
        },
    ),
    Subject(
        ["text", "flag"],
        ['""', '"a"', '"abc"', '"k"', '"I"', '"."', '"\u00e9"', "true", "false", "3"],
        {"stringConcat": (1, 3), "stringLength": (1, 1), "booleanNot": (1, 1)},
        [*COMPARISONS, "startsWith", "endsWith", "contains", "stringEqualIgnoreCase", "containsIgnoreCase"],
    ),
    Subject(
        ["zoned", "local", "day", "length"],
        [
            *('"2026-03-29T01:30:00Z"^^xsd:dateTime', '"2026-03-29T03:30:00+02:00"^^xsd:dateTime'),
            *('"2026-03-29T01:30:00"^^xsd:dateTime', '"2026-03-29"^^xsd:date', '"2026-03-29Z"^^xsd:date'),
            *('"PT1H"^^xsd:dayTimeDuration', '"-P1DT0.5S"^^xsd:dayTimeDuration', '"P1Y"^^xsd:yearMonthDuration'),
            '"12:00:00"^^xsd:time',
        ],
        {
            **dict.fromkeys(("addDayTimeDurationToDateTime", "subtractDayTimeDurationFromDateTime"), (2, 2)),
            "subtractDateTimesYieldingDayTimeDuration": (2, 2),
        },
    ),
]
ANYTHING = Subject(
    [name for one in SUBJECTS for name in one.columns],
    [name for one in SUBJECTS for name in one.constants],
    {name: count for one in SUBJECTS for name, count in one.computed.items()},
    SUBJECTS[1].tested,
)
NAME = "http://shop.example/"
KNOWN = Knowledge.read(
    f"@prefix : <{NAME}> . @prefix owl: <http://www.w3.org/2002/07/owl#> . "
    + " ".join(f":{name} a owl:DatatypeProperty ." for name in COLUMNS)
    + " :Event a owl:Class .",
    prefixes={"": NAME},
)
MAPPING = EventMapping(f"{NAME}event/{{number}}", properties={name: name for name in COLUMNS})


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    count = draw(st.integers(1, 6))
    columns = {
        name: pa.array(draw(st.lists(st.none() | values, min_size=count, max_size=count)), type_)
        for name, (type_, values) in COLUMNS.items()
    }
    return pa.table({"number": pa.array(range(count), pa.int64()), **columns})


@st.composite
def filters(draw: st.DrawFn) -> tuple[list[str], str]:
    """The columns that it reads, as variables of the same name, and built-ins over them."""
    subject = draw(st.sampled_from([*SUBJECTS, *SUBJECTS, ANYTHING]))
    names = draw(st.lists(st.sampled_from(subject.columns), min_size=1, max_size=2, unique=True))
    terms = st.sampled_from([*(f"?{name}" for name in (*names, *names)), draw(st.sampled_from(subject.constants))])
    parts = list[str]()
    for number in range(draw(st.integers(0, 2))):
        name = draw(st.sampled_from([*subject.computed]))
        least, most = subject.computed[name]
        parts.append(f"{name}(?r{number}, {', '.join(draw(st.lists(terms, min_size=least, max_size=most)))})")
        terms = st.one_of(st.just(f"?r{number}"), terms)
    return names, " ∧ ".join([*parts, f"{draw(st.sampled_from(subject.tested))}({draw(terms)}, {draw(terms)})"])
