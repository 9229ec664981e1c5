"""The arrays of a plan that depend on the order in which the events of a match are looked up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.compile.intervals.checks import placed_checks
from cepheid.compile.intervals.tables import CHECK, INDEX, LOOKUP, NARROWING, NarrowedBound
from cepheid.plan.conditions.script import Operation, Operator, StageValue
from cepheid.plan.conditions.types import is_string
from cepheid.plan.intervals.bounds import Bounds, bounds_of
from cepheid.plan.intervals.constants import FREE
from cepheid.plan.intervals.plan import IntervalPlan, JoinScript

Orders: TypeAlias = Sequence[Sequence[int]]
Index: TypeAlias = tuple[int, int]
"""A variable, and the lifted column by whose values its events are found."""
_Lookup: TypeAlias = tuple[Index, Index]
"""The index to search, and the column with the value to search for."""


def join_tables(plan: IntervalPlan, orders: Orders, *, orders_texts: bool) -> dict[str, npt.NDArray[Any]]:
    """The fields of IntervalTables that depend on the orders. If scripts order texts, the codes of texts change, and no
    event is found by them.
    """
    bounds = bounds_of(plan.pattern)
    steps = [(order, there) for order in orders for there in range(len(order))]
    checks = [check for order in orders for check in placed_checks(plan, order, bounds)]
    narrowings = [[*_narrowings(bounds, order, there)] if there else [] for order, there in steps]
    equalities, *negated = ([*_equalities(one, texts=not orders_texts)] for one in (plan.scripts, *plan.negated))
    lookups = [_lookup(equalities, order[there], order[:there]) for order, there in steps]
    lookups += [_lookup(own, number, range(plan.positives)) for number, own in enumerate(negated, plan.positives)]
    # Those of events of the match do not depend on the orders, which may change while events are stored.
    indexes = sorted({own for own, _ in equalities} | {found[0] for found in lookups if found is not None})
    return {
        "order": np.array(orders, np.int64),
        "checks": np.array([row for level in checks for row in level], CHECK),
        "check_at": np.cumsum([0, *map(len, checks)]).astype(np.int64),
        "narrowings": np.array([row for rows in narrowings for row in rows], NARROWING),
        "narrow_at": np.cumsum([0, *map(len, narrowings)]).astype(np.int64),
        "lookups": np.array([_as_row(found, indexes) for found in lookups], LOOKUP),
        "indexes": np.array([(*index, _is_double(plan, index)) for index in indexes], INDEX),
    }


def _narrowings(bounds: Bounds, order: Sequence[int], there: int) -> Iterator[tuple[int, int, int]]:
    """How the events that are there bound the next one. A bound that follows from another one is left out."""
    bound = [2 * v + end for v in order[:there] for end in (0, 1)]
    for end, (least, greatest) in enumerate(
        (
            (NarrowedBound.LEAST_START, NarrowedBound.GREATEST_START),
            (NarrowedBound.LEAST_END, NarrowedBound.GREATEST_END),
        )
    ):
        own = 2 * order[there] + end
        for endpoint in _strongest(bound, bounds[:, own], bounds):
            yield endpoint, least, -int(bounds[endpoint, own])
        for endpoint in _strongest(bound, bounds[own, :], bounds.T):
            yield endpoint, greatest, int(bounds[own, endpoint])


def _strongest(endpoints: Sequence[int], own: npt.NDArray[np.int64], bounds: Bounds) -> list[int]:
    """The endpoints that bound the event by `own`, without those whose bound follows from that of another one, as
    bounds[endpoint, other] is the most by which the other one is before it.
    """
    found = [endpoint for endpoint in endpoints if own[endpoint] < FREE]
    for endpoint in tuple(found):
        others = (other for other in found if other != endpoint and bounds[endpoint, other] < FREE)
        if any(bounds[endpoint, other] + own[other] <= own[endpoint] for other in others):
            found.remove(endpoint)
    return found


def _equalities(scripts: Sequence[JoinScript], *, texts: bool) -> Iterator[_Lookup]:
    """The equalities of a column of one variable with a column of another one, both ways round: one for each pair of
    variables.
    """
    pairs = set[frozenset[int]]()
    for one in scripts:
        if not isinstance(one.script, Operation) or one.script.operator is not Operator.EQUAL:
            continue
        left, right = one.script.operands
        if not (isinstance(left, StageValue) and isinstance(right, StageValue)) or (is_string(left.type) and not texts):
            continue
        if left.type == right.type and len(one.variables) > 1 and one.variables not in pairs:
            pairs.add(one.variables)
            sides = (left.stage, left.column), (right.stage, right.column)
            yield from (sides, sides[::-1])


def _lookup(equalities: Sequence[_Lookup], next_: int, there: Sequence[int]) -> _Lookup | None:
    """An equality of a column of the next variable with a column of a variable that is there."""
    found = (one for one in equalities if one[0][0] == next_ and one[1][0] in there)
    return next(found, None)


def _as_row(found: _Lookup | None, indexes: Sequence[Index]) -> tuple[int, int, int]:
    return (-1, 0, 0) if found is None else (indexes.index(found[0]), *found[1])


def _is_double(plan: IntervalPlan, index: Index) -> bool:
    return bool(pa.types.is_floating(plan.values[index[1]].type))
