"""Random interval patterns and events. There are few types, times and values, so that relations, ties and matches
occur.
"""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
from hypothesis import strategies as st

from cepheid.lang.consistency import Consistency, End
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.intervals.values import (
    COMPARISONS,
    Comparison,
    Counts,
    Endpoint,
    Mode,
    Negation,
    Pair,
    Positive,
    Related,
    Relation,
    Scope,
    Tree,
    Window,
)

VARIABLES = ("a", "b", "c")
TYPES = ("A", "A", "B", "B", "C")
RELATIONS = (*Relation, *[Relation.BEFORE] * 8, *[Relation.OVERLAP, Relation.CONTAIN, Relation.AFTER] * 4)
"""Those that are met often stand there more often."""
SECOND = 1_000_000


def counts() -> st.SearchStrategy[Counts]:
    return st.builds(Counts, *(st.integers(0, 1) for _ in range(5)))


@st.composite
def trees(draw: st.DrawFn, variables: tuple[str, ...]) -> Tree:
    """A tree over the variables, in their order; with counts the right parts are single events."""
    found: Tree = variables[0]
    counted = draw(st.booleans())
    rest = list(variables[1:])
    if not counted and len(rest) == 2 and draw(st.booleans()):
        inner = Related(draw(st.sampled_from(RELATIONS)), rest[0], rest[1])
        return Related(draw(st.sampled_from(RELATIONS)), found, inner)
    for variable in rest:
        numbers = draw(counts()) if counted and draw(st.booleans()) else None
        members = 1 if isinstance(found, str) else 2
        if numbers is not None and sum(vars(numbers).values()) > members:
            numbers = None
        found = Related(draw(st.sampled_from(RELATIONS)), found, variable, numbers)
    return found


def endpoints(variables: tuple[str, ...]) -> st.SearchStrategy[Endpoint]:
    return st.builds(Endpoint, st.sampled_from(variables), st.sampled_from(End))


def comparisons(variables: tuple[str, ...]) -> st.SearchStrategy[Comparison]:
    return st.builds(Comparison, endpoints(variables), st.sampled_from(COMPARISONS), endpoints(variables))


@st.composite
def conditions(draw: st.DrawFn, variables: tuple[str, ...]) -> str:
    left, right = draw(st.sampled_from(variables)), draw(st.sampled_from(variables))
    forms = (
        f"{left}.u = {right}.u",
        f"{left}.u <> {right}.u",
        f"{left}.n <= {right}.n + 1",
        f"{left}.n > 1",
        f"start({left}) - start({right}) < INTERVAL 3 SECONDS",
        f"({left}.n = 2 OR {right}.u = 'x')",
    )
    return draw(st.sampled_from(forms))


def _seldom(draw: st.DrawFn) -> bool:
    """True one time in three: conditions, scopes and orders leave few events over."""
    return draw(st.integers(0, 2)) == 0


@st.composite
def negations(draw: st.DrawFn, variables: tuple[str, ...], name: str) -> Negation:
    type_ = draw(st.sampled_from(TYPES))
    where = draw(conditions((*variables, name))) if _seldom(draw) else None
    scope = None if _seldom(draw) else draw(st.sampled_from(Scope))
    order: list[Comparison] = draw(st.lists(comparisons((*variables, name)), max_size=2)) if _seldom(draw) else []
    if scope is None:
        own = Endpoint(name, draw(st.sampled_from(End)))
        order.append(Comparison(own, draw(st.sampled_from(COMPARISONS)), draw(endpoints(variables))))
        return Negation(name, type_, order=tuple(order), condition=where)
    parts = [draw(st.lists(st.sampled_from(variables), min_size=1, max_size=2, unique=True)) for _ in range(2)]
    if _seldom(draw):  # before the first event, or after the last one
        parts[draw(st.integers(0, 1))] = []
        scope = draw(st.sampled_from([one for one in Scope if one is not Scope.DURING_SPAN]))
    elif {*parts[0]} == {*parts[1]}:  # there is nothing between them
        scope = Scope.DURING_SPAN
    return Negation(name, type_, scope, *map(tuple, parts), tuple(order), where)


