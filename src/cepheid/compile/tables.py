"""The automaton and the scripts as arrays: all that the kernel knows of a pattern.

PROCEED edges are followed here, once, so that at run time a state has only TAKE and IGNORE edges. A guard is two
masks over one word of truth bits an event and partial match: bits that must be set and bits that must not. The word's
low bits are the event's mask of lifted conditions, the bits above are set by scripts, and the highest is always set
(`ALWAYS`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.compile.automaton import Action, Automaton, Demand, Edge, build_automaton
from cepheid.compile.script import Program, Slot, columns_of, plan_slots, source_of
from cepheid.errors import LimitExceeded
from cepheid.lang.pattern import Skip
from cepheid.plan.plan import Plan

Ints: TypeAlias = npt.NDArray[np.int64]
Records: TypeAlias = npt.NDArray[Any]
"""A structured array; its dtype is named beside it. Rows are read as `array[i].field`."""

ALWAYS = 63
"""The truth bit that every event has."""

NO_BIT = -1
FINAL = -1
IGNORED = -1
NONE = -1

STATE = np.dtype(
    [
        ("edges", np.int64),  # the first of the state's edges, and the one behind the last
        ("edges_end", np.int64),
        ("wake", np.int64),  # truth bits that can change a partial match; without any of them it stays as it is
        ("scripts", np.int64),  # the scripts that guards read: state_scripts[scripts:scripts_end]
        ("scripts_end", np.int64),
        ("complete", np.int64),  # 1 where a partial match that ends is a match
    ]
)
EDGE = np.dtype(
    [
        ("require", np.int64),  # truth bits that must be set
        ("forbid", np.int64),  # truth bits that must not be set
        ("target", np.int64),  # state, or FINAL
        ("stage", np.int64),  # the stage that takes the event, or IGNORED
        ("completes", np.int64),  # 1 where taking the event makes a match
    ]
)
SCRIPT = np.dtype(
    [
        ("start", np.int64),  # the first instruction, and the one behind the last
        ("end", np.int64),
        ("lifted", np.int64),  # the lifted truth bit without which the script is not run, or NO_BIT
        ("bit", np.int64),  # the truth bit that the script sets
    ]
)
INSTRUCTION = np.dtype([("op", np.int64), ("a", np.int64), ("b", np.int64)])
SLOT = np.dtype(
    [
        ("kind", np.int64),  # a SlotKind
        ("column", np.int64),  # or NONE
        ("source", np.int64),  # the slot that it looks at when it changes, or NONE
        ("initial", np.int64),  # NONE for positions of events, 0 for counts and sums
    ]
)
SETTINGS = np.dtype(
    [
        ("start", np.int64),  # the start state
        ("window", np.int64),  # microseconds from the first event of a match to its deadline, or NONE
        ("skips", np.int64),  # 1: skip past the last event, 0: no skip
    ]
)


class Tables(NamedTuple):
    """A compiled pattern: few arrays, because the kernel's functions are handed all of them."""

    settings: Records
    """(1,) SETTINGS."""
    states: Records
    """(states,) STATE."""
    edges: Records
    """(edges,) EDGE, those of a state one behind the other."""
    state_scripts: Ints
    """Numbers of scripts, those of a state one behind the other."""
    scripts: Records
    """(scripts,) SCRIPT."""
    code: Records
    """(instructions,) INSTRUCTION."""
    constants: Ints
    """Constants of the scripts, doubles as their bits."""
    stage_slots: Ints
    """(stages + 1,) taking an event for stage i changes the slots from stage_slots[i] to stage_slots[i + 1]."""
    slots: Records
    """(slots,) SLOT."""


@dataclass(frozen=True)
class CompiledPattern:
    """A plan ready to run."""

    plan: Plan
    automaton: Automaton
    tables: Tables
    string_constants: dict[int, str]
    """Strings among `Tables.constants`, by number; their codes are the matcher's."""
    script_columns: frozenset[int]
    """The lifted columns (numbers in Plan.values) that scripts read."""
    relevant: int | None
    """Mask of the lifted bits that an event must have one of to matter to any partial match; None: every event
    matters.
    """


