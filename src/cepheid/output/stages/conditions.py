"""Conditions of single events: each conjunct with its result and the values that it looked at."""

from __future__ import annotations

from collections.abc import Sequence

from cepheid.errors import ConditionError
from cepheid.events.batch import Batch
from cepheid.kernel.reference_events import Event, TakenEvents
from cepheid.kernel.scripts.python_functions import FunctionFailed
from cepheid.kernel.scripts.reference import evaluate
from cepheid.kernel.stages.python_events import events_of
from cepheid.output.conditions import Evaluated, Operand, StageCondition
from cepheid.output.values import given_value
from cepheid.plan.stages.near.probes import Probe, Probes, Side


def probed_events(probes: Probes, batch: Batch) -> list[Event]:
    """The events of a batch that was lifted for the probes."""
    return [*events_of(frozenset(range(len(probes.values))), batch, 0)]


def evaluated(probe: Probe, taken: TakenEvents, event: Event) -> Evaluated | None:
    """The result of the probe for an event and a partial match; None if it cannot be evaluated on its own."""
    if probe.script is None:
        return None
    try:
        result = evaluate(probe.script, taken, event.values)
        operands = tuple(_operand(side, taken, event) for side in probe.sides)
    except (ConditionError, FunctionFailed):
        return None
    return Evaluated(probe.text, result, operands, probe.operator, probe.zone)


def whole_condition(
    of: str, probes: Sequence[Probe], taken: TakenEvents, event: Event, *, holds: bool
) -> StageCondition:
    """The condition with these conjuncts; `holds` says whether matching has found it true."""
    parts = tuple(one for probe in probes if (one := evaluated(probe, taken, event)) is not None)
    results = {one.result for one in parts}
    unknown = None in results and False not in results and len(parts) == len(probes)
    return StageCondition(of, True if holds else None if unknown else False, parts)


def _operand(side: Side, taken: TakenEvents, event: Event) -> Operand:
    value = given_value(evaluate(side.script, taken, event.values), side.script.type)
    return Operand(side.text, value, is_constant=side.is_constant)
