"""How an event finds the partial matches that it can change, as `explain` says it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cepheid.compile.stages.compiled import CompiledPattern, compile_plan
from cepheid.compile.stages.representation import lookups_text
from cepheid.events.batch import Schema
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.stages.build import build_plan

COLUMNS = {"kind": pa.int64(), "x": pa.int64(), "y": pa.int64(), "s": pa.string(), "price": pa.float64()}
SCHEMA = Schema(pa.schema({"at": pa.timestamp("us", "UTC"), **COLUMNS}), (), "at")
A = Pattern.begin("a").where("kind = 0")
B = A.followed_by("b").where("kind = 1 AND x = a.x")
ANY = "all that wait there, as any event can end or change them"
OTHERS = "; other events visit all, as they may meet a condition without the comparison"


def compiled(pattern: Pattern) -> CompiledPattern:
    return compile_plan(build_plan(pattern, SCHEMA, DuckDbEngine(time_zone="UTC")))


@pytest.mark.parametrize(
    ("pattern", "states"),
    [
        (
            A.followed_by_any("b").where("kind = 1 AND x = a.x").followed_by_any("c").where("y = b.y"),
            {"b": "only those with x = a.x", "c": "only those with y = b.y"},
        ),
        (A.followed_by("b").where("x = a.x").where("a.s = s"), {"b": "only those with x = a.x AND a.s = s"}),
        (A.followed_by("b").where("price > a.price * 3"), {"b": "only those with a.(price * 3) < price"}),
        (A.followed_by("b").where("price < a.price AND x = a.x"), {"b": "only those with x = a.x"}),
        (A.next("b").where("x = a.x"), {"b": ANY}),
        (
            A.not_followed_by("n").where("kind = 3 AND x = a.x").followed_by("b").where("x = a.x AND s = a.s"),
            {"b": "only those with x = a.x"},
        ),
        (
            A.not_followed_by("n").where("kind = 3").followed_by("b").where("kind = 1 AND x = a.x"),
            {"b": "only those with x = a.x" + OTHERS},
        ),
        (
            A.not_followed_by("n").where("price > a.price").followed_by("b").where("x = a.x OR y = 1"),
            {"b": "all that wait there, as an event may also meet a condition without the comparison"},
        ),
        (
            B.one_or_more().until("kind = 4"),
            {
                "b": "only those with x = a.x" + OTHERS,
                "b[…]": "only those with x = a.x" + OTHERS,
                "b[…] waiting": "only those with x = a.x" + OTHERS,
            },
        ),
        (
            A.followed_by("b").where("x - a.x < 3 AND x = a.x"),
            {
                "b": "all that wait there, as a part of the condition before the comparison may fail: "
                "write the comparison first"
            },
        ),
        (
            A.followed_by("b").where("x = a.x").followed_by("c").where("s = b.s OR x = 1"),
            {
                "b": "only those with x = a.x",
                "c": "all that wait there, as no condition compares the event with an earlier one by =, < or >",
            },
        ),
        (
            B.times(70),
            dict.fromkeys(("b",), "all that wait there, as the pattern has more than 64 states"),
        ),
    ],
)
def test_lookups_as_text(pattern: Pattern, states: dict[str, str]) -> None:
    """Each state has one line: by which ties partial matches are found, or why all are visited."""
    lines = [f"  In state {name!r} an event visits {what}" for name, what in states.items()]
    assert lookups_text(compiled(pattern)).splitlines() == lines


def test_no_ties() -> None:
    """Nothing is said of patterns that compare no event with an earlier one."""
    assert lookups_text(compiled(A.followed_by("b").where("kind = 1"))) == ""