def compile_plan(plan: Plan) -> CompiledPattern:
    """The automaton, tables and scripts of `plan`.

    Raises:
        LimitExceeded: more than 63 lifted conditions and scripts together.
    """
    automaton = build_automaton(plan.pattern)
    bits = _TruthBits(plan)
    flat = _flatten_all(automaton, bits)
    program = Program(plan_slots(bits.script_values, value_types := [v.type for v in plan.values]), value_types)
    ranges = [program.add(script) for script in bits.script_values]
    tables = _tables(plan, flat, bits, program, ranges)
    relevant = _union(flat.wake[number] for number in _reachable(flat))
    return CompiledPattern(
        plan=plan,
        automaton=automaton,
        tables=tables,
        string_constants=program.strings,
        script_columns=frozenset(column for script in bits.script_values for column in columns_of(script)),
        relevant=None if relevant >> ALWAYS else relevant,
    )


def relevance_text(compiled: CompiledPattern) -> str:
    """Which events are dropped before they are sorted and matched, in words."""
    if compiled.relevant is None:
        return "Dropped early: nothing, as any event can end a partial match or a condition needs no single event"
    conditions = [bit.sql for i, bit in enumerate(compiled.plan.bits) if compiled.relevant >> i & 1]
    return f"Dropped early: events for which none of these is true: {'; '.join(conditions)}"


@dataclass(frozen=True)
class FlatEdge:
    """A TAKE or IGNORE edge with its guard as masks."""

    target: int
    stage: int
    require: int
    forbid: int
    completes: bool


class _TruthBits:
    """Which truth bits the condition of each stage reads, and which scripts set them."""

    def __init__(self, plan: Plan) -> None:
        self.conditions = plan.conditions
        self.scripted = [i for i, condition in enumerate(plan.conditions) if condition.script is not None]
        self.script_values = [s for c in plan.conditions if (s := c.script) is not None]
        self.script_bits = [len(plan.bits) + i for i in range(len(self.scripted))]
        if len(plan.bits) + len(self.scripted) > ALWAYS:
            raise LimitExceeded(f"a pattern can have at most {ALWAYS} different conditions, this has more")

    def of_stage(self, stage: int) -> int | None:
        """The bit that says whether the condition of `stage` is true; None: it always is."""
        if stage in self.scripted:
            return self.script_bits[self.scripted.index(stage)]
        return self.conditions[stage].bit

    def waking(self, stage: int) -> int:
        """Mask of the bits without which the condition of `stage` is not true."""
        bit = self.conditions[stage].bit
        return 1 << (ALWAYS if bit is None else bit)

    def masks(self, guard: tuple[Demand, ...]) -> tuple[int, int] | None:
        """What a guard requires and forbids; None if it can never hold."""
        require = forbid = 0
        for demand in guard:
            bit = self.of_stage(demand.stage)
            if demand.negated:
                forbid |= 1 << (ALWAYS if bit is None else bit)
            elif bit is not None:
                require |= 1 << bit
        never = require & forbid or forbid >> ALWAYS
        return None if never else (require, forbid)


@dataclass(frozen=True)
class _FlatAutomaton:
    """An automaton without PROCEED edges: per state its edges, and the truth bits that can change a partial match."""

    automaton: Automaton
    edges: list[list[FlatEdge]]
    wake: list[int]


def _flatten_all(automaton: Automaton, bits: _TruthBits) -> _FlatAutomaton:
    edges = [[*_flatten(automaton, number, bits)] for number in range(len(automaton.states))]
    wake = [_wake(number, automaton, edges, bits) for number in range(len(edges))]
    wake[automaton.start] = _union(_needed(edge, bits) for edge in edges[automaton.start])
    return _FlatAutomaton(automaton, edges, wake)


def _flatten(automaton: Automaton, number: int, bits: _TruthBits) -> Iterator[FlatEdge]:
    """The TAKE and IGNORE edges of a state and of those it proceeds to."""
    for edge in automaton.states[number].edges:
        if edge.action is Action.PROCEED:
            yield from _flatten(automaton, edge.target, bits)
        elif masks := bits.masks(edge.guard):
            yield _flat_edge(automaton, edge, masks)


def _flat_edge(automaton: Automaton, edge: Edge, masks: tuple[int, int]) -> FlatEdge:
    takes = edge.action is Action.TAKE
    return FlatEdge(
        target=FINAL if edge.target == automaton.final else edge.target,
        stage=edge.guard[0].stage if takes else IGNORED,
        require=masks[0],
        forbid=masks[1],
        completes=takes and _reaches_final(automaton, edge.target),
    )


def _reaches_final(automaton: Automaton, number: int) -> bool:
    if number == automaton.final:
        return True
    edges = automaton.states[number].edges
    return any(_reaches_final(automaton, edge.target) for edge in edges if edge.action is Action.PROCEED)


