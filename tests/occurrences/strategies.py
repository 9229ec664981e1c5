"""Random expressions of the event algebra, as values with texts and as tables of operators; and random events."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from cepheid.kernel.reference_events import Event
from cepheid.lang.occurrences.expression import Bound, Occurrence, event
from cepheid.lang.occurrences.pattern import OccurrencePattern
from cepheid.plan.conditions.script import Operation, StageValue
from cepheid.plan.conditions.script import Operator as Sign
from cepheid.plan.occurrences.constants import Kind
from cepheid.plan.occurrences.plan import Operator

# Expressions as users write them

type_names = st.sampled_from(["Login", "A", "Größe", "a b", "x`y", "_1", "T=?"])
conditions = st.sampled_from(
    ["a.n = b.n", "a.`x]` = ']'", 'x[0] = "[" OR TRUE', "start(a) < end(b) + INTERVAL '1' DAY", "n > 1"]
)
lengths = st.sampled_from([0, 1, 999, 1_000, 90_000_000, 3_600_000_000, 7 * 86_400_000_000]).map(
    lambda count: timedelta(microseconds=count)
)


def _extended(inner: st.SearchStrategy[Occurrence]) -> st.SearchStrategy[Occurrence]:
    def bound(of: Occurrence, name: str) -> Occurrence:
        return of if isinstance(of, Bound) else of.named(name)

    return st.one_of(
        st.builds(lambda a, b: a >> b, inner, inner),
        st.builds(lambda a, b: a & b, inner, inner),
        st.builds(lambda a, b: a | b, inner, inner),
        st.builds(lambda a, b: a - b, inner, inner),
        st.builds(lambda a, b, f: a.minus_if(b, f), inner, inner, conditions),
        st.builds(lambda a, length: a.within(length), inner, lengths),
        st.builds(lambda a, length: a.plus(length), inner, lengths),
        st.builds(lambda a, f: a.where(f), inner, conditions),
        st.builds(bound, inner, st.sampled_from(["a", "b", "é1", "_x"])),
    )


written = st.recursive(type_names.map(event), _extended, max_leaves=8)


@st.composite
def patterns(draw: st.DrawFn) -> OccurrencePattern:
    pattern = OccurrencePattern.of(draw(written))
    for name in draw(st.lists(type_names, max_size=2, unique=True)):
        variable = draw(st.none() | st.just("p"))
        pattern = pattern.restrict(name, draw(type_names), draw(conditions), variable=variable)
    return pattern


# Tables of operators, and events

TYPES = 3
events_of_key = st.lists(
    st.tuples(st.integers(0, 9), st.integers(1, (1 << TYPES) - 1), st.integers(0, 2)), max_size=9
).map(lambda rows: [Event(i, t, mask, (n, t)) for i, (t, mask, n) in enumerate(sorted(rows))])
"""A few events, many of them at one time; value 0 is a small number, value 1 the time."""

TIME_VALUE = 1


class Growing:
    """A growing table of operators. Equal operators are stored as one row, as in a plan."""

    def __init__(self) -> None:
        self.rows: list[Operator] = []
        self.bound: dict[int, list[int]] = {}
        """For each row, the variables that are visible outside of it."""
        self.variables = 0

    def add(self, operator: Operator, variables: list[int]) -> int:
        if operator not in self.rows:
            self.rows.append(operator)
            self.bound[len(self.rows) - 1] = variables
        return self.rows.index(operator)


@st.composite
def tables(draw: st.DrawFn, *, conditions: bool = False, contexts: bool = False) -> list[Operator]:
    """Operators, the last of them the root. With `conditions`, there are variables and filters. With `contexts`, only
    operators for which the contexts are defined are used.
    """
    table = Growing()
    free = list(range(TYPES))
    root = _table(draw, table, draw(st.integers(1, 3)), free if contexts else None, conditions=conditions)
    assert root == len(table.rows) - 1 or not contexts
    return [*table.rows, Operator(Kind.WITHIN, root, number=1 << 40)]


def _table(draw: st.DrawFn, table: Growing, depth: int, free: list[int] | None, *, conditions: bool) -> int:
    if free is not None and (depth == 0 or len(free) < 2):
        return table.add(Operator(Kind.LEAF, number=free.pop()), [])
    if depth == 0:
        return _leaf(draw, table, conditions=conditions)
    kinds = [Kind.BOTH, Kind.EITHER, Kind.THEN, Kind.THEN, Kind.WITHIN]
    kinds += [] if free is not None else [Kind.WITHOUT, Kind.WITHOUT, Kind.DELAYED, Kind.LEAF]
    kinds += [Kind.FILTERED, Kind.FILTERED] if conditions else []
    kind = draw(st.sampled_from(kinds))
    if kind is Kind.LEAF:
        return _leaf(draw, table, conditions=conditions)
    if kind in (Kind.WITHIN, Kind.DELAYED, Kind.FILTERED):
        of = _table(draw, table, depth - (kind is not Kind.FILTERED), free, conditions=conditions)
        known = table.bound[of]
        if kind is not Kind.FILTERED:
            return table.add(Operator(kind, of, number=draw(st.integers(0, 5))), known)
        return table.add(Operator(kind, of, script=_script(draw, known)), known) if known else of
    left, right = (_table(draw, table, depth - 1, half, conditions=conditions) for half in _halves(draw, free))
    if set(table.bound[left]) & set(table.bound[right]):
        return left  # a shared row with variables, which would be bound twice
    known = table.bound[left] + table.bound[right]
    if kind is not Kind.WITHOUT:
        return table.add(Operator(kind, left, right), known)
    script = _script(draw, known) if known and draw(st.booleans()) else None
    return table.add(Operator(kind, left, right, script=script), table.bound[left])


def _halves(draw: st.DrawFn, free: list[int] | None) -> tuple[list[int] | None, list[int] | None]:
    if free is None:
        return None, None
    at = draw(st.integers(1, len(free) - 1))
    return free[:at], free[at:]


def _leaf(draw: st.DrawFn, table: Growing, *, conditions: bool) -> int:
    leaf = table.add(Operator(Kind.LEAF, number=draw(st.integers(0, TYPES - 1))), [])
    if not (conditions and draw(st.booleans())):
        return leaf
    table.variables += 1
    return table.add(Operator(Kind.BOUND, leaf, number=table.variables - 1), [table.variables - 1])


def _script(draw: st.DrawFn, known: list[int]) -> Operation:
    """Compares the numbers of two variables."""
    sign = draw(st.sampled_from([Sign.EQUAL, Sign.LESS, Sign.LESS_OR_EQUAL]))
    sides: Any = [StageValue(draw(st.sampled_from(known)), 0, pa.int64()) for _ in range(2)]
    return Operation(sign, tuple(sides), pa.bool_())


# Tables in which windows matter: the operators around an operator decide what it may forget

many_events = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from([1, 1, 2, 2, 4, 3]), st.integers(0, 2)), min_size=8, max_size=30
).map(lambda rows: [Event(i, t, mask, (n, t)) for i, (t, mask, n) in enumerate(sorted(rows))])


@st.composite
def windowed_tables(draw: st.DrawFn) -> list[Operator]:
    """A window within, around or beside a sequence, possibly after a delay; a pair of leaves may be shared."""
    lengths = st.integers(0, 6)
    pair = Operator(draw(st.sampled_from([Kind.BOTH, Kind.THEN])), 0, 1)
    rows = [
        *(Operator(Kind.LEAF, number=number) for number in range(TYPES)),
        pair,
        Operator(Kind.WITHIN, 3, number=draw(lengths)),
    ]
    match draw(st.sampled_from(["inside", "around", "delayed", "shared", "minus"])):
        case "inside":
            rows += [Operator(Kind.THEN, 2, 4)]
        case "around":
            rows += [Operator(Kind.THEN, 2, 4), Operator(Kind.WITHIN, 5, number=draw(lengths) + 2)]
        case "delayed":
            rows += [Operator(Kind.DELAYED, 3, number=draw(lengths)), Operator(Kind.BOTH, 2, 5)]
            rows += [Operator(Kind.WITHIN, 6, number=draw(lengths))]
        case "shared":
            rows += [Operator(Kind.THEN, 3, 2), Operator(Kind.EITHER, 4, 5)]
        case "minus":
            rows += [Operator(Kind.WITHOUT, 3, 2), Operator(Kind.WITHIN, 5, number=draw(lengths))]
    return rows


# Expressions over a shop's types, and rows of it

Row = tuple[int, str, str, int]
"""Second, type, user and price."""
shop_rows: st.SearchStrategy[list[Row]] = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from("ABC"), st.sampled_from("uv"), st.integers(0, 2)), max_size=14
)
_seconds = st.integers(0, 5).map(lambda seconds: timedelta(seconds=seconds))
expressions = st.recursive(
    st.sampled_from("ABC").map(event),
    lambda inner: st.one_of(
        st.builds(lambda a, b: a >> b, inner, inner),
        st.builds(lambda a, b: a >> b, inner, inner),
        st.builds(lambda a, b: a & b, inner, inner),
        st.builds(lambda a, b: a | b, inner, inner),
        st.builds(lambda a, b: a - b, inner, inner),
        st.builds(lambda a, length: a.within(length), inner, _seconds),
        st.builds(lambda a, length: a.plus(length), inner, _seconds),
    ),
    max_leaves=4,
).map(OccurrencePattern.of)


def _named(text: str) -> str:
    """The text with a name for each variable."""
    first, *others = text.split("?:")
    return first + "".join(f"?v{number}:{rest}" for number, rest in enumerate(others))


_parts = st.sampled_from(["?:A", "?:A", "(?:A - B)", "(?:A - C)", "(?:A - (B; C))", "B"])
with_variables = (
    st.recursive(
        st.builds("({} {} {})".format, _parts, st.sampled_from("&&;|"), _parts),
        lambda inner: st.one_of(
            *(st.builds(f"({{}} {sign} {{}})".format, inner, _parts) for sign in ";&|-"),
            st.builds("({})_{}s".format, inner, st.integers(1, 5)),
            st.builds("({} + {}s)".format, inner, st.integers(1, 5)),
        ),
        max_leaves=2,
    )
    .map(_named)
    .map(OccurrencePattern.of)
)
"""Expressions of which an occurrence may come about in several ways, of which minus may take some away."""
few_rows: st.SearchStrategy[list[Row]] = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from("AAABC"), st.just("u"), st.just(0)), min_size=3, max_size=9
)
"""Close to each other, and of one user."""
