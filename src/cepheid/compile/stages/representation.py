"""How the kernel stores the partial matches of a pattern: one by one, or in sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cepheid.compile.stages.compiled import CompiledPattern
from cepheid.compile.stages.lookups import StateLookup
from cepheid.compile.stages.tables import SkipKind
from cepheid.plan.stages.explain import script_text
from cepheid.plan.stages.ties import ties_of


@dataclass(frozen=True)
class Representation:
    """Whether sets can be used and, if not, the reasons in words."""

    sets: bool
    reasons: tuple[str, ...] = ()


def choose_representation(compiled: CompiledPattern) -> Representation:
    """Sets, if nothing distinguishes the partial matches in one state."""
    reasons = tuple(_reasons(compiled))
    return Representation(sets=not reasons, reasons=reasons)


def representation_text(compiled: CompiledPattern) -> str:
    """The representation and the reasons for it, in words."""
    representation = choose_representation(compiled)
    if representation.sets:
        return "Partial matches: in sets, so that an event costs the same however many are open"
    return f"Partial matches: one by one, as {' and '.join(representation.reasons)}"


def lookups_text(compiled: CompiledPattern) -> str:
    """For each state how an event finds the partial matches in it that it can change, in words; empty if no condition
    compares an event with earlier ones by =, < or >.
    """
    if not ties_of(compiled.plan):
        return ""
    automaton, lines = compiled.automaton, []
    for number, lookup in enumerate(compiled.lookups):
        if number in (automaton.start, automaton.final) or not (lookup.ties or lookup.why):
            continue  # no partial match is ever there
        what = "all that wait there"
        if lookup.ties:
            ties = " AND ".join(script_text(tie.comparison_script, compiled.plan) for tie in lookup.ties)
            what = f"only those with {ties}"
        lines.append(f"  In state {automaton.states[number].name!r} an event visits {what}{_because(lookup)}\n")
    return "".join(dict.fromkeys(lines))


def _because(lookup: StateLookup) -> str:
    if not lookup.why:
        return ""
    return f"; {lookup.why}" if lookup.ties else f", as {lookup.why}"


def _windows(compiled: CompiledPattern) -> Iterator[str]:
    tables = compiled.tables
    if (tables.states["window"] >= 0).any() or (tables.edges["window"] >= 0).any():
        yield "the time between consecutive events is bounded"
    if compiled.deadlines is not None:
        yield "the window follows the calendar"


def _reasons(compiled: CompiledPattern) -> Iterator[str]:
    tables = compiled.tables
    if compiled.plan.functions:
        yield "a condition is a function in Python"
    elif compiled.plan.runs_in_python:
        yield "a condition computes texts of several events, in Python"
    if len(tables.scripts):
        yield "a condition looks at earlier events of the match"
    if any(stage.group for stage in compiled.plan.pattern.stages):
        yield "the pattern has groups"
    if tables.settings["skip"][0] != SkipKind.NO_SKIP:
        yield "the skip strategy drops single partial matches"
    yield from _windows(compiled)
    if tables.states["complete"].any():
        yield "`longest` emits what a loop has when it ends"
    if (tables.states["pending"] & ~tables.states["complete"]).any():
        yield "matches become certain when their time passes"
    if compiled.plan.pattern.without is not None:
        yield "`begin_without` looks at events before the match"
    if compiled.plan.limits.on_limit == "drop":
        yield "what is over a limit is dropped one by one"
    if tables.settings["timeouts"][0] and tables.settings["window"][0] >= 0:
        yield "timeouts are asked for"
    if tables.settings["no_match"][0] and any(leaf.contiguity.negated for leaf in compiled.plan.pattern.leaves):
        yield "partial matches without a match are asked for"
