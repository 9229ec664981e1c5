"""Trees of operators over occurrences as arrays: operators, their parents, windows and scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.compile.arrays import INSTRUCTION, Ints
from cepheid.compile.instructions import SlotKind
from cepheid.compile.occurrences.tables import NONE, TREE_OPERATOR, TREE_SCRIPT, TREE_SETTINGS, AlgebraTables, Regime
from cepheid.compile.script import Program, Slot, columns_of, orders_texts
from cepheid.lang.occurrences.pattern import Policy
from cepheid.plan.condition_bits import MAX_CONDITIONS
from cepheid.plan.conditions.script import Script
from cepheid.plan.limits import Limits
from cepheid.plan.occurrences.constants import Kind
from cepheid.plan.occurrences.growth import spans_of, windows_of
from cepheid.plan.occurrences.plan import Operator
from cepheid.plan.occurrences.plans import Meaning, OccurrencePlans
from cepheid.plan.occurrences.semantic import PlannedFilter
from cepheid.plan.plan_set import Words


@dataclass(frozen=True)
class Trees:
    """Operators, and which of them are the roots: the whole expressions of the patterns."""

    operators: tuple[Operator, ...]
    roots: tuple[int, ...]
    regime: Regime
    variables: int
    """The number of variables."""
    values: tuple[pa.DataType, ...]
    """The types of the columns that scripts read."""
    time_value: int | None
    """The column that holds the time of an event."""
    bits: int = 0
    """The number of lifted conditions; the bits of `meanings` come after them."""
    meanings: tuple[Meaning, ...] = ()
    filters: tuple[PlannedFilter, ...] = ()


def regime_of(policy: Policy, *, by_operator: bool) -> Regime:
    """How operators work under a policy. The recent policy may also be applied after all operators; they then make all
    occurrences.
    """
    if policy.is_context:
        return Regime[policy.name]
    return Regime.MOST_RECENT if by_operator else Regime.ALL


class CompiledTrees(NamedTuple):
    """Trees ready to run."""

    trees: Trees
    tables: AlgebraTables


@dataclass(frozen=True)
class CompiledOccurrences:
    """Plans of occurrences ready to run."""

    plan: OccurrencePlans
    tables: AlgebraTables
    """The tables of the first trees. Their code and constants are those of all trees."""
    each: tuple[CompiledTrees, ...]
    """One for each of the plans' tables."""
    string_constants: dict[int, str]
    """The strings among the constants, by number. The matcher sets their codes."""
    deadlines: ClassVar[None] = None
    script_columns: frozenset[int]
    orders_texts: bool

    @property
    def relevant(self) -> int | None:
        """A mask of bits: an event matters if it has one of them. None: every event matters, for what it says."""
        if self.plan.semantics is not None:
            return None
        return (1 << len(self.plan.bits)) - 1

    @property
    def relevant_to(self) -> tuple[Words | None, ...]:
        """For each pattern, a mask of all plans' bits: an event with one of them matters to the pattern. None: every
        event matters, for what it says.
        """
        plans = zip(self.plan.each, self.plan.places, strict=True)
        return tuple(
            None if plan.semantics is not None else self.plan.words(place, (1 << len(plan.bits)) - 1)
            for plan, place in plans
        )


def compile_occurrences(plans: OccurrencePlans) -> CompiledOccurrences:
    types = tuple(value.type for value in plans.values)
    forest = [
        Trees(
            tuple(table.operators),
            tuple(table.roots),
            regime_of(table.policy, by_operator=table.by_operator),
            len(plans.variables),
            types,
            plans.time_value,
            len(plans.bits),
            plans.meanings,
            plans.filters,
        )
        for table in plans.tables
    ]
    scripts = _scripts(forest)
    program = _program(forest[0])
    each = compile_trees(forest, plans.limits, program)
    return CompiledOccurrences(
        plan=plans,
        tables=each[0].tables,
        each=each,
        string_constants=program.strings,
        script_columns=frozenset(column for script in scripts for column in columns_of(script)),
        orders_texts=any(map(orders_texts, scripts)),
    )