def _is_open(negation: Negation) -> bool:
    """Whether the window is one of its borders."""
    return negation.scope is not None and not (negation.left and negation.right)


@st.composite
def patterns(draw: st.DrawFn) -> IntervalPattern:
    """Any pattern of up to three events and two negations; some contradict themselves."""
    variables = VARIABLES[: draw(st.sampled_from([1, 2, 2, 3]))]
    pairs = [draw(st.permutations(variables))[:2]] if len(variables) > 1 and _seldom(draw) else []
    several = st.lists(st.sampled_from(Relation), min_size=5, max_size=12, unique=True)
    found = tuple(draw(negations(variables, name)) for name in ("x", "y")[: draw(st.sampled_from([0, 0, 1, 1, 2]))])
    lengths = st.integers(6, 30).map(lambda n: timedelta(seconds=n))
    window = draw(lengths if any(map(_is_open, found)) else st.none() | lengths)
    return IntervalPattern(
        draw(st.sampled_from([Mode.PAL, Mode.PAL, Mode.SEQ])),
        tuple(Positive(variable, draw(st.sampled_from(TYPES))) for variable in variables),
        tree=draw(trees(variables)) if len(variables) > 1 and _seldom(draw) else None,
        pairs=tuple(Pair(left, tuple(draw(several)), right) for left, right in pairs),
        order=(draw(comparisons(variables)),) if _seldom(draw) else (),
        negations=found,
        condition=draw(conditions(variables)) if _seldom(draw) else None,
        window=window,
        window_of=Window.MATCH if window is None else draw(st.sampled_from(Window)),
        consistency=draw(st.sampled_from(Consistency)),
    )


@st.composite
def forbidding_patterns(draw: st.DrawFn) -> IntervalPattern:
    """Patterns in which little but negations prevents a match and which mostly emit in real time: late arrivals retract
    matches.
    """
    scope = draw(st.sampled_from(Scope))
    parts = [(("a",), ("b",)), (("a",), ("a", "b"))]
    if scope is not Scope.DURING_SPAN:
        parts += [((), ("a",)), (("b",), ())]
    negation = Negation("x", draw(st.sampled_from("ABC")), scope, *draw(st.sampled_from(parts)))
    lengths = st.integers(10, 30).map(lambda n: timedelta(seconds=n))
    return IntervalPattern(
        Mode.PAL,
        (Positive("a", "A"), Positive("b", "B")),
        pairs=(Pair("a", (Relation.BEFORE, Relation.MEET, Relation.OVERLAP), "b"),) if _seldom(draw) else (),
        negations=(negation,),
        window=draw(lengths if _is_open(negation) else st.none() | lengths),
        consistency=draw(st.sampled_from([Consistency.REALTIME, Consistency.REALTIME, Consistency.EARLIEST])),
    )


@st.composite
def tables(draw: st.DrawFn, least: int = 4, most: int = 10) -> pa.Table:
    """Events in the order of their arrival, which is mostly the order of their ends."""
    starts = draw(st.lists(st.integers(0, 20), min_size=least, max_size=most))
    lengths = [draw(st.sampled_from([0, 1, 2, 3, 5, 9])) for _ in starts]
    moved = [draw(st.sampled_from([0, 0, 0, 4, 9])) for _ in starts]
    order = sorted(range(len(starts)), key=lambda i: starts[i] + lengths[i] + moved[i])
    times = pa.timestamp("us", "UTC")
    return pa.table(
        {
            "id": pa.array([f"e{i}" for i in range(len(starts))]),
            "type": pa.array([draw(st.sampled_from(TYPES)) for _ in starts]),
            "start": pa.array([starts[i] * SECOND for i in order], times),
            "end": pa.array([(starts[i] + lengths[i]) * SECOND for i in order], times),
            "u": pa.array([draw(st.sampled_from(["x", "y", None])) for _ in starts], pa.string()),
            "n": pa.array([draw(st.sampled_from([0, 1, 2, None])) for _ in starts], pa.int64()),
        }
    )
