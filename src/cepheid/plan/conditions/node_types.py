"""The types of nodes: of parts about one event those that the SQL engine gives, of the others those of scripts."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from cepheid.errors import PatternError
from cepheid.lang.sql.written import as_written
from cepheid.plan.conditions import resolve
from cepheid.plan.conditions.coerce import SCRIPT_DIGITS
from cepheid.plan.conditions.placed import placed, problem_at
from cepheid.plan.conditions.raising import call_can_raise
from cepheid.plan.conditions.resolve import Apply, Called, Column, Constant, Folded, Node, Pick, Shape
from cepheid.plan.conditions.result_types import fold_type, type_of_call
from cepheid.plan.conditions.script import Fold
from cepheid.plan.conditions.script_functions import COMPILED_FUNCTIONS, SCRIPT_FUNCTIONS
from cepheid.plan.conditions.types import is_decimal, is_orderable, sql_name


@dataclass
class NodeTypes:
    """`types` has the types of all parts about one event, as the SQL engine gives them."""

    types: dict[Shape, pa.DataType]
    knows_texts: bool = field(default=False, kw_only=True)
    """Whether scripts may compute texts, which no compiled kernel can."""

    def type_of(self, node: Node) -> pa.DataType:
        """The type of any node; PatternError, with its place, if operands do not fit or a function is not known."""
        match node:
            case Constant(literal):
                return literal.type
            case Column(type=type_):
                return type_
            case Pick(argument):
                return self.type_of(argument)
            case Folded():
                return self._fold_type(node)
            case Called():
                return pa.bool_()
            case Apply():
                if resolve.is_of_one_event(node) and node.source is not None:
                    return self.types[resolve.shape_of(resolve.tree_of(node))]
                return self._script_type(node)

    def _script_type(self, node: Apply) -> pa.DataType:
        function = node.call.function
        functions = SCRIPT_FUNCTIONS if self.knows_texts else COMPILED_FUNCTIONS
        if function not in functions:
            known = ", ".join(dict.fromkeys(map(as_written, functions)))
            hint = f"Known across events: {known}; any function of one event's columns."
            message = f"{as_written(function, resolve.text_of(node))} cannot be applied across events"
            raise problem_at(node, message, hint)
        types = [self.type_of(arg) for arg in node.args]
        try:
            return type_of_call(node.call, types)
        except PatternError as error:
            raise placed(error, node, types) from None

    def _fold_type(self, node: Folded) -> pa.DataType:
        if node.fold is Fold.COUNT:
            return pa.int64()
        assert node.argument is not None
        type_ = self.type_of(node.argument)
        result = fold_type(node.fold, type_)
        if node.key is not None and not is_orderable(key_type := self.type_of(node.key)):
            raise problem_at(node.key, f"values of type {sql_name(key_type)} have no order")
        if result is None:
            hint = None
            if is_decimal(type_):
                hint = f"Cast it to DOUBLE or to DECIMAL({SCRIPT_DIGITS - 4}, {min(type_.scale, 2)})."
            raise problem_at(node, f"{node.fold.value} cannot be applied to {sql_name(type_)}", hint)
        return result

    def can_raise(self, node: Node) -> bool:
        """Whether computing the node can fail on some event."""
        if any(self.can_raise(sub) for sub in resolve.subnodes(node)):
            return True
        if not isinstance(node, Apply) or node.source is None:
            return False
        try:
            types = [self.type_of(arg) for arg in node.args]
            return call_can_raise(node.call, types, self.type_of(node))
        except KeyError:
            return True  # inside a lambda, whose parameters have no type here
