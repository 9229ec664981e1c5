"""A compiled plan: its automaton and scripts as arrays, which are everything the kernel knows about a pattern."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.compile.arrays import INSTRUCTION, NONE, Ints, Records, signed
from cepheid.compile.script import Program, Slot, columns_of, orders_texts, plan_slots, source_of
from cepheid.compile.stages.automaton import Automaton, Without, build_automaton, gap, leads_to_complete
from cepheid.compile.stages.flatten import FlatAutomaton, FlatEdge, TruthBits, flatten, reachable, union
from cepheid.compile.stages.lookups import StateLookup, choose_lookups
from cepheid.compile.stages.specialised import PatternScripts, Specialised, specialise, unspecialised
from cepheid.compile.stages.starts import starts_of
from cepheid.compile.stages.tables import (
    ALWAYS,
    EDGE,
    NO_BIT,
    SCRIPT,
    SETTINGS,
    SLOT,
    STATE,
    TIE,
    Lookup,
    SkipKind,
    Tables,
)
from cepheid.compile.stages.untils import Untils, untils_of
from cepheid.lang.stages.pattern import Skip
from cepheid.plan.calendar import Deadlines
from cepheid.plan.condition_bits import MAX_CONDITIONS
from cepheid.plan.conditions.script import Operator
from cepheid.plan.limits import MOST, Limits
from cepheid.plan.semantics.explain import shortened
from cepheid.plan.stages.plan import Plan
from cepheid.plan.stages.ties import Tie

INDEX_LEAST, INDEX_AFTER = 64, 2
"""An index is made after three events have visited at least 64 partial matches each. To make it costs about as much as
two of these visits.
"""


@dataclass(frozen=True)
class CompiledPattern:
    """A plan ready to run."""

    plan: Plan
    automaton: Automaton
    tables: Tables
    """The tables have no scripts if the plan runs in Python: the reference step reads the plan itself."""
    string_constants: dict[int, str]
    """The strings among `Tables.constants`, by number. The matcher sets their codes."""
    script_columns: frozenset[int]
    """The lifted columns (numbers in Plan.values) that scripts read."""
    orders_texts: bool
    """Whether scripts compare strings by their order."""
    relevant: int | None
    """A mask of lifted bits: an event without any of them matters to no partial match. None: every event matters."""
    starting: int | None
    """A mask of lifted bits: an event without any of them starts no partial match. None: every event may."""
    lookups: tuple[StateLookup, ...]
    """For each state of the automaton, how an event finds the partial matches in it."""
    untils: Untils
    demands: list[frozenset[int] | None]
    """For each state of the automaton, the conditions that can change a partial match in it: see `FlatAutomaton`."""

    @property
    def deadlines(self) -> Deadlines | None:
        """How deadlines follow from the times of events, if the window follows the calendar."""
        return self.plan.deadlines

    @property
    def may_start(self) -> int:
        """The mask's bit of events that may start partial matches in a detector that starts them with marked events
        only; 0 if the conditions need all bits.
        """
        return 1 << MAX_CONDITIONS - 1 if self.plan.truth_bits < MAX_CONDITIONS else 0


def compile_plan(plan: Plan) -> CompiledPattern:
    """The automaton, tables and scripts of `plan`."""
    return _compiled(plan, build_automaton(plan.pattern))


def compile_starts(plan: Plan) -> CompiledPattern:
    """Finds the events that start a partial match of `plan`, also those that `begin_without` forbids: each is a match
    of its own. No skip strategy and no limit applies.
    """
    plan = replace(plan, pattern=plan.pattern.skip(Skip.no_skip()), limits=Limits(), outputs=("matches",))
    return _compiled(plan, starts_of(build_automaton(plan.pattern)))


def _compiled(plan: Plan, automaton: Automaton) -> CompiledPattern:
    bits = TruthBits(plan)
    flat = flatten(automaton, bits)
    values = [] if plan.runs_in_python else bits.script_values
    program = Program(plan_slots(values, value_types := [v.type for v in plan.values]), value_types)
    lookups = choose_lookups(plan, flat, bits)
    scripts = PatternScripts(bits, program) if plan.runs_in_python else PatternScripts.of(bits, program)
    special = unspecialised(flat) if plan.runs_in_python else specialise(flat, scripts)
    relevant = union(flat.wake[number] for number in reachable(flat))
    if bits.without is not None:
        relevant |= bits.waking(bits.without)
    return CompiledPattern(
        plan=plan,
        automaton=automaton,
        tables=_tables(plan, special, scripts, lookups),
        string_constants=program.strings,
        script_columns=frozenset(column for script in bits.script_values for column in columns_of(script)),
        orders_texts=any(orders_texts(script) for script in bits.script_values),
        relevant=None if relevant >> ALWAYS else relevant,
        starting=None if (starting := flat.wake[automaton.start]) >> ALWAYS else starting,
        lookups=lookups,
        untils=untils_of(plan, flat, bits, special.known),
        demands=flat.demands,
    )


def relevance_text(compiled: CompiledPattern) -> str:
    """Which events are dropped before they are sorted and matched, in words."""
    if compiled.relevant is None:
        return "Dropped early: nothing, as any event can end a partial match or a condition needs no single event"
    conditions = [shortened(bit.sql) for i, bit in enumerate(compiled.plan.bits) if compiled.relevant >> i & 1]
    return f"Dropped early: events for which none of these is true: {'; '.join(conditions)}"


def _tables(plan: Plan, special: Specialised, scripts: PatternScripts, lookups: Sequence[StateLookup]) -> Tables:
    flat, read, bits, program = special.flat, special.scripts, scripts.bits, scripts.program
    edges = [edge for state in flat.edges for edge in state]
    ties = [_tie_row(tie, program) for lookup in lookups for tie in lookup.ties]
    return Tables(
        settings=_records(SETTINGS, [_settings(plan, flat, bits, lookups)]),
        states=_records(STATE, _state_rows(flat, read, lookups)),
        edges=_records(EDGE, [_edge_row(edge) for edge in edges]),
        state_scripts=_ints([script for numbers in read for script in numbers]),
        scripts=_records(SCRIPT, _script_rows(scripts)),
        code=_records(INSTRUCTION, program.instructions),
        constants=_ints(program.constants),
        stage_slots=_ints(_offsets(sum(s.stage == i for s in program.slots) for i in range(len(plan.conditions)))),
        slots=_records(SLOT, [_slot_row(slot, program.slots) for slot in program.slots]),
        ties=_records(TIE, ties),
    )


def _state_rows(flat: FlatAutomaton, read: list[list[int]], lookups: Sequence[StateLookup]) -> list[tuple[int, ...]]:
    first_edge, first_script = _offsets(map(len, flat.edges)), _offsets(map(len, read))
    first_tie = _offsets(len(lookup.ties) for lookup in lookups)
    return [
        (
            *first_edge[i : i + 2],
            signed(flat.wake[i]),
            signed(flat.changing[i]),
            *first_script[i : i + 2],
            leads_to_complete(flat.automaton, i),
            state.pending,
            _or_none(gap(flat.automaton, i)),
            lookups[i].kind,
            *first_tie[i : i + 2],
            lookups[i].nulls,
            signed(lookups[i].visits_all),
        )
        for i, state in enumerate(flat.automaton.states)
    ]


def _edge_row(edge: FlatEdge) -> tuple[int, ...]:
    masks = signed(edge.require), signed(edge.forbid)
    return *masks, edge.target, edge.stage, edge.completes, edge.leaves, edge.after, edge.window, edge.negation


def _tie_row(tie: Tie, program: Program) -> tuple[int, ...]:
    sides = (*program.add(tie.value), *program.add(tie.earlier))
    return *sides, pa.types.is_floating(tie.value.type), tie.value_first, tie.comparison is Operator.LESS


def _settings(plan: Plan, flat: FlatAutomaton, bits: TruthBits, lookups: Sequence[StateLookup]) -> tuple[int, ...]:
    skip = plan.skip
    indexed = any(lookup.kind != Lookup.ALL for lookup in lookups)
    return (
        flat.automaton.start,
        _or_none(plan.window),
        plan.deadlines is not None
        or any(gap(flat.automaton, i) is not None for i in range(len(flat.automaton.states))),
        SkipKind[skip.to.name],
        _or_none(skip.stage),
        skip.error_on_miss,
        any(stage.group for stage in plan.pattern.stages),
        bool(flat.automaton.loop),
        "timeouts" in (plan.outputs or ()),
        "no_match" in (plan.outputs or ()),
        *limit_settings(plan.limits).values(),
        INDEX_LEAST if indexed else NONE,
        INDEX_AFTER,
        *_without_settings(flat.automaton.without, bits),
        NONE if plan.deadlines is None else len(plan.values),
    )


def _without_settings(without: Without | None, bits: TruthBits) -> tuple[int, ...]:
    if without is None:
        return NONE, NO_BIT, NO_BIT, NONE
    scripted = without.condition in bits.scripted
    script = bits.scripted.index(without.condition) if scripted else NONE
    bit = bits.conditions[without.condition].bit
    return without.window, bits.kept_out, NO_BIT if bit is None else bit, script


def limit_settings(limits: Limits) -> dict[str, int]:
    """The fields of SETTINGS that limits decide, in their order."""
    return {
        "most_partial_matches": limits.most_partial_matches,
        "most_in_sets": MOST if limits.max_partial_matches is None else limits.max_partial_matches,
        "most_matches": limits.max_matches_per_event,
        "limits_drop": limits.on_limit == "drop",
    }


def _or_none(value: int | None) -> int:
    return NONE if value is None else value


def _script_rows(scripts: PatternScripts) -> list[tuple[int, ...]]:
    bits = scripts.bits
    return [
        (*range_, signed(bits.waking(bits.scripted[condition])), signed(1 << bits.script_bits[condition]))
        for range_, condition in zip(scripts.ranges, scripts.conditions, strict=True)
    ]


def _slot_row(slot: Slot, slots: tuple[Slot, ...]) -> tuple[int, ...]:
    source = source_of(slot, slots)
    return slot.kind, slot.column, NONE if source is None else source, 0 if slot.kind.accumulates else NONE


def _ints(values: Iterable[int]) -> Ints:
    return np.array([*values], dtype=np.int64)


def _records(dtype: np.dtype[Any], rows: Sequence[tuple[int, ...]]) -> Records:
    return np.array([*rows], dtype=dtype)


def _offsets(counts: Iterable[int]) -> list[int]:
    return [0, *accumulate(counts)]