def compile_trees(forest: Sequence[Trees], limits: Limits, program: Program | None = None) -> tuple[CompiledTrees, ...]:
    """Compiles trees that have the same values and variables. Their scripts are appended to the program."""
    program = program or _program(forest[0])
    scripts = _scripts(forest)
    ranges = np.array([program.add_condition(script) for script in scripts], TREE_SCRIPT)
    columns = sorted({column for script in scripts for column in columns_of(script)})
    code, constants = np.array(program.instructions, INSTRUCTION), np.array(program.constants, np.int64)
    numbers = {script: number for number, script in enumerate(scripts)}
    compiled = []
    for trees in forest:
        rows, parents, lists = _operators(trees, numbers)
        time_value = NONE if trees.time_value is None else trees.time_value
        settings = (trees.regime, lists, time_value, *tree_limits(limits).values())
        leaves = np.full(MAX_CONDITIONS + 1, NONE, np.int64)
        for row, op in enumerate(trees.operators):
            if op.kind is Kind.LEAF:
                leaves[_bit_of(op, trees)] = row
        tables = AlgebraTables(
            settings=np.array([settings], TREE_SETTINGS),
            operators=np.array(rows, TREE_OPERATOR),
            parents=np.array(parents, np.int64),
            leaves=leaves,
            delayed=np.array([i for i, op in enumerate(trees.operators) if op.kind is Kind.DELAYED], np.int64),
            roots=np.array(trees.roots, np.int64),
            scripts=ranges,
            code=code,
            constants=constants,
            filters=_filters(trees.filters),
            columns=np.array(columns, np.int64),
        )
        compiled.append(CompiledTrees(trees, tables))
    return tuple(compiled)


def tree_limits(limits: Limits) -> dict[str, int]:
    """The fields of TREE_SETTINGS that limits decide, in their order."""
    return {"most_open": limits.most_partial_matches, "limits_drop": limits.on_limit == "drop"}


def _operators(trees: Trees, scripts: Mapping[Script, int]) -> tuple[list[tuple[int, ...]], list[int], int]:
    """Rows of TREE_OPERATOR, the parents of all rows in one list, and how many lists a key has."""
    rows, parents = list[tuple[int, ...]](), list[int]()
    lists = 1  # the first list has the events of an instant; the lists of operators follow
    windows, spans = windows_of(trees.operators, trees.roots), spans_of(trees.operators)
    for row, op in enumerate(trees.operators):
        script = NONE if op.script is None else scripts[op.script]
        filter_ = NONE if op.filter is None else trees.filters.index(op.filter)
        span = spans[op.right] if op.right >= 0 else 0
        first = len(parents)
        parents += [parent for parent, other in enumerate(trees.operators) if row in other.operands]
        own = op.kind, op.left, op.right, op.number, script, filter_
        rows.append((*own, lists, span, windows[row], first, len(parents)))
        lists += _lists_of(op)
    return rows, parents, lists


def _bit_of(leaf: Operator, trees: Trees) -> int:
    """The bit of the events that the leaf takes."""
    return leaf.number if leaf.type is None else trees.bits + trees.meanings.index(Meaning(leaf.type, leaf.number))


def _filters(filters: Sequence[PlannedFilter]) -> Ints:
    """AlgebraTables.filters."""
    most = max((len(one.variables) for one in filters), default=0)
    found = np.full((len(filters), most), NONE, np.int64)
    for row, one in enumerate(filters):
        found[row, : len(one.variables)] = [number for _, number in one.variables]
    return found


def _scripts(forest: Iterable[Trees]) -> list[Script]:
    """The scripts, each once."""
    return list(dict.fromkeys(op.script for trees in forest for op in trees.operators if op.script is not None))


def _program(trees: Trees) -> Program:
    return Program(_slots(trees), trees.values)


def _slots(trees: Trees) -> tuple[Slot, ...]:
    """One slot for each place of each variable: its event, its start and its end."""
    time = NONE if trees.time_value is None else trees.time_value
    kinds = (SlotKind.LAST, NONE), (SlotKind.LEAST_I, time), (SlotKind.GREATEST_I, time)
    return tuple(Slot(kind, variable, column) for variable in range(trees.variables) for kind, column in kinds)


def _lists_of(operator: Operator) -> int:
    """How many lists the operator has. WITHOUT has one, too, for its latest start."""
    match operator.kind:
        case Kind.BOTH:
            return 2
        case Kind.THEN | Kind.WITHOUT | Kind.DELAYED:
            return 1
    return 0


def made_with(operators: Sequence[Operator], kind: Kind) -> list[bool]:
    """For each operator, whether its occurrences may contain those of an operator of this kind."""
    found: list[bool] = []
    for op in operators:
        given = op.operands[:1] if op.kind is Kind.WITHOUT else op.operands
        found.append(op.kind is kind or any(found[row] for row in given))
    return found