def _wake(number: int, automaton: Automaton, edges: list[list[FlatEdge]], bits: _TruthBits) -> int:
    """The truth bits that can change a partial match in state `number`; ALWAYS if any event can.

    An event for which no condition is true leads by IGNORE edges to some states. If these states together have the very
    edges that `number` has, staying in `number` gives the same matches, so such an event need not be looked at.
    """
    idle = [edge for edge in edges[number] if edge.require == 0]
    rest = [edge.target for edge in idle if edge.stage == IGNORED]
    same_edges = Counter(edges[number]) == Counter(edge for target in rest for edge in edges[target])
    same_end = sum(automaton.states[target].complete for target in rest) == automaton.states[number].complete
    stays = len(rest) == len(idle) and same_edges and same_end
    return _union(_needed(edge, bits) for edge in edges[number]) if stays else 1 << ALWAYS


def _needed(edge: FlatEdge, bits: _TruthBits) -> int:
    return bits.waking(edge.stage) if edge.stage != IGNORED else 0


def _reachable(flat: _FlatAutomaton) -> set[int]:
    start = flat.automaton.start
    reached, open_ = {start}, [start]
    while open_:
        new = {edge.target for edge in flat.edges[open_.pop()]} - reached - {FINAL}
        reached |= new
        open_ += new
    return reached


def _tables(
    plan: Plan, flat: _FlatAutomaton, bits: _TruthBits, program: Program, ranges: list[tuple[int, int]]
) -> Tables:
    edges = [edge for state in flat.edges for edge in state]
    read = [_scripts_read(state, bits) for state in flat.edges]
    window, skips = plan.window, plan.pattern.skip_strategy is Skip.PAST_LAST_EVENT
    return Tables(
        settings=_records(SETTINGS, [(flat.automaton.start, NONE if window is None else window, skips)]),
        states=_records(STATE, _state_rows(flat, read)),
        edges=_records(EDGE, [(_signed(e.require), _signed(e.forbid), e.target, e.stage, e.completes) for e in edges]),
        state_scripts=_ints([script for scripts in read for script in scripts]),
        scripts=_records(SCRIPT, _script_rows(plan, bits, ranges)),
        code=_records(INSTRUCTION, program.instructions),
        constants=_ints(program.constants),
        stage_slots=_ints(_offsets(sum(s.stage == i for s in program.slots) for i in range(len(plan.conditions)))),
        slots=_records(SLOT, [_slot_row(slot, program.slots) for slot in program.slots]),
    )


def _state_rows(flat: _FlatAutomaton, read: list[list[int]]) -> list[tuple[int, ...]]:
    first_edge, first_script = _offsets(map(len, flat.edges)), _offsets(map(len, read))
    return [
        (*first_edge[i : i + 2], _signed(flat.wake[i]), *first_script[i : i + 2], state.complete)
        for i, state in enumerate(flat.automaton.states)
    ]


def _script_rows(plan: Plan, bits: _TruthBits, ranges: list[tuple[int, int]]) -> list[tuple[int, ...]]:
    lifted = [NO_BIT if (bit := plan.conditions[stage].bit) is None else bit for stage in bits.scripted]
    return [(*range_, *row) for range_, row in zip(ranges, zip(lifted, bits.script_bits, strict=True), strict=True)]


def _slot_row(slot: Slot, slots: tuple[Slot, ...]) -> tuple[int, ...]:
    source = source_of(slot, slots)
    return slot.kind, slot.column, NONE if source is None else source, 0 if slot.kind.accumulates else NONE


def _scripts_read(edges: list[FlatEdge], bits: _TruthBits) -> list[int]:
    read = _union(edge.require | edge.forbid for edge in edges)
    return [script for script, bit in enumerate(bits.script_bits) if read >> bit & 1]


def _union(masks: Iterable[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


def _ints(values: Iterable[int]) -> Ints:
    return np.array([*values], dtype=np.int64)


def _records(dtype: np.dtype[Any], rows: Sequence[tuple[int, ...]]) -> Records:
    return np.array([*rows], dtype=dtype)


def _signed(mask: int) -> int:
    """A 64-bit mask as the signed integer with the same bits."""
    return mask - (1 << 64) if mask >> 63 else mask


def _offsets(counts: Iterable[int]) -> list[int]:
    return [0, *accumulate(counts)]
