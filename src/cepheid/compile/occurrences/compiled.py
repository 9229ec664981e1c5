"""Trees of operators over occurrences as arrays: operators, who waits for whom, windows and scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.compile.script import Program, Slot, SlotKind, columns_of, orders_texts
from cepheid.compile.stages.tables import INSTRUCTION, Ints, Records
from cepheid.lang.occurrences.expression import Policy
from cepheid.plan.conditions.script import Script
from cepheid.plan.limits import Limits
from cepheid.plan.occurrences.growth import spans_of, windows_of
from cepheid.plan.occurrences.plan import Kind, Operator
from cepheid.plan.occurrences.plans import OccurrencePlans
from cepheid.plan.stages.plan import MAX_CONDITIONS

NONE = -1
PER_VARIABLE = 3
"""Places of a variable among the values that scripts read: its event, its start and its end."""


class Regime(IntEnum):
    """What each operator makes of what its operands make."""

    ALL = 0
    MOST_RECENT = 1
    """Of all the one of the latest start."""
    SNOOP_RECENT = 2
    CHRONICLE = 3
    CONTINUOUS = 4
    CUMULATIVE = 5


@dataclass(frozen=True)
class Trees:
    """Operators, and which of them are roots: the expressions that are asked for."""

    operators: tuple[Operator, ...]
    roots: tuple[int, ...]
    regime: Regime
    variables: int
    """How many there are."""
    values: tuple[pa.DataType, ...]
    """The types of the columns that scripts read."""
    time_value: int | None
    """Which of them is the time of an event."""


def regime_of(policy: Policy, *, by_operator: bool) -> Regime:
    """How operators work for a policy; the recent one may be applied behind all of them."""
    if policy.is_context:
        return Regime[policy.name]
    return Regime.MOST_RECENT if by_operator else Regime.ALL


TREE_OPERATOR = np.dtype(
    [
        ("kind", np.int64),  # a Kind
        ("left", np.int64),  # rows of the operands, or NONE
        ("right", np.int64),
        ("number", np.int64),  # see Kind
        ("script", np.int64),  # or NONE
        ("memory", np.int64),  # the first of its lists
        ("span", np.int64),  # microseconds: the longest that an occurrence of the right operand takes
        ("window", np.int64),  # microseconds: the longest that one may take which anything still asks for
        ("parents", np.int64),  # the operators that work on it: AlgebraTables.parents[parents:parents_end]
        ("parents_end", np.int64),
    ]
)
TREE_SCRIPT = np.dtype([("start", np.int64), ("end", np.int64)])
TREE_SETTINGS = np.dtype(
    [
        ("regime", np.int64),
        ("lists", np.int64),  # of a key
        ("time_value", np.int64),  # or NONE
        ("most_open", np.int64),  # occurrences that a key keeps
        ("limits_drop", np.int64),  # 1: what is over a limit is dropped, the earliest start first; 0: it is an error
    ]
)


class AlgebraTables(NamedTuple):
    """Compiled trees of n operators."""

    settings: Records
    """(1,) TREE_SETTINGS."""
    operators: Records
    """(n,) TREE_OPERATOR."""
    parents: Ints
    leaves: Ints
    """(64,) the row of the leaf for each bit of an event's mask, or NONE."""
    delayed: Ints
    """The rows with timers."""
    roots: Ints
    scripts: Records
    """(scripts,) TREE_SCRIPT: where a script is in the code."""
    code: Records
    """(instructions,) INSTRUCTION."""
    constants: Ints
    columns: Ints
    """The columns that scripts read."""


class CompiledTrees(NamedTuple):
    """Trees ready to run."""

    trees: Trees
    tables: AlgebraTables


@dataclass(frozen=True)
class CompiledOccurrences:
    """Plans of occurrences ready to run."""

    plan: OccurrencePlans
    tables: AlgebraTables
    """Those of the first trees; code and constants are those of all."""
    each: tuple[CompiledTrees, ...]
    """One for each of the plans' tables."""
    string_constants: dict[int, str]
    """Strings among the constants, by number; their codes are the matcher's."""
    script_columns: frozenset[int]
    orders_texts: bool

    @property
    def relevant(self) -> int:
        """The bits of which an event must have one to matter."""
        return self.plan.relevant[0]


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
    """Trees of the same values and variables, whose scripts are appended to the program."""
    program = program or _program(forest[0])
    scripts = _scripts(forest)
    ranges = np.array([program.add(script) for script in scripts], TREE_SCRIPT)
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
                leaves[op.number] = row
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
            columns=np.array(columns, np.int64),
        )
        compiled.append(CompiledTrees(trees, tables))
    return tuple(compiled)


def tree_limits(limits: Limits) -> dict[str, int]:
    """Those of TREE_SETTINGS, in its order."""
    return {"most_open": limits.most_partial_matches, "limits_drop": limits.on_limit == "drop"}


def _operators(trees: Trees, scripts: Mapping[Script, int]) -> tuple[list[tuple[int, ...]], list[int], int]:
    """Rows of TREE_OPERATOR, the parents one behind the other, and how many lists a key has."""
    rows, parents = list[tuple[int, ...]](), list[int]()
    lists = 1  # before those of operators there is the list of the events of an instant
    windows, spans = windows_of(trees.operators, trees.roots), spans_of(trees.operators)
    for row, op in enumerate(trees.operators):
        script = NONE if op.script is None else scripts[op.script]
        span = spans[op.right] if op.right >= 0 else 0
        first = len(parents)
        parents += [parent for parent, other in enumerate(trees.operators) if row in other.operands]
        rows.append((op.kind, op.left, op.right, op.number, script, lists, span, windows[row], first, len(parents)))
        lists += _lists_of(op)
    return rows, parents, lists


def _scripts(forest: Iterable[Trees]) -> list[Script]:
    """Each once."""
    return list(dict.fromkeys(op.script for trees in forest for op in trees.operators if op.script is not None))


def _program(trees: Trees) -> Program:
    return Program(_slots(trees), trees.values)


def _slots(trees: Trees) -> tuple[Slot, ...]:
    """As many for each variable as it has places."""
    time = NONE if trees.time_value is None else trees.time_value
    kinds = (SlotKind.LAST, NONE), (SlotKind.LEAST_I, time), (SlotKind.GREATEST_I, time)
    return tuple(Slot(kind, variable, column) for variable in range(trees.variables) for kind, column in kinds)


def _lists_of(operator: Operator) -> int:
    """How many lists it keeps; WITHOUT has one for its latest start, too."""
    match operator.kind:
        case Kind.BOTH:
            return 2
        case Kind.THEN | Kind.WITHOUT | Kind.DELAYED:
            return 1
    return 0


def made_with(operators: Sequence[Operator], kind: Kind) -> list[bool]:
    """For each operator whether what it makes may come of one of this kind."""
    found: list[bool] = []
    for op in operators:
        given = op.operands[:1] if op.kind is Kind.WITHOUT else op.operands
        found.append(op.kind is kind or any(found[row] for row in given))
    return found
