"""Values that all events of an occurrence have in common divide the events without a changed row; what forbids it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.hosts.test_sub_keys import shipped
from tests.hosts.test_tiers import CHOSEN, _columns, _one_batch, _order, _ranks, _sub_keys, _value, found, rows
from tests.hosts.tiered_patterns import tied_events
from tests.searching import share

from cepheid import Limits, OccurrencePattern
from cepheid.events.batch import Schema
from cepheid.families.occurrences import Occurrences
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.lang.occurrences.expression import Occurrence, event
from cepheid.plan.occurrences.plans import OccurrencePlans
from cepheid.plan.occurrences.sub_keys import sub_keys_of, sub_keys_of_occurrences, sub_keys_text
from cepheid.plan.pattern_request import PatternRequest, PlanOptions
from cepheid.plan.tiers import Side
from cepheid.plan.undivided import Undivided

FAMILY = Occurrences()
SCHEMA = pa.schema({"kind": pa.string(), "at": pa.timestamp("us"), "x": pa.int64(), "s": pa.string(), "n": pa.int64()})


def plans_of(*patterns: OccurrencePattern, events: pa.Schema = SCHEMA, **options: Any) -> OccurrencePlans:
    requests = [PatternRequest(one.named(f"p{number}").taxonomy("kind")) for number, one in enumerate(patterns)]
    schema = Schema(events, (), "at", ())
    plans = FAMILY.build(requests, schema, DuckDbEngine(), PlanOptions(named=len(patterns) > 1, **options))
    assert isinstance(plans, OccurrencePlans)
    return plans


# The same occurrences


@st.composite
def expressions(draw: st.DrawFn) -> Occurrence:
    """Expressions of up to four events, most of them with an equality at each operator."""
    column, names = draw(st.sampled_from(["x", "x", "s", "y"])), iter(["v1", "v2", "v3", "v4"])
    made, _ = _expression(draw, draw(st.integers(2, 4)), column, names)
    return made


def _expression(draw: st.DrawFn, leaves: int, column: str, names: Any) -> tuple[Occurrence, list[str]]:
    """An expression, and its variables that are events."""
    if leaves == 1:
        name = next(names)
        return event(draw(st.sampled_from("ABC"))).named(name), [name]
    first = draw(st.integers(1, leaves - 1))
    (left, of_left), (right, of_right) = (_expression(draw, n, column, names) for n in (first, leaves - first))
    tie = f"{draw(st.sampled_from(of_left))}.{column} = {draw(st.sampled_from(of_right))}.{column}"
    if draw(st.integers(0, 9)) == 0:
        tie = tie.replace("=", "<=")
    if draw(st.integers(0, 3)) == 0:
        tie += f" AND {of_left[0]}.n < {of_right[-1]}.n"
    join: Callable[[Occurrence, Occurrence], Occurrence] = draw(
        st.sampled_from([lambda a, b: a >> b, lambda a, b: a >> b, lambda a, b: a & b, lambda a, b: a | b])
    )
    if draw(st.integers(0, 3)) == 0:
        return (left.minus_if(right, tie) if draw(st.integers(0, 2)) else left - right), of_left
    made = join(left, right)
    if draw(st.integers(0, 5)):
        made = made if made == (left | right) else made.where(tie)
    return (made.within("20 seconds") if draw(st.integers(0, 3)) == 0 else made), of_left + of_right


def divided(plans: OccurrencePlans, sides: tuple[Side, ...], batch: pa.RecordBatch, size: int) -> list[str]:
    """The rows of a matcher that takes the events by these values."""
    values = [_value(batch, side) for side in sides]
    whole = pa.table({**_columns(batch), **_sub_keys(values)})
    order = _order(values, _ranks(batch))
    in_order = _one_batch(whole.take(pa.array(order, pa.int64())))
    return rows(found(FAMILY.finite(FAMILY.compile(plans), None), in_order, size))


@share(50)
@given(
    expression=expressions(),
    seed=st.integers(0, 1 << 32),
    count=st.integers(1, 16),
    size=st.sampled_from([3, 1000]),
    few=st.booleans(),
)
def test_sub_keys_change_no_row(expression: Occurrence, seed: int, count: int, size: int, *, few: bool) -> None:
    """Random expressions and events: where there are sub-keys, the rows are those of the whole key, ids included."""
    events = tied_events(seed, count)
    options = {"columns": CHOSEN} if few else {}
    plans = plans_of(OccurrencePattern.of(expression), events=events.schema, **options)
    sides = sub_keys_of_occurrences(plans)
    assume(not isinstance(sides, Undivided))
    assert isinstance(sides, tuple)
    batch = shipped(plans, events, FAMILY)
    assert divided(plans, sides, batch, size) == divided(plans, (), batch, size)


# Which patterns have them


def by_value(text: str, policy: str = "unrestricted", **options: Any) -> str:
    return sub_keys_text(plans_of(OccurrencePattern.of(text).policy(policy), **options).only)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("(?a:A; ?b:B)[a.x = b.x]", "x"),
        ("((?a:A & ?b:B)[a.x = b.x]; ?c:C)[c.x = a.x AND c.n > b.n]", "x"),
        ("(?a:A; ?b:B; ?c:C)[a.x = b.x AND c.x = b.x]", "x"),
        ("(?a:A; ?b:B)[a.x = b.x AND a.s = b.s]", "x and s"),
        ("(?e:(A | B); ?c:C)[e.x = c.x]", "x"),
        ("(?a:A; ?b:B)[a.x = b.x] | C", "x"),
        ("(?a:A; ?b:B)[a.x = b.x]_1h -[c.x = a.x] ?c:C", "x"),
        ("(?a:A; ?b:B)[a.x = b.x] -[c.x = a.x] (?c:C; ?d:A)[c.x = d.x]", "x"),
        ("((?a:A -[c.x = a.x] ?c:C); ?b:B)[a.x = b.x]", "x"),
    ],
)
def test_equalities_of_all_events_extend_the_key(text: str, values: str) -> None:
    """Equalities may lead from one event to the next in any order; an alternative of one event needs none."""
    text_ = f"by {values}: Spark does so in any case, because all events of an occurrence have the same value"
    assert by_value(text) == text_


NO_EQUALITY = "no condition equates the same column of two of its events"
NOT_ALL = "the equality of x is not one of all of its events"
OF_MINUS = " or of those that a minus looks at"
MINUS = f"{NOT_ALL}{OF_MINUS}"
TWO = f"the equality of x and n is not one of all of its events{OF_MINUS}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("A; B", NO_EQUALITY),
        ("?a:A", NO_EQUALITY),
        ("(?a:A; ?b:B)[a.x = b.n]", NO_EQUALITY),
        ("(?a:A; ?b:B)[a.x = b.x OR a.n > 1]", NO_EQUALITY),
        ("(?a:A; ?b:B)[a.x <=> b.x]", NO_EQUALITY),
        ("(?a:A; ?b:B; C)[a.x = b.x]", NOT_ALL),
        ("(((?a:A; ?b:B) | ?c:C); ?d:A)[a.x = b.x AND c.x = d.x]", NOT_ALL),
        ("(?a:A; ?b:B)[a.x = b.x] - C", MINUS),
        (
            "(?a:A; ?b:B)[a.x = b.x] -[c.n = a.n] ?c:C",
            TWO,
        ),
        ("(?a:A; ?b:B)[a.x = b.x] -[c.x = a.x] (?c:C; ?d:A)", MINUS),
        ("(?a:A; ?b:B)[a.x = b.x] -[c.x = d.x] (?c:C; ?d:A)", MINUS),
        ("(?a:A; ?b:B)[a.x = b.x AND a.n / b.n > 1]", "the condition (a.x = b.x AND a.n / b.n > 1) can fail, also on"),
        ("((?a:A; ?b:B)[a.x = b.x] + 1h; ?c:C)[c.x = a.x]", "plus makes temporal events, which have no value"),
    ],
)
def test_what_forbids_sub_keys(text: str, reason: str) -> None:
    """The reason names the clause."""
    assert by_value(text).startswith(f"by a value: cannot, because {reason}")


@pytest.mark.parametrize("policy", ["recent", "snoop_recent", "chronicle", "continuous", "cumulative"])
@pytest.mark.filterwarnings("ignore")
def test_policies_forbid_them(policy: str) -> None:
    """A policy that chooses sees all occurrences of a key. The contexts have no conditions, so no equality either."""
    text = "(?a:A; ?b:B)[a.x = b.x]" if policy == "recent" else "A; B"
    assert by_value(text, policy).startswith(
        f"by a value: cannot, because policy {policy!r} chooses among all occurrences of a key"
    )


def test_options_forbid_them() -> None:
    """Limits count the occurrences of a key; a value that is not in the identity of events is no sub-key."""
    text = "(?a:A; ?b:B)[a.x = b.x]"
    for limits in (Limits(max_partial_matches=9), Limits(on_limit="drop")):
        reason = "limits count the occurrences of a key"
        assert by_value(text, limits=limits) == f"by a value: cannot, because {reason}"
    known_by = "x is not among the columns that identify an event: choose it with columns="
    assert by_value(text, columns=["n"]) == f"by a value: cannot, because {known_by}"


def test_several_patterns_need_a_common_value() -> None:
    """The common column has its number among the columns of all patterns."""
    one, other = (OccurrencePattern.of(f"(?a:A; ?b:B)[{tie}]") for tie in ("a.x = b.x", "a.s = b.s AND a.x = b.x"))
    assert sub_keys_of_occurrences(plans_of(one, other)) == (Side(0, pa.int64()),)
    alone = OccurrencePattern.of("(?a:A; ?b:B)[a.s = b.s]")
    assert sub_keys_of_occurrences(plans_of(one, alone)) == Undivided(("the patterns have no equality in common",))
    assert sub_keys_of(plans_of(alone).only) == (Side(0, pa.string()),)


def test_all_ways_are_explained() -> None:
    """One line a way, for each why it fits or why not."""
    plans = plans_of(OccurrencePattern.of("(?a:A; ?b:B)[a.x = b.x]"))
    other = "cannot, because occurrences are divided by key and by value only"
    assert FAMILY.explain(plans.only.pattern, plans.only).text.endswith(
        "Dividing one key by x: Spark does so in any case, because all events of an occurrence have the same value\n"
        f"Dividing one key by start: {other}\n"
        f"Dividing one key by time: {other}\n"
    )
