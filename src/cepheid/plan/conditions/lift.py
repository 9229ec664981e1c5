"""Conditions split in two: columns that the host's SQL engine computes for each event, and scripts for the kernel.

In a stage's condition, the AND-ed parts about the current event alone become one boolean column, a bit of the event's
mask. The rest becomes a script. In the script, the largest parts about any one event are columns again.

A lifted column is computed for every event, so it must not fail for an event for which SQL would not compute it. This
concerns parts that are guarded by AND, OR, CASE or coalesce, and parts about an event that a stage must first have
taken. If such a part can fail, it is not lifted whole: the script does its arithmetic, and a cast becomes try_cast and
a check in the script. Functions that scripts do not know are lifted all the same, but they are computed only for events
that may belong to the stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from cepheid.errors import PatternError
from cepheid.lang.expression import Call, Expression, Literal
from cepheid.lang.literals import TIMESTAMP
from cepheid.lang.sql.written import as_written
from cepheid.plan.conditions import resolve, script
from cepheid.plan.conditions.absence import is_null_without_event
from cepheid.plan.conditions.coerce import check_script_type, coerce, constant
from cepheid.plan.conditions.names import Names
from cepheid.plan.conditions.operations import OPERATIONS
from cepheid.plan.conditions.placed import placed, problem_at
from cepheid.plan.conditions.resolve import CURRENT, Apply, Called, Column, Constant, Folded, Node, Pick, Shape
from cepheid.plan.conditions.result_types import ARITHMETIC, COMPARISONS, DIFFERENCES, unit_of
from cepheid.plan.conditions.rewrites import Rewrites
from cepheid.plan.conditions.script import Fold, Operation, Operator, Script
from cepheid.plan.conditions.texts import STRING, TEXT_FUNCTIONS, TextFunction
from cepheid.plan.conditions.types import DURATION, TIMESTAMP_NTZ, is_float, is_string
from cepheid.plan.lifted import Lifted, PlannedCondition, Slot
from cepheid.plan.used_columns import names_in


@dataclass
class Lifting(Rewrites):
    """The columns lifted so far, and the scripts over them."""

    names: Names
    bits: dict[Shape, tuple[int, Lifted]] = field(default_factory=dict)
    values: dict[Shape, tuple[int, Lifted]] = field(default_factory=dict)
    slots: dict[str, tuple[Slot, bool]] = field(default_factory=dict)
    """The slots of the measures so far, by name, and whether they are running. Equal slots share a name."""
    first_slot: int = 0
    """The number in the first slot's name."""
    stage: int = 0
    """The stage whose condition is being lifted."""
    guards: dict[int, Lifted] = field(default_factory=dict)
    """The lifted part of each stage's condition. An event for which it is not true never belongs to the stage."""
    apart: str | None = None
    """A column that comes in another row than the event's other columns. What reads it with others is not lifted, as
    far as scripts can compute it.
    """

    # Columns

    def _add_value(self, node: Node, sql: str, tree: Expression, type_: pa.DataType) -> int:
        """The number of the column that is computed for the node."""
        lifted = Lifted(sql, tree, type_, self._written([node]))
        index, _ = self.values.setdefault(resolve.shape_of(tree), (len(self.values), lifted))
        return index

    def column(self, node: Column) -> int:
        """The number of the lifted column that is a column of the event as it is."""
        return self._add_value(node, resolve.sql_of(node), resolve.tree_of(node), node.type)

    def _written(self, nodes: Sequence[Node]) -> str:
        """The text and place of each of the nodes that can fail."""
        parts = [part for node in nodes for part in resolve.written_parts(node) if self.can_raise(part)]
        return " AND ".join(f"{resolve.text_of(part)!r} ({part.source.where})" for part in parts if part.source)

    def name_slot(self, slot: Slot, *, running: bool) -> str:
        fresh = f"_slot{self.first_slot + len(self.slots)}"
        name = next((name for name, known in self.slots.items() if known == (slot, running)), fresh)
        self.slots[name] = slot, running
        return name

    def add_slot(self, node: Node, fold: Fold | None = None) -> int:
        """The lifted column of a node about one event, of any type; DOUBLE if it is folded to a variance."""
        sql, tree, type_ = resolve.sql_of(node), resolve.tree_of(node), self.type_of(node)
        if fold is not None and fold.varies:
            sql, tree, type_ = _as_double(sql, tree, type_)
        return self._add_value(node, sql, tree, type_)

    def add_bit(self, nodes: Sequence[Node]) -> tuple[int, Lifted]:
        """The number of the boolean column for these AND-ed nodes about one event, and the column."""
        tree = _conjunction([resolve.tree_of(node) for node in nodes])
        sql = resolve.sql_of(nodes[0])
        if len(nodes) > 1:
            sql = " AND ".join(f"({resolve.sql_of(node)})" for node in nodes)
        lifted = Lifted(sql, tree, pa.bool_(), self._written(nodes))
        return self.bits.setdefault(resolve.shape_of(tree), (len(self.bits), lifted))

    # Conditions

    def condition(self, node: Node, stage: int) -> PlannedCondition:
        """The whole condition of stage number `stage` as a bit and a script; the bit is checked first."""
        self.type_of(node)
        self.stage = stage
        lifted: list[Node] = []
        rest: list[Node] = []
        for part in self.conjuncts(node):
            alone = resolve.is_of_one_event(part) and resolve.events_of(part) <= {CURRENT}
            if alone and (not rest or not self.can_raise(part)):
                lifted.append(part)
            else:
                rest.append(part)
        bit = None
        if lifted:
            bit, self.guards[stage] = self.add_bit(lifted if rest else [node])
        scripts = [self.lower(part, guarded=bool(lifted) or i > 0) for i, part in enumerate(rest)]
        if not scripts:
            return PlannedCondition(bit, None)
        whole = scripts[0] if len(scripts) == 1 else Operation(Operator.AND, tuple(scripts), pa.bool_())
        return PlannedCondition(bit, whole)

    def lower(self, node: Node, *, guarded: bool) -> Script:
        """The node as a script; `guarded` says that SQL might not evaluate the node."""
        try:
            return self._lower(node, guarded=guarded)
        except PatternError as error:
            raise placed(error, node) from None

    def _lower(self, node: Node, *, guarded: bool) -> Script:
        if isinstance(node, Constant):
            value = constant(node.literal)
            return value if value is not None else self._leaf(node)
        if isinstance(node, Folded):
            return self._aggregate(node)
        if isinstance(node, Called):
            return script.FunctionValue(node.function, self.names.names, pa.bool_())
        if resolve.is_of_one_event(node) and not (isinstance(node, Apply) and node.source is None):
            whole = self._is_null_when_absent(node)
            careful = guarded or resolve.events_of(node) != {CURRENT}
            mixed = self._is_mixed(node)
            if isinstance(node, Column) or (whole and not mixed and not (careful and self.can_raise(node))):
                return self._leaf(node)
            if isinstance(node, Apply) and node.call.function == "cast" and not self.can_raise(node.args[0]):
                return self._checked(node)
            if isinstance(node, Apply) and not self.is_of_scripts(self.with_casts(node)):
                if not whole:
                    what = as_written(node.call.function, resolve.text_of(node))
                    message = f"{what} may give a value for an event that is not there"
                    hint = "Write first(…) or last(…) around it: NULL when the stage has no such event."
                    raise problem_at(node, message, hint)
                return self._checked(node)
        if isinstance(node, Pick):
            return self.lower(node.argument, guarded=guarded)
        assert isinstance(node, Apply), node
        return self._operation(node, guarded=guarded)

    def _is_mixed(self, node: Node) -> bool:
        """Whether the node reads the column `apart` together with others."""
        if self.apart is None:
            return False
        names = {name.lower() for name in names_in(resolve.tree_of(node))}
        return self.apart.lower() in names and len(names) > 1

    def _is_null_when_absent(self, node: Node) -> bool:
        """Whether a lifted column has the right value even if its event is absent."""
        absent = any(self.names.may_be_absent(event, self.stage) for event in resolve.events_of(node))
        return not absent or is_null_without_event(node)

    def _leaf(self, node: Node) -> script.ColumnValue:
        type_ = check_script_type(self.type_of(node), resolve.span_of(node))
        sql, tree = resolve.sql_of(node), resolve.tree_of(node)
        if self.can_raise(node):
            sql, tree = self._guarded(node, sql, tree)
        return self._read(node, sql, tree, type_)

    def _guarded(self, node: Node, sql: str, tree: Expression) -> tuple[str, Expression]:
        """The SQL and tree of a node that can fail, guarded so that they are computed only for events that may belong
        to the stage. A script reads no other events.
        """
        event = next(iter(resolve.events_of(node)), CURRENT)
        guard = self.guards.get(self.stage if event.stage is None else event.stage)
        if guard is None:
            return sql, tree
        null = Literal(None, pa.null(), tree.span)
        return f"CASE WHEN ({guard.sql}) THEN ({sql}) END", Call("case", (guard.expression, tree, null), tree.span)

    def _read(self, node: Node, sql: str, tree: Expression, type_: pa.DataType) -> script.ColumnValue:
        if type_ == pa.float32():
            sql, tree, type_ = _cast_to_double(sql, tree)
        column = self._add_value(node, sql, tree, type_)
        event = next(iter(resolve.events_of(node)), CURRENT)
        if event.stage is None:
            return script.CurrentValue(column, type_)
        return script.StageValue(event.stage, column, type_, event.back, event.from_first)

    def _checked(self, node: Apply) -> Script:
        """The node with `try_cast` in place of casts, and a check in the script that fails if the result is NULL and
        the value that is cast is not. A node that does not only cast a value is lifted as it is.
        """
        if (tried := self.tried(node)) is None:
            return self._leaf(node)
        value, cast = tried
        type_ = check_script_type(self.type_of(node), node.call.span)
        result = self._read(node, resolve.sql_of(cast), resolve.tree_of(cast), type_)
        is_null = Call("is_null", (resolve.tree_of(value),), node.call.span)
        missing = self._read(node, f"({resolve.sql_of(value)}) IS NULL", is_null, pa.bool_())
        present = Operation(Operator.NOT, (missing,), pa.bool_())
        failed = Operation(Operator.AND, (Operation(Operator.IS_NULL, (result,), pa.bool_()), present), pa.bool_())
        return Operation(Operator.FAIL_IF, (failed, result), result.type)

    def _aggregate(self, node: Folded) -> script.Aggregate:
        type_ = check_script_type(self._fold_type(node), node.span)
        if node.argument is None:
            return script.Aggregate(node.fold, node.stage, None, type_)
        leaf = self._folded(node.fold, node.argument)
        return script.Aggregate(node.fold, node.stage, leaf.column, pa.float64() if is_float(type_) else type_)

    def _folded(self, fold: Fold, node: Node) -> script.ColumnValue:
        """The column whose values are folded."""
        if fold is Fold.COUNT:
            return self._counted(node)
        if not fold.varies:
            return self._leaf(node)
        sql, tree = resolve.sql_of(node), resolve.tree_of(node)
        if self.can_raise(node):
            sql, tree = self._guarded(node, sql, tree)
        return self._read(node, *_as_double(sql, tree, self.type_of(node)))

    def _counted(self, node: Node) -> script.ColumnValue:
        """The column for count(x), which only says whether there is a value: the type of x does not matter."""
        tree = resolve.tree_of(node)
        sql = f"CASE WHEN ({resolve.sql_of(node)}) IS NOT NULL THEN TRUE END"
        null = Literal(None, pa.null(), tree.span)
        present = Call("is_not_null", (tree,), tree.span)
        return self._read(
            node,
            sql,
            Call("case", (present, Literal(value=True, type=pa.bool_(), span=tree.span), null), tree.span),
            pa.bool_(),
        )

    # Operators

    def _difference(self, node: Apply) -> Script:
        """The days between two dates or, in a unit, the time between what clocks show at two times."""
        *units, first, second = node.args
        unit = unit_of(node.call) if units else None
        if unit is None:
            days = [self.lower(self.cast(arg, pa.date32(), node), guarded=True) for arg in (first, second)]
            return Operation(Operator.SUBTRACT, tuple(days), pa.int32())
        start, end = (self.lower(self._on_clock(arg, node), guarded=True) for arg in (first, second))
        elapsed = Operation(Operator.SUBTRACT, (end, start), DURATION)
        return Operation(Operator.INTEGER_DIVIDE, (elapsed, script.ConstantValue(unit, DURATION)), pa.int64())

    def _on_clock(self, node: Node, operation: Apply) -> Node:
        """What the session's clock shows at the time. Spark reads a DATE or TIMESTAMP_NTZ on that clock first, which
        may skip it.
        """
        if self.type_of(node) != TIMESTAMP_NTZ or not self.one_offset:
            node = self.cast(node, TIMESTAMP, operation)
        return self.cast(node, TIMESTAMP_NTZ, operation)

    def _text(self, node: Node) -> Script:
        """The value as a text; the SQL engine converts it."""
        type_ = self.type_of(node)
        if is_string(type_) or pa.types.is_null(type_):
            return coerce(self.lower(node, guarded=True), STRING, resolve.span_of(node))
        if not (resolve.is_of_one_event(node) and self._is_null_when_absent(node)) or self.can_raise(node):
            hint = "Cast the values of single events: CAST(… AS STRING)."
            raise problem_at(node, "a STRING is needed here", hint)
        sql, tree, span = resolve.sql_of(node), resolve.tree_of(node), resolve.span_of(node)
        cast = Call("cast", (tree, Literal("STRING", STRING, span)), span)
        return self._read(node, f"CAST({sql} AS STRING)", cast, STRING)

    def _text_function(self, node: Apply, function: TextFunction, *, guarded: bool) -> Script:
        if function.any_number:
            return function.build(list(map(self._text, node.args)))
        operands = [self.lower(arg, guarded=guarded) for arg in node.args]
        takes = function.takes[: len(operands)]
        return function.build([coerce(o, t, node.call.span) for o, t in zip(operands, takes, strict=True)])

    def _operation(self, node: Apply, *, guarded: bool) -> Script:
        function = node.call.function
        self.type_of(node)  # raises if operands do not fit
        lazy = function in _LAZY or function in ARITHMETIC or (function in COMPARISONS and function != "<=>")
        first = 1 if function in ("/", "div", "%") else 0  # Spark evaluates the divisor before the dividend
        if function in (*ARITHMETIC, "round") and self.type_of(node) == pa.float32():
            message = f"{function!r} on FLOAT is not known across events"
            raise problem_at(node, message, "Cast it to DOUBLE." if len(node.args) == 1 else "Cast one side to DOUBLE.")
        if function in DIFFERENCES:
            return self._difference(node)
        if function in TEXT_FUNCTIONS:
            return self._text_function(node, TEXT_FUNCTIONS[function], guarded=guarded)
        node = self.with_casts(node)
        if self.is_unknown(node) and (moved := self.moved(node)) is not None:
            return self.lower(moved, guarded=guarded)
        if function == "cast":
            value = self.lower(node.args[0], guarded=guarded)
            return coerce(value, check_script_type(self.type_of(node), node.call.span), node.call.span)
        operands = [self.lower(arg, guarded=guarded or (lazy and i != first)) for i, arg in enumerate(node.args)]
        if function in _LOGICAL:
            booleans = tuple(coerce(o, pa.bool_(), node.call.span) for o in operands)
            return Operation(_LOGICAL[function], booleans, pa.bool_())
        return OPERATIONS[function](node, operands)


def _conjunction(trees: Sequence[Expression]) -> Expression:
    if len(trees) == 1:
        return trees[0]
    return Call("and", tuple(trees), (trees[0].span[0], trees[-1].span[1]))


def _as_double(sql: str, tree: Expression, type_: pa.DataType) -> tuple[str, Expression, pa.DataType]:
    return (sql, tree, type_) if type_ == pa.float64() else _cast_to_double(sql, tree)


def _cast_to_double(sql: str, tree: Expression) -> tuple[str, Expression, pa.DataType]:
    """A number as a DOUBLE. FLOAT is widened where it is read, because a script's numbers are doubles."""
    target = Literal("DOUBLE", pa.float64(), tree.span)
    return f"CAST({sql} AS DOUBLE)", Call("cast", (tree, target), tree.span), pa.float64()


_LAZY = frozenset(
    ("and", "or", "case", "case_of", "coalesce", "nvl", "ifnull", "nvl2", "if", "in", "between", "nullif")
)
"""Operators that may leave operands unevaluated. So may arithmetic and comparisons, which are NULL as soon as an
operand is NULL.
"""
_LOGICAL = {"and": Operator.AND, "or": Operator.OR, "not": Operator.NOT}
