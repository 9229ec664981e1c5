"""Why events do not meet a condition: its values, and how far these are from meeting it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.errors import ConditionError
from cepheid.kernel.arrays import Flags
from cepheid.kernel.scripts.columns import Column, Rows, evaluated_for, is_constant
from cepheid.kernel.scripts.reference import evaluate
from cepheid.output.conditions import EQUALITIES, Evaluated, Operand, value_text
from cepheid.output.stages.near.reasons import Floats
from cepheid.output.values import given_value
from cepheid.plan.stages.near.probes import Probe, Side

NOT_MET = "it is not met"
"""The reason where there is no value to show."""


class Unmet(NamedTuple):
    """Why events do not meet a condition. Row by row: (unmet,)."""

    text: pa.Array
    off_by: Floats
    far: Floats
    is_null: Flags

    def take(self, rows: Ints) -> Unmet:
        """The reasons in these rows."""
        return Unmet(self.text.take(pa.array(rows)), self.off_by[rows], self.far[rows], self.is_null[rows])


def unmet_of(evaluations: Iterable[Evaluated | None]) -> Unmet:
    """The reasons of conditions that were evaluated one by one; None: it cannot be evaluated on its own."""
    each = [*evaluations]
    texts = ["" if one is None else one.values_text for one in each]
    return Unmet(
        pa.array([text or NOT_MET for text in texts], pa.string()),
        np.array([None if one is None else one.distance for one in each], np.float64),
        np.array([0.5 if one is None else one.relative_distance for one in each], np.float64),
        np.array([one is not None and one.result is None for one in each], np.bool_),
    )


def both(one: Unmet, other: Unmet) -> Unmet:
    """The rows of the one, then those of the other."""
    return Unmet(
        pa.concat_arrays([one.text, other.text]),
        np.concatenate([one.off_by, other.off_by]),
        np.concatenate([one.far, other.far]),
        np.concatenate([one.is_null, other.is_null]),
    )


class _Values(NamedTuple):
    """The values of one side of a condition, for many rows."""

    side: Side
    column: Column | None
    """None: it is a constant."""
    constant: Any
    rows: int

    @property
    def given(self) -> list[Any]:
        """The values as `given_value` has them."""
        if self.column is None:
            return [self.constant] * self.rows
        return [given_value(value, self.side.script.type) for value in self.column.to_list()]

    @property
    def numbers(self) -> Floats | None:
        """The values as doubles, NaN for NULL; None if they are no numbers."""
        if self.column is None:
            is_number = isinstance(self.constant, int | float | Decimal) and not isinstance(self.constant, bool)
            return np.full(self.rows, float(self.constant)) if is_number else None
        type_ = self.side.script.type
        if not (pa.types.is_integer(type_) or pa.types.is_floating(type_)):
            return None
        return self.column.value.astype(np.float64)

    @property
    def present(self) -> Flags:
        return np.full(self.rows, self.constant is not None) if self.column is None else self.column.present

    def take(self, rows: Ints) -> _Values:
        column = None if self.column is None else self.column.take(rows)
        return self._replace(column=column, rows=len(rows))


class Evaluation(NamedTuple):
    """A probe that was evaluated for many rows at once."""

    probe: Probe
    result: Column
    values: tuple[_Values, ...]

    @property
    def sure(self) -> Flags:
        """Whether `evaluated` gives the same for a row, for sure."""
        columns = [self.result, *(one.column for one in self.values if one.column is not None)]
        sure: Flags = np.logical_and.reduce([one.sure for one in columns])
        return sure

    def take(self, rows: Ints) -> Evaluation:
        """The evaluation for these rows."""
        return Evaluation(self.probe, self.result.take(rows), tuple(one.take(rows) for one in self.values))

    @property
    def texts(self) -> list[str]:
        """The values of each row in words."""
        shown = [
            [value_text(one.side.text, value) for value in one.given] for one in self.values if not one.side.is_constant
        ]
        return [", ".join(row) for row in zip(*shown, strict=True)] if shown else [""] * len(self.result.present)

    @property
    def unmet(self) -> Unmet:
        """The reasons of all rows. No row meets the condition."""
        numbers = [found for one in self.values if (found := one.numbers) is not None]
        if self.probe.operator is None or len(numbers) < len(self.values):
            return unmet_of(self._each)
        known = np.logical_and.reduce([one.present for one in self.values])
        with np.errstate(all="ignore"):
            gap = _gap(numbers)
            far = _relative(gap, numbers)
        if self.probe.operator in EQUALITIES:
            far = np.full(len(gap), 0.5)
        text = pa.array([text or NOT_MET for text in self.texts], pa.string())
        return Unmet(text, np.where(known, gap, np.nan), np.where(known, far, 0.5), ~self.result.present)

    @property
    def _each(self) -> Iterator[Evaluated]:
        """The evaluation of each row."""
        sides, probe = [one.side for one in self.values], self.probe
        rows = zip(*(one.given for one in self.values), strict=True) if sides else repeat(())
        for result, row in zip(self.result.to_list(), rows, strict=bool(sides)):
            operands = (Operand(side.text, value, side.is_constant) for side, value in zip(sides, row, strict=True))
            yield Evaluated(probe.text, result, tuple(operands), probe.operator, probe.zone)


def evaluation(probe: Probe, rows: Rows) -> Evaluation | None:
    """The probe for many rows at once; None if it has to be evaluated row by row."""
    result = None if probe.script is None else evaluated_for(probe.script, rows)
    values = [_values(side, rows) for side in probe.sides]
    known = tuple(one for one in values if one is not None)
    return None if result is None or len(known) < len(values) else Evaluation(probe, result, known)


def _values(side: Side, rows: Rows) -> _Values | None:
    if is_constant(side.script):
        try:
            constant = given_value(evaluate(side.script, (), ()), side.script.type)
        except ConditionError:
            return None
        return _Values(side, None, constant, len(rows))
    column = evaluated_for(side.script, rows)
    return None if column is None else _Values(side, column, None, len(rows))


def _gap(numbers: Sequence[Floats]) -> Floats:
    """As `Evaluated.distance`; NaN as Python's `max` has it."""
    gap = numbers[1] - numbers[0]
    for other in (numbers[0] - numbers[-1], 0.0):
        gap = np.where(other > gap, other, gap)
    return gap


def _relative(gap: Floats, numbers: Sequence[Floats]) -> Floats:
    """As `Evaluated.relative_distance`."""
    largest = np.abs(numbers[0])
    for other in numbers[1:]:
        largest = np.where(np.abs(other) > largest, np.abs(other), largest)
    part = gap / largest
    return np.where(largest == 0, 0.0, np.where(part < 1.0, part, 1.0))
