"""Scripts as programs for the kernel's interpreter: a stack machine with typed instructions, so that there are no types
at run time.

Every value is 64 bits wide: an integer (also a boolean, date, time, scaled decimal or string code) or a double. The
instruction knows which. What a script reads from a partial match's past is stored in slots: positions of events (the
first, the last, the k-th last, the one with the least or greatest value), counts and sums. Taking an event updates the
slots, so that reading one costs O(1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from cepheid.compile.decision import Test, decision_of, tests_of
from cepheid.compile.instructions import OPERANDS, TRUE, UNTRUE, Op, SlotKind
from cepheid.lang.expression import Constant
from cepheid.plan.conditions.script import (
    Aggregate,
    ConstantValue,
    CurrentValue,
    Fold,
    Operation,
    Operator,
    Script,
    StageValue,
    can_fail,
    evaluation_order,
    integer_range,
)
from cepheid.plan.conditions.types import is_string


@dataclass(frozen=True)
class Slot:
    """One slot. `column` -1 counts events. LAST and FIRST with `back` above 0 read the slot with `back` - 1."""

    kind: SlotKind
    stage: int
    column: int = -1
    back: int = 0


Instruction: TypeAlias = tuple[int, int, int]

_INTEGER_OPS = {
    Operator.ADD: Op.ADD_I,
    Operator.SUBTRACT: Op.SUBTRACT_I,
    Operator.MULTIPLY: Op.MULTIPLY_I,
    Operator.INTEGER_DIVIDE: Op.INTEGER_DIVIDE,
    Operator.REMAINDER: Op.REMAINDER_I,
    Operator.NEGATE: Op.NEGATE_I,
    Operator.ABS: Op.ABS_I,
}
_DOUBLE_OPS = {
    Operator.ADD: Op.ADD_F,
    Operator.SUBTRACT: Op.SUBTRACT_F,
    Operator.MULTIPLY: Op.MULTIPLY_F,
    Operator.DIVIDE: Op.DIVIDE_F,
    Operator.REMAINDER: Op.REMAINDER_F,
    Operator.NEGATE: Op.NEGATE_F,
    Operator.ABS: Op.ABS_F,
    Operator.SQRT: Op.SQRT_F,
    Operator.EXP: Op.EXP_F,
    Operator.LN: Op.LN_F,
    Operator.LOG10: Op.LOG10_F,
    Operator.POWER: Op.POWER_F,
}
_COMPARISONS = {
    Operator.EQUAL: (Op.EQUAL_I, Op.EQUAL_F),
    Operator.LESS: (Op.LESS_I, Op.LESS_F),
    Operator.LESS_OR_EQUAL: (Op.LESS_OR_EQUAL_I, Op.LESS_OR_EQUAL_F),
    Operator.NULL_SAFE_EQUAL: (Op.SAME_I, Op.SAME_F),
    Operator.LEAST: (Op.LEAST_I, Op.LEAST_F),
    Operator.GREATEST: (Op.GREATEST_I, Op.GREATEST_F),
}
_TESTS = {
    Operator.EQUAL: (Op.TEST_EQUAL_I, Op.TEST_EQUAL_F),
    Operator.LESS: (Op.TEST_LESS_I, Op.TEST_LESS_F),
    Operator.LESS_OR_EQUAL: (Op.TEST_LESS_OR_EQUAL_I, Op.TEST_LESS_OR_EQUAL_F),
    Operator.NULL_SAFE_EQUAL: (Op.TEST_SAME_I, Op.TEST_SAME_F),
}
_WHOLE = {Operator.FLOOR: (Op.FLOOR_I, Op.FLOOR_F), Operator.CEIL: (Op.CEIL_I, Op.CEIL_F)}
_READS = {SlotKind.CARRY: SlotKind.SUM_I, SlotKind.DEVIATIONS: SlotKind.MEAN, SlotKind.MEAN: SlotKind.COUNT}
"""The slot of the same column that a slot of this kind reads when it changes."""
_ORDERING = (Operator.LESS, Operator.LESS_OR_EQUAL, Operator.LEAST, Operator.GREATEST)


@dataclass
class Program:
    """The instructions and constants of all scripts of a plan, in a row; `slots` is in the order of updates."""

    slots: tuple[Slot, ...]
    columns: Sequence[pa.DataType]
    instructions: list[Instruction] = field(default_factory=list)
    constants: list[int] = field(default_factory=list)
    strings: dict[int, str] = field(default_factory=dict)
    """The constants that are strings, by number. The matcher sets their codes before it runs."""

    def add(self, script: Script) -> tuple[int, int]:
        """Appends a script and returns the range of its instructions."""
        start = len(self.instructions)
        self._emit_script(script)
        return start, len(self.instructions)

    def add_condition(self, condition: Script) -> tuple[int, int]:
        """The same for a condition. If it cannot fail, it becomes tests: they only say whether it is true."""
        first = decision_of(condition)
        if first is None:
            return self.add(condition)
        start, tests = len(self.instructions), [*tests_of(first)]
        places = {test: self._emit_test(test) for test in tests}
        for test in tests:
            op, _, _ = self.instructions[place := places[test]]
            held, missed = (
                places[way] if isinstance(way, Test) else TRUE if way else UNTRUE for way in (test.held, test.missed)
            )
            self.instructions[place] = (op, held, missed)
        return start, len(self.instructions)

    def _emit_test(self, test: Test) -> int:
        """Emits a test that leads nowhere yet, its operands, and the instructions that compute them."""
        ops = (Op.TEST_DIFFERENT_I, Op.TEST_DIFFERENT_F) if test.differs else _TESTS[test.comparison]
        place = self._emit(ops[_is_double(test.left.type)])
        operands = [self._emit(Op.COMPUTED) for _ in range(2)]
        for operand, script in zip(operands, (test.left, test.right), strict=True):
            begin, end = self.add(script)
            if end == begin + 1 and self.instructions[begin][0] in OPERANDS:
                self.instructions[operand] = self.instructions.pop()
            else:
                self.instructions[operand] = (Op.COMPUTED, begin, end)
        return place

    def _emit(self, op: Op, a: int = 0, b: int = 0) -> int:
        self.instructions.append((int(op), a, b))
        return len(self.instructions) - 1

    def _patch(self, jump: int) -> None:
        """Makes the jump lead to the next instruction."""
        op, _, b = self.instructions[jump]
        self.instructions[jump] = (op, len(self.instructions), b)

    def _constant(self, *values: int) -> int:
        self.constants += values
        return len(self.constants) - len(values)

    def _range(self, type_: pa.DataType) -> int:
        return self._constant(*integer_range(type_))

    def _emit_script(self, script: Script) -> None:
        match script:
            case ConstantValue(value=value, type=type_):
                self._emit_constant(value, type_)
            case CurrentValue(column=column):
                self._emit(Op.CURRENT, column)
            case StageValue(column=column):
                self._emit(Op.AT_EVENT, self.slots.index(_event_slot(script)), column)
            case Aggregate():
                self._emit_aggregate(script)
            case Operation():
                self._emit_operation(script)

    def _emit_constant(self, value: Constant, type_: pa.DataType) -> None:
        number = self._constant(0 if value is None or isinstance(value, str) else encode(value, type_))
        if isinstance(value, str):
            self.strings[number] = value
        self._emit(Op.CONSTANT, number, int(value is None))

    def _emit_aggregate(self, aggregate: Aggregate) -> None:
        if aggregate.fold in (Fold.MIN, Fold.MAX):
            assert aggregate.column is not None
            self._emit(Op.AT_EVENT, self.slots.index(_extreme_slot(aggregate)), aggregate.column)
            return
        if aggregate.fold is Fold.DISTINCT:
            self._emit(Op.COUNT, self.slots.index(_distinct_slot(aggregate, self.columns)))
            return
        count = self.slots.index(_count_slot(aggregate))
        if aggregate.fold is Fold.COUNT:
            self._emit(Op.COUNT, count)
            return
        if aggregate.fold.varies:
            self._emit_variance(aggregate, count)
            return
        total_slot = _sum_slot(aggregate, self.columns)
        total = self.slots.index(total_slot)
        if total_slot.kind is SlotKind.SUM_I:
            self._emit(Op.CHECK_SUM, self.slots.index(_carry_slot(total_slot)))
        if aggregate.fold is Fold.SUM:
            self._emit(Op.SUM, total, count)
            if pa.types.is_decimal(
                aggregate.type
            ):  # a sum of 18 digits may have got 19: it is checked where it is read
                self._emit(Op.SCALE_UP, self._range(aggregate.type), self._constant(1))
        else:
            self._emit(Op.AVERAGE_DECIMAL if pa.types.is_decimal(aggregate.type) else Op.AVERAGE_F, total, count)

    def _emit_variance(self, aggregate: Aggregate, count: int) -> None:
        op = Op.SAMPLE_VARIANCE if aggregate.fold.of_sample else Op.POPULATION_VARIANCE
        self._emit(op, self.slots.index(_deviations_slot(aggregate)), count)
        if aggregate.fold.is_root:
            self._emit(Op.SQRT_F)

    def _emit_operation(self, operation: Operation) -> None:
        match operation.operator:
            case Operator.AND:
                self._emit_connective(operation.operands, Op.JUMP_IF_FALSE, Op.AND)
            case Operator.OR:
                self._emit_connective(operation.operands, Op.JUMP_IF_TRUE, Op.OR)
            case Operator.CASE:
                self._emit_case(operation.operands)
            case Operator.COALESCE:
                self._emit_coalesce(operation.operands)
            case Operator.LEAST | Operator.GREATEST:
                op = _COMPARISONS[operation.operator][_is_double(operation.type)]
                self._emit_script(operation.operands[0])
                for operand in operation.operands[1:]:
                    self._emit_script(operand)
                    self._emit(op)
            case Operator.ROUND:
                self._emit_rounded(*operation.operands)
            case Operator.FAIL_IF:
                self._emit_script(operation.operands[0])
                self._emit(Op.FAIL_IF)
                self._emit_script(operation.operands[1])
            case _:
                self._emit_on_operands(operation)

    def _emit_on_operands(self, operation: Operation) -> None:
        """Emits the operands, then the operator. An operand that can fail is skipped if the operand evaluated before it
        is NULL.
        """
        operands, order = operation.operands, evaluation_order(operation)
        may_skip = len(operands) == 2 and operation.operator is not Operator.NULL_SAFE_EQUAL
        if not (may_skip and can_fail(operands[order[1]])):
            for operand in operands:
                self._emit_script(operand)
            self._emit_simple(operation)
            return
        self._emit_script(operands[order[0]])
        exit_ = self._emit(Op.JUMP_IF_NULL)
        self._emit_script(operands[order[1]])
        if order[0] > order[1]:
            self._emit(Op.SWAP)
        self._emit_simple(operation)
        self._patch(exit_)

    def _emit_rounded(self, value: Script, digits: Script) -> None:
        assert isinstance(digits, ConstantValue), digits
        assert isinstance(digits.value, int), digits
        self._emit_script(value)
        self._emit(Op.ROUND_F, self._constant(10**digits.value))

    def _emit_connective(self, operands: Sequence[Script], jump: Op, combine: Op) -> None:
        self._emit_script(operands[0])
        for operand in operands[1:]:
            exit_ = self._emit(jump)
            self._emit_script(operand)
            self._emit(combine)
            self._patch(exit_)

    def _emit_case(self, operands: Sequence[Script]) -> None:
        exits = []
        for condition, result in zip(operands[:-1:2], operands[1::2], strict=True):
            self._emit_script(condition)
            otherwise = self._emit(Op.JUMP_UNLESS_TRUE)
            self._emit_script(result)
            exits.append(self._emit(Op.JUMP))
            self._patch(otherwise)
        self._emit_script(operands[-1])
        for exit_ in exits:
            self._patch(exit_)

    def _emit_coalesce(self, operands: Sequence[Script]) -> None:
        exits = []
        for operand in operands[:-1]:
            self._emit_script(operand)
            exits.append(self._emit(Op.JUMP_IF_PRESENT))
            self._emit(Op.POP)
        self._emit_script(operands[-1])
        for exit_ in exits:
            self._patch(exit_)

    def _emit_simple(self, operation: Operation) -> None:
        operator, type_ = operation.operator, operation.operands[0].type
        if operator is Operator.NOT:
            self._emit(Op.NOT)
        elif operator is Operator.IS_NULL:
            self._emit(Op.IS_NULL)
        elif operator in _COMPARISONS:
            self._emit(_COMPARISONS[operator][_is_double(type_)])
        elif operator in _WHOLE:
            of_doubles = _is_double(type_)
            self._emit(_WHOLE[operator][of_doubles], self._constant(1 if of_doubles else 10**type_.scale))
        elif operator is Operator.CAST:
            self._emit_cast(type_, operation.type)
        elif _is_double(operation.type):
            self._emit(_DOUBLE_OPS[operator])
        elif operator is Operator.DIVIDE:
            shift = operation.type.scale - type_.scale + operation.operands[1].type.scale
            self._emit(Op.DIVIDE_DECIMAL, self._range(operation.type), self._constant(10**shift))
        else:
            self._emit(_INTEGER_OPS[operator], self._range(operation.type))

    def _emit_cast(self, source: pa.DataType, target: pa.DataType) -> None:
        scale = source.scale if pa.types.is_decimal(source) else 0
        if _is_double(target):
            if not _is_double(source):
                self._emit(Op.TO_DOUBLE, self._constant(10**scale))
            return
        shift = (target.scale if pa.types.is_decimal(target) else 0) - scale
        if pa.types.is_decimal(target) or pa.types.is_decimal(source):
            op = Op.SCALE_UP if shift >= 0 else Op.SCALE_DOWN
            self._emit(op, self._range(target), self._constant(10 ** abs(shift)))


def encode(value: Constant, type_: pa.DataType) -> int:
    """A constant that is not a string, as 64 bits. The bits of a double are read as an integer."""
    assert isinstance(value, int | float), value
    return int(np.float64(value).view(np.int64)) if pa.types.is_floating(type_) else int(value)


def columns_of(script: Script) -> Iterator[int]:
    """The lifted columns that a script reads."""
    match script:
        case CurrentValue(column=column) | StageValue(column=column):
            yield column
        case Aggregate(column=column) if column is not None:
            yield column
        case Operation(operands=operands):
            for operand in operands:
                yield from columns_of(operand)


def orders_texts(script: Script) -> bool:
    """Whether a script compares strings by their order."""
    match script:
        case Aggregate(fold=Fold.MIN | Fold.MAX, type=type_):
            return is_string(type_)
        case Operation(operator=operator, operands=operands):
            own = operator in _ORDERING and any(is_string(operand.type) for operand in operands)
            return own or any(map(orders_texts, operands))
        case _:
            return False


def source_of(slot: Slot, slots: tuple[Slot, ...]) -> int | None:
    """The number of the slot that `slot` reads when it changes; None: it reads no other."""
    if slot.kind in _READS:
        return slots.index(replace(slot, kind=_READS[slot.kind]))
    return slots.index(replace(slot, back=slot.back - 1)) if slot.back else None


def plan_slots(scripts: Iterable[Script], columns: Sequence[pa.DataType]) -> tuple[Slot, ...]:
    """The slots that the scripts read, in the order in which taking an event must change them."""
    wanted = {slot for script in scripts for slot in _slots_of(script, columns)}
    nearer = {Slot(s.kind, s.stage, s.column, back) for s in wanted for back in range(s.back)}
    return tuple(sorted(wanted | nearer, key=lambda s: (s.stage, s.kind, s.column, -s.back)))


def _slots_of(script: Script, columns: Sequence[pa.DataType]) -> Iterator[Slot]:
    match script:
        case StageValue():
            yield _event_slot(script)
        case Aggregate(fold=Fold.MIN | Fold.MAX):
            yield _extreme_slot(script)
        case Aggregate(fold=Fold.DISTINCT):
            yield _distinct_slot(script, columns)
        case Aggregate(fold=fold):
            yield _count_slot(script)
            if fold.varies:
                yield (deviations := _deviations_slot(script))
                yield replace(deviations, kind=SlotKind.MEAN)
            elif fold is not Fold.COUNT:
                yield (total := _sum_slot(script, columns))
                if total.kind is SlotKind.SUM_I:
                    yield _carry_slot(total)
        case Operation(operands=operands):
            for operand in operands:
                yield from _slots_of(operand, columns)


def _event_slot(value: StageValue) -> Slot:
    return Slot(SlotKind.FIRST if value.from_first else SlotKind.LAST, value.stage, back=value.back)


def _extreme_slot(aggregate: Aggregate) -> Slot:
    assert aggregate.column is not None
    least = (SlotKind.LEAST_I, SlotKind.LEAST_F)
    greatest = (SlotKind.GREATEST_I, SlotKind.GREATEST_F)
    kinds = least if aggregate.fold is Fold.MIN else greatest
    return Slot(kinds[_is_double(aggregate.type)], aggregate.stage, aggregate.column)


def _count_slot(aggregate: Aggregate) -> Slot:
    return Slot(SlotKind.COUNT, aggregate.stage, -1 if aggregate.column is None else aggregate.column)


def _distinct_slot(aggregate: Aggregate, columns: Sequence[pa.DataType]) -> Slot:
    assert aggregate.column is not None
    kinds = SlotKind.DISTINCT_I, SlotKind.DISTINCT_F
    return Slot(kinds[_is_double(columns[aggregate.column])], aggregate.stage, aggregate.column)


def _deviations_slot(aggregate: Aggregate) -> Slot:
    assert aggregate.column is not None
    return Slot(SlotKind.DEVIATIONS, aggregate.stage, aggregate.column)


def _sum_slot(aggregate: Aggregate, columns: Sequence[pa.DataType]) -> Slot:
    assert aggregate.column is not None
    if not _is_double(aggregate.type):
        kind = SlotKind.SUM_I
    else:
        kind = SlotKind.SUM_F if _is_double(columns[aggregate.column]) else SlotKind.SUM_I_AS_F
    return Slot(kind, aggregate.stage, aggregate.column)


def _carry_slot(total: Slot) -> Slot:
    return replace(total, kind=SlotKind.CARRY)


def _is_double(type_: pa.DataType) -> bool:
    return bool(pa.types.is_floating(type_))
