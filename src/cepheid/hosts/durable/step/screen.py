"""Which deployed patterns the events of a feed may concern, found out for all patterns in one pass.

A query of DuckDB takes a millisecond for each pattern, whatever the number of events. So with a thousand patterns a
feed would take a second, although most events concern few of them. Here the simple parts of conditions decide:
comparisons of a column with a constant, all of which must hold. Patterns that ask for a certain value of a column are
found by that value. A pattern that no event can concern is left out of the step. The others evaluate their conditions
exactly, so this may let too many through, but never too few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from operator import eq, ge, gt, le, lt, ne, or_
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.lang.expression import Call, Expression, Literal, Name
from cepheid.plan.condition_bits import WORD
from cepheid.plan.plan_set import LiftedFor, Words

Rows: TypeAlias = npt.NDArray[np.int64]


class Comparison(NamedTuple):
    """A comparison that must hold: of a column with one of some values, or by an operator with a single one."""

    column: str
    operator: str
    values: tuple[Any, ...]


Comparisons: TypeAlias = tuple[Comparison, ...]

_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def comparisons_of(plan: LiftedFor, relevant: Words) -> tuple[Comparisons, ...] | None:
    """For each condition of which an event must meet one to matter, comparisons that must hold; None if any event may
    matter. `relevant` has the bits of these conditions.
    """
    bits = [bit for number, bit in enumerate(plan.bits) if relevant[number // WORD] >> number % WORD & 1]
    conditions = tuple(tuple(_comparisons(bit.expression, plan.schema.columns)) for bit in bits)
    return conditions if all(conditions) else None


def only_comparisons(plan: LiftedFor) -> tuple[Comparisons, ...] | None:
    """For each bit, the comparisons of which it consists; None if they are not all that is to be computed."""
    if plan.values or len(plan.bits) > WORD:
        return None
    conditions = tuple(tuple(_comparisons(bit.expression, plan.schema.columns)) for bit in plan.bits)
    asked = (_parts(bit.expression) for bit in plan.bits)
    whole = all(len(comparisons) == parts for comparisons, parts in zip(conditions, asked, strict=True))
    return conditions if whole else None


def cells_of(events: pa.Table) -> Cells:
    """The values of all of the events."""
    return Cells(_Columns(events), None)


def masks_of(
    conditions: Sequence[Comparisons], relevant: int | None, cells: Cells
) -> tuple[Rows | None, npt.NDArray[np.uint64]]:
    """The events with at least one of the relevant bits (None: all events), and their masks, by what
    `only_comparisons` has returned.
    """
    passing = [_passing(cells, comparisons) for comparisons in conditions]
    rows = None
    if relevant is not None:
        chosen = [one for bit, one in enumerate(passing) if relevant >> bit & 1]
        rows = np.flatnonzero(reduce(or_, chosen, np.zeros(len(cells), np.bool_)))
        passing = [one[rows] for one in passing]
    mask = np.zeros(len(cells) if rows is None else len(rows), np.uint64)
    for bit, one in enumerate(passing):
        mask |= one * np.uint64(1 << bit)
    return rows, mask


def _parts(expression: Expression) -> int:
    """The number of conditions that are joined by AND."""
    match expression:
        case Call(function="and", args=args):
            return sum(map(_parts, args))
    return 1


def _comparisons(expression: Expression, columns: pa.Schema) -> Iterator[Comparison]:
    match expression:
        case Call(function="and", args=args):
            for arg in args:
                yield from _comparisons(arg, columns)
        case Call(function=operator, args=(Name() as name, Literal() as constant)) if operator in _OPERATORS:
            yield from _comparison(name, operator, (constant,), columns)
        case Call(function=operator, args=(Literal() as constant, Name() as name)) if operator in _OPERATORS:
            yield from _comparison(name, _TURNED[operator], (constant,), columns)
        case Call(function="in", args=(Name() as name, *constants)):
            literals = tuple(one for one in constants if isinstance(one, Literal))
            if len(literals) == len(constants):
                yield from _comparison(name, "=", literals, columns)


def _comparison(name: Name, operator: str, constants: tuple[Literal, ...], columns: pa.Schema) -> Iterator[Comparison]:
    """The comparison, if the column and the constants have types that compare here as in SQL."""
    places = [i for i, field in enumerate(columns) if field.name.lower() == name.parts[0].lower()]
    if len(name.parts) > 1 or len(places) != 1:
        return
    field = columns.field(places[0])
    kinds = {type(constant.value) for constant in constants}
    if pa.types.is_floating(field.type) and field.type != pa.float64():
        return
    if pa.types.is_integer(field.type) and kinds == {int}:
        values = tuple(constant.value for constant in constants)
    elif field.type == pa.float64() and kinds <= {int, float, Decimal}:
        values = tuple(float(constant.value) for constant in constants)  # type: ignore[arg-type]
    elif field.type == pa.string() and kinds == {str} and operator == "=":
        values = tuple(constant.value for constant in constants)
    else:
        return
    yield Comparison(field.name, operator, values)


class Screen:
    """The comparisons of several patterns over the same events."""

    def __init__(self, patterns: Sequence[tuple[Comparisons, ...] | None]) -> None:
        """None: the pattern is always concerned."""
        self._always = {number for number, conditions in enumerate(patterns) if conditions is None}
        self._by_value: dict[str, dict[Any, list[tuple[int, Comparisons]]]] = {}
        """By column and value, the patterns that ask for the value and what else they ask for."""
        self._others: list[tuple[int, Comparisons]] = []
        for number, conditions in enumerate(patterns):
            for comparisons in conditions or ():
                self._add(number, comparisons)

    def _add(self, number: int, comparisons: Comparisons) -> None:
        asked = next((one for one in comparisons if one.operator == "="), None)
        if asked is None:
            self._others.append((number, comparisons))
            return
        rest = tuple(one for one in comparisons if one is not asked)
        for value in asked.values:
            self._by_value.setdefault(asked.column, {}).setdefault(value, []).append((number, rest))

    def concerned(self, events: pa.Table) -> set[int]:
        """The numbers of the patterns that one of the events may concern."""
        found, columns = set(self._always), _Columns(events)
        for column, asked in self._by_value.items():
            for value, rows in columns.places(column, asked):
                values = Cells(columns, rows)
                found.update(number for number, rest in asked[value] if number not in found and _passes(values, rest))
        everywhere = Cells(columns, None)
        found.update(
            number for number, comparisons in self._others if number not in found and _passes(everywhere, comparisons)
        )
        return found


class _Columns:
    """The columns of a feed as arrays."""

    def __init__(self, events: pa.Table) -> None:
        self._events = events
        self._known: dict[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]] = {}

    def __len__(self) -> int:
        return int(self._events.num_rows)

    def array(self, name: str) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
        """The values, and which of them are NULL; None if none is."""
        if name not in self._known:
            column = self._events.column(name)
            missing = column.is_null().to_numpy() if column.null_count else None
            if pa.types.is_string(column.type):
                values = np.asarray(column.to_pylist(), object)
            else:
                values = (column if missing is None else pc.fill_null(column, 0)).to_numpy()
            self._known[name] = values, missing
        return self._known[name]

    def places(self, name: str, asked: Mapping[Any, object]) -> Iterator[tuple[Any, Rows]]:
        """The values of the column that are asked for, each with the rows that have it."""
        encoded = self._events.column(name).combine_chunks().dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        order = np.argsort(codes, kind="stable")
        values = encoded.dictionary.to_pylist()
        bounds = np.searchsorted(codes[order], np.arange(len(values) + 1)).tolist()
        for code, value in enumerate(values):
            if value in asked:
                yield value, order[bounds[code] : bounds[code + 1]]


class Cells:
    """The values of some rows; None: of all."""

    def __init__(self, columns: _Columns, rows: Rows | None) -> None:
        self._columns = columns
        self._rows = rows
        self._known: dict[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]] = {}
        self._passing: dict[Comparison, npt.NDArray[np.bool_]] = {}

    def __len__(self) -> int:
        return len(self._columns) if self._rows is None else len(self._rows)

    def passing(self, one: Comparison) -> npt.NDArray[np.bool_]:
        """Which of the rows pass the comparison. Many patterns may ask for it."""
        if one not in self._passing:
            self._passing[one] = self._compared(one)
        return self._passing[one]

    def _compared(self, one: Comparison) -> npt.NDArray[np.bool_]:
        values, missing = self.of(one.column)
        compare = _OPERATORS[one.operator]
        passed = compare(values, one.values[0])
        for value in one.values[1:]:
            passed = passed | compare(values, value)
        if values.dtype.kind == "f" and one.operator in (">", ">="):
            passed = passed | np.isnan(values)  # the greatest number in SQL
        if missing is not None:
            passed = passed & ~missing
        return np.asarray(passed, np.bool_)

    def of(self, name: str) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
        if name not in self._known:
            values, missing = self._columns.array(name)
            if self._rows is not None:
                values, missing = values[self._rows], None if missing is None else missing[self._rows]
            self._known[name] = values, missing
        return self._known[name]


def _passes(cells: Cells, comparisons: Comparisons) -> bool:
    """Whether one of the rows passes all of the comparisons."""
    return not comparisons or bool(_passing(cells, comparisons).any())


def _passing(cells: Cells, comparisons: Comparisons) -> npt.NDArray[np.bool_]:
    """Which of the rows pass all of the comparisons; there is at least one comparison."""
    passing = cells.passing(comparisons[0])
    for one in comparisons[1:]:
        passing = passing & cells.passing(one)
    return passing
