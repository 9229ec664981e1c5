"""Operations across events rewritten as those that scripts know: with a cast where SQL casts an operand, and applied to
the values of single events, which the SQL engine computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

import pyarrow as pa

from cepheid.errors import PatternError
from cepheid.lang.literals import TIMESTAMP
from cepheid.lang.sql.habits import habit_of_refused
from cepheid.lang.sql.written import as_written
from cepheid.plan.conditions import resolve
from cepheid.plan.conditions.choices import applied, is_choosing, is_constant, with_function_inside
from cepheid.plan.conditions.coerce import knows_conversion
from cepheid.plan.conditions.node_types import NodeTypes
from cepheid.plan.conditions.operations import knows_arithmetic
from cepheid.plan.conditions.placed import problem_at
from cepheid.plan.conditions.resolve import Apply, Constant, Folded, Node
from cepheid.plan.conditions.result_types import ARITHMETIC, DIFFERENCES, text_is_moved, type_of_call
from cepheid.plan.conditions.script_functions import OPERATORS
from cepheid.plan.conditions.types import is_string, is_time, sql_name
from cepheid.plan.conditions.value_casts import (
    cast_node,
    is_cast_implicitly,
    targets_of_casts,
    try_cast_node,
    type_literal,
    with_operands,
)

_MOVABLE = ("+", "-", "cast")
_OF_TIMES: dict[str, pa.DataType] = {
    **dict.fromkeys(("year", "quarter", "month", "day", "dayofmonth", "dayofweek", "weekday"), pa.date32()),
    **dict.fromkeys(("dayofyear", "weekofyear", "last_day"), pa.date32()),
    **dict.fromkeys(("hour", "minute", "second"), TIMESTAMP),
}
"""Functions of one time, which give NULL for NULL alone, and what a text is cast to first."""


@dataclass
class Rewrites(NodeTypes):
    """What scripts know of operations on values of these types, and how others are rewritten."""

    one_offset: bool
    """Whether the clock of the session's zone never changes."""
    folds_elapse: bool = field(default=False, kw_only=True)
    """Whether lengths that are added to a fold of times, or lie between folds, are elapsed time: a day has 24 hours."""

    def is_of_scripts(self, node: Apply) -> bool:
        """Whether scripts compute the function on values of these types."""
        function = node.call.function
        types = [self.type_of(arg) for arg in node.args]
        if function == "cast":
            return sql_name(types[0]) == sql_name(types[1]) or knows_conversion(*types)
        if function not in ARITHMETIC:
            return function in OPERATORS
        return knows_arithmetic(node.call, types, one_offset=self._elapses(node))

    def _elapses(self, node: Apply) -> bool:
        """Whether a day in the operation is always one of 24 hours."""
        return self.one_offset or (self.folds_elapse and any(isinstance(arg, Folded) for arg in node.args))

    def with_casts(self, node: Apply) -> Apply:
        """The node with a cast around each operand that SQL casts, because it stands next to one of another type."""
        written = node
        while targets := self._targets(node):
            args = [self.cast(arg, targets[i], written) if i in targets else arg for i, arg in enumerate(node.args)]
            node = with_operands(node, args)
        return node

    def conjuncts(self, node: Node) -> list[Node]:
        """The parts that are AND-ed at the top level."""
        if isinstance(node, Apply) and node.call.function == "and":
            return [part for arg in self.with_casts(node).args for part in self.conjuncts(arg)]
        return [node]

    def _targets(self, node: Apply) -> dict[int, pa.DataType]:
        types = [self.type_of(arg) for arg in node.args]
        return targets_of_casts(node.call, types, one_offset=self._elapses(node))

    def cast(self, node: Node, target: pa.DataType, operation: Apply) -> Node:
        """The operand of the operation as the type; of single events' values if scripts do not know the cast."""
        if sql_name(self.type_of(node)) == sql_name(target):
            return node
        try:
            cast = self._typed(cast_node(node, target))
        except ValueError as error:
            assert node.source is not None
            hint = habit_of_refused(operation.call, operation.call, node.source.text)
            raise problem_at(node, str(error), hint) from error
        return self.moved(cast, operation) or cast if self.is_unknown(cast) else cast

    def _typed(self, node: Node) -> Node:
        """The node, with the types of its parts about one event that the SQL engine has not given."""
        is_asked = isinstance(node, Apply) and node.source is not None and resolve.is_of_one_event(node)
        shape = resolve.shape_of(resolve.tree_of(node)) if is_asked else None
        if shape in self.types:
            return node
        for part in resolve.subnodes(node):
            self._typed(part)
        if shape is not None and isinstance(node, Apply):
            self.types[shape] = type_of_call(node.call, [self.type_of(arg) for arg in node.args])
        return node

    def tried(self, node: Node) -> tuple[Node, Node] | None:
        """The value that casts, moves and functions of times are applied to, one after the other, and the node with
        casts that give NULL where they would fail. None: the node has none of these casts, or consists of other
        operations.
        """
        if not isinstance(node, Apply) or node.call.function not in (*_MOVABLE, *_OF_TIMES):
            return None
        operands = [arg for arg in node.args if not is_constant(arg)]
        if len(operands) != 1:
            return None
        (operand,) = operands
        value, inner = (self.tried(operand) if self.can_raise(operand) else None) or (operand, operand)
        if inner is operand and self.can_raise(operand):
            return None
        types = [self.type_of(arg) for arg in node.args]
        if node.call.function == "cast" and isinstance(node.args[1], Constant):
            return value, try_cast_node(inner, node.args[1].literal)
        place = node.args.index(operand)
        if (target := _OF_TIMES.get(node.call.function)) is not None:
            inner = try_cast_node(inner, type_literal(target, node.call.span)) if is_string(types[place]) else inner
        elif text_is_moved(node.call.function, *types):
            time = try_cast_node(inner, type_literal(TIMESTAMP, node.call.span))
            return value, cast_node(applied(node, place, time), pa.string())
        return None if inner is operand else (value, applied(node, place, inner))

    def moved(self, node: Apply, operation: Apply | None = None) -> Node | None:
        """An operation that scripts do not know, rewritten so that its operands are values of single events; None if it
        cannot be rewritten. `operation`: the one that it is a cast for, and that is written.

        Raises:
            PatternError: it cannot be rewritten, and one of its operands is a time, or a text that is moved as one.
        """
        args = [self.moved(arg) or arg if self.is_unknown(arg) else arg for arg in node.args]
        try:
            moved = with_function_inside(with_operands(node, args), self.type_of)
        except ValueError as error:
            raise problem_at(node, str(error)) from error
        if moved is not None:
            return self._typed(moved)
        types = [self.type_of(arg) for arg in node.args]
        if not any(map(is_time, types)) and not text_is_moved(node.call.function, *types):
            return None
        raise self._not_known(operation or node)

    def _not_known(self, node: Apply) -> PatternError:
        """The error for an operation on times of several events that neither scripts nor the SQL engine compute."""
        function = node.call.function
        types = [self.type_of(arg) for arg in (node.args[-2:] if function in DIFFERENCES else node.args)]
        given = (" to " if function == "cast" else " and ").join(sql_name(type_) for type_ in types)
        message = f"{as_written(function)!r} of {given} is not known across events"
        return problem_at(node, message, _in_place_of(node, types))

    def is_unknown(self, node: Node) -> TypeGuard[Apply]:
        """Whether it is an operation on values of several events that may be moved, and scripts do not know it."""
        if not isinstance(node, Apply) or node.call.function not in _MOVABLE or resolve.is_of_one_event(node):
            return False
        if node.call.function == "cast" and not is_cast_implicitly(*(self.type_of(arg) for arg in node.args)):
            return False  # no engine was asked whether it can cast values of single events
        return not self.is_of_scripts(self.with_casts(node))


def _in_place_of(node: Apply, types: Sequence[pa.DataType]) -> str:
    """What to write in place of an operation on values of these types that is not known across events."""
    if any(isinstance(part, Folded) for part in resolve.walk(node)):
        hint = "Take the value of a single event: last(stage.time) in place of max(stage.time)."
        if node.call.function == "-" and all(map(is_time, types)):
            hint += " In place of a difference, compare times: time < max(stage.time) + INTERVAL 1 HOUR."
        return hint
    if any(isinstance(part, Apply) and is_choosing(part) for part in resolve.walk(node)):
        return "Cast the values that are chosen between to one type, as in CAST(stage.day AS TIMESTAMP)."
    return "Compare a difference of two times, as in time - stage.time > INTERVAL 1 HOUR."
