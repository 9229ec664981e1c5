"""Sub-keys: values that all events of a match have in common, so that they may extend the key.

A value is a sub-key if every condition of the pattern, but that of its first stage, demands that it equals the value of
an event taken before: the conditions of stages, of negated stages and of `until`. An event with another value is then
in no match with these events, and does not end their partial matches. NULL equals nothing, so events without the value
are a group like any other: what their partial matches wait for never comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cepheid.lang.stages.pattern import Contiguity, SkipTo, Stage
from cepheid.plan.conditions.script import CurrentValue
from cepheid.plan.stages.equalities import equalities, without_others
from cepheid.plan.stages.explain import script_text
from cepheid.plan.stages.plan import Plan
from cepheid.plan.stages.plans import Plans
from cepheid.plan.sub_keys import common_sub_keys, in_order, is_identified
from cepheid.plan.tiers import Side
from cepheid.plan.undivided import Undivided


def sub_keys_of_all(plans: Plans) -> tuple[Side, ...] | Undivided:
    """The sub-keys that all patterns have in common, with the columns' numbers among those of all patterns."""
    return common_sub_keys(plans, [sub_keys_of(plan) for plan in plans.each])


def sub_keys_of(plan: Plan) -> tuple[Side, ...] | Undivided:
    """All sub-keys of the pattern, which together extend the key; otherwise the reasons why there are none."""
    reasons = [*_obstacles(plan)]
    conditions = len(plan.conditions) - (plan.pattern.without is not None)
    tied = {number: _tied(plan, number) for number in range(1, conditions)}
    untied = [number for number, sides in tied.items() if not sides]
    if reasons or untied or not tied:
        return Undivided((*reasons, *_untied(plan, untied)) or ("it has one stage",))
    common = frozenset.intersection(*tied.values())
    known = [side for side in common if is_identified(side, plan)]
    if not common:
        return Undivided(("no equality is common to all of its conditions",))
    if not known:
        values = " and ".join(value_text(side, plan) for side in in_order(common))
        return Undivided((f"{values} is not among the columns that identify an event: choose it with columns=",))
    return in_order(known)


def sub_keys_text(plan: Plan) -> str:
    """Whether sub-keys divide a key, in words."""
    sides = sub_keys_of(plan)
    if isinstance(sides, Undivided):
        return f"by a value: cannot, because {sides.text}"
    values = " and ".join(value_text(side, plan) for side in sides)
    return f"by {values}: Spark does so in any case, because all events of a match have the same value"


def _obstacles(plan: Plan) -> Iterator[str]:
    """The clauses for which events of other values matter."""
    pattern = plan.pattern
    if pattern.functions:
        yield "a condition is a Python function"
    if any(part.quantifier.loops for part in _leading(pattern.stages[0])):
        yield f"{pattern.stages[0].label} is first and may take several events, of which nothing ties the first"
    for number, stage in enumerate(pattern.stages):
        yield from (f"{part.label} takes the directly next event" for part in _strict(stage, leads=number == 0))
    if pattern.without is not None:
        yield f"{pattern.without.label} looks at events before the match"
    if pattern.skip_strategy.to is not SkipTo.NO_SKIP:
        yield "its skip strategy lets matches exclude each other"
    parts = [part for stage in pattern.stages for part in stage.parts]
    # What a greedy loop leaves to the next stage depends on whether any event came in between, as in FlinkCEP.
    yield from (f"{part.label} is greedy" for part in parts if part.quantifier.greedy)
    branching = [part for part in parts if _may_branch(part)]
    negated = [part for part in parts if part.contiguity.negated]
    if branching and negated:
        # FlinkCEP takes a loop that ignores an event to a state of its own, where the NOT stage no longer ends it.
        yield f"{branching[0].label} may branch at any event, and {negated[0].label} does not end all branches"
    if asked := [name for name in ("timeouts", "no_match") if name in (plan.outputs or ())]:
        # Any event lets a partial match that may go on in two ways branch, and each branch then ends by itself.
        yield from (f"{part.label} may branch at any event, which shows in {asked[0]}" for part in branching)
    if plan.limits.on_limit == "drop" or plan.limits.max_partial_matches is not None:
        yield "limits count the partial matches of a key"


def _may_branch(stage: Stage) -> bool:
    return stage.quantifier.loops or stage.quantifier.optional


def _leading(stage: Stage) -> Iterator[Stage]:
    """The stage and, for a group, what leads it."""
    yield stage
    if stage.group:
        yield from _leading(stage.group[0])


def _strict(stage: Stage, *, leads: bool) -> Iterator[Stage]:
    """The parts of the stage that another event ends by coming in between; `leads` says that it begins the pattern."""
    if stage.quantifier.consecutive or (not leads and stage.contiguity in (Contiguity.STRICT, Contiguity.NOT_NEXT)):
        yield stage
    for number, part in enumerate(stage.group):
        yield from _strict(part, leads=number == 0)


def _tied(plan: Plan, number: int) -> frozenset[Side]:
    """The values that the condition demands to equal those of an event taken before, in the same column."""
    return frozenset(one.value for one in without_others(plan, number) if one.value == one.earlier)


def _untied(plan: Plan, numbers: Sequence[int]) -> Iterator[str]:
    """Why these conditions tie no event to an earlier one."""
    leaves, loops = plan.pattern.leaves, plan.pattern.loops_until
    without: list[str] = []
    for number in numbers:
        what = leaves[number].label if number < len(leaves) else f"the until of {loops[number - len(leaves)].label}"
        if any(one.value == one.earlier for one in equalities(plan, number)):
            yield f"the condition of {what} can fail, and its equality may be NULL"
        else:
            without.append(what)
    if without:
        have = f"{', '.join(without[:-1])} and {without[-1]} have" if len(without) > 1 else f"{without[0]} has"
        yield f"{have} no equality with the same column of an earlier event"


def value_text(side: Side, plan: Plan) -> str:
    """The value of the current event as SQL."""
    return script_text(CurrentValue(side.column, side.type), plan)
