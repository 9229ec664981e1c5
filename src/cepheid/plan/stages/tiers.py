"""The tiers of a pattern, found in its ties: see `cepheid.plan.tiers`.

Partial matches of such a pattern do not affect each other, and an event leaves one unchanged unless it meets the
condition of the next stage. An event without the same value never meets it, so it need not be seen. This is also why
the clauses that `_obstacle` lists cannot be divided.

Nor can conditions that can fail: where an equality is NULL, the rest of the condition is still evaluated, and may fail.
The exception are values that are not NULL because the stages demand it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from cepheid.lang.stages.pattern import Contiguity, SkipTo, Stage
from cepheid.plan.condition_bits import MAX_CONDITIONS
from cepheid.plan.conditions.script import StageValue, can_fail
from cepheid.plan.stages.division.sub_keys import sub_keys_of, value_text
from cepheid.plan.stages.equalities import Equality, equalities, without_others
from cepheid.plan.stages.explain import script_text
from cepheid.plan.stages.plan import Plan
from cepheid.plan.stages.plans import Plans
from cepheid.plan.sub_keys import is_identified
from cepheid.plan.tiers import Link, Side, Tier
from cepheid.plan.undivided import Undivided


def tiers_of_all(plans: Plans) -> tuple[Tier, ...] | str:
    """The tiers of a pattern, or a single tier of several patterns, whose columns have their numbers among those of all
    patterns. Otherwise the reason why there are none.
    """
    each = [tiers_of(plan) for plan in plans.each]
    if len(each) == 1:
        return each[0]
    common: set[Side] | None = None
    for plan, tiers, place in zip(plans.each, each, plans.places, strict=True):
        if isinstance(tiers, str):
            return f"pattern {plan.pattern.name!r}: {tiers}"
        if len(tiers) > 1:
            return f"pattern {plan.pattern.name!r} has several tiers, and there are other patterns"
        own = {Side(place.values[link.value.column], link.value.type) for link in tiers[0].links}
        common = own if common is None else common & own
    if not common:
        return "the patterns have no equality in common"
    sides = sorted(common, key=lambda side: side.column)
    return (Tier(0, 0, tuple(Link(0, side, side) for side in sides)),)


def tiers_of(plan: Plan) -> tuple[Tier, ...] | str:
    """The pattern's tiers in the order of its stages: one if all events of a match have the same value. Otherwise the
    reason why there are none.

    Where the events of the first stages cannot be found by one value, the first tier has the first stage alone.
    """
    obstacle = _obstacle(plan)
    if obstacle is not None:
        return obstacle
    equal, last = _Equal(), len(plan.pattern.leaves) - 1
    ties = [[*_equalities(plan, stage)] for stage in range(last + 1)]
    tiers: list[Tier] = []
    first = 1
    while first <= last:
        stage, links = first, _links(ties[first], equal, first)
        if not links:
            return _untied(plan, first)
        if not tiers and (shared := [link for link in links if _is_shared(link, plan)]):
            links = shared
        elif not tiers:
            tiers.append(Tier(0, 0, ()))
        equal.add(ties[first])
        while stage < last and (more := [link for link in links if _continues(ties[stage + 1], equal, link, first)]):
            stage, links = stage + 1, more
            equal.add(ties[stage])
        tiers.append(Tier(first if tiers else 0, stage, tuple(links)))
        first = stage + 1
    if len(tiers) > 1 and len(plan.bits) + len(plan.conditions) + 2 > MAX_CONDITIONS:
        return "it has too many conditions for tiers"
    return tuple(tiers)


IN_BLOCKS = "Spark batch: events are shuffled in blocks by key, and sorted by Cepheid's workers"
"""How Spark finds a pattern with a key, in words."""


def tiers_text(plan: Plan) -> str:
    """How a host that divides the work, as Spark does, finds a pattern without key, in words."""
    tiers = tiers_of(plan)
    if isinstance(tiers, str):
        if isinstance(sub_keys := sub_keys_of(plan), Undivided):
            return f"Spark: in one task, as {tiers}"
        return _as_key(" and ".join(value_text(side, plan) for side in sub_keys))
    names = [leaf.name for leaf in plan.pattern.leaves]
    links = [" and ".join(_link_text(link, plan) for link in tier.links) for tier in tiers]
    if len(tiers) == 1:
        return _as_key(links[0])
    stages = [", ".join(names[tier.first : tier.last + 1]) for tier in tiers]
    parts = (f"{own} by {by}" if by else own for own, by in zip(stages, links, strict=True))
    return f"Spark batch (streams in one task): in tiers: {'; then '.join(parts)}"


def _as_key(values: str) -> str:
    return f"Spark: by {values}, as if it were the key, because all events of a match have the same value"


def _link_text(link: Link, plan: Plan) -> str:
    value = value_text(link.value, plan)
    if link.stage == 0 and link.earlier == link.value:
        return value
    return f"{value} = {script_text(StageValue(link.stage, link.earlier.column, link.earlier.type), plan)}"


def _obstacle(plan: Plan) -> str | None:
    """The clause because of which events of other values matter."""
    pattern = plan.pattern
    if pattern.calendar is not None:
        return "within follows the calendar, so its length differs"
    if pattern.functions:
        return "a condition is a Python function"
    for number, stage in enumerate(pattern.stages):
        if (clause := _clause(stage, is_first=number == 0)) is not None:
            return f"{stage.label} {clause}"
    if pattern.without is not None:
        return f"{pattern.without.label} looks at events before the match"
    if pattern.skip_strategy.to is not SkipTo.NO_SKIP:
        return "the skip strategy lets matches exclude each other"
    if "timeouts" in (plan.outputs or ()):
        return "timeouts are requested"
    if plan.limits.on_limit == "drop":
        return "limits that drop partial matches compare all of them"
    script = plan.conditions[0].script
    if script is not None and can_fail(script):
        return f"the condition of {pattern.leaves[0].label} can fail"
    return "it has one stage" if len(pattern.stages) == 1 else None


def _clause(stage: Stage, *, is_first: bool) -> str | None:
    if stage.group or stage.quantifier.loops or stage.quantifier.optional:
        return "may take several events, or none"
    if stage.contiguity.negated:
        return "takes no event"
    if stage.contiguity is Contiguity.STRICT and not is_first:
        return "takes the directly next event"
    return None


class _Node(NamedTuple):
    """A side, for the event of a stage."""

    stage: int
    side: Side


class _Equality(NamedTuple):
    """A tie whose sides a host can compute."""

    value: _Node
    earlier: _Node


def _equalities(plan: Plan, stage: int) -> Iterator[_Equality]:
    """The equalities that every event of the stage meets, if others may be left out."""
    yield from _with_earlier_stages(without_others(plan, stage), stage)


def _with_earlier_stages(each: Iterable[Equality], stage: int) -> Iterator[_Equality]:
    for one in each:
        if one.is_outermost and one.stage < stage:
            yield _Equality(_Node(stage, one.value), _Node(one.stage, one.earlier))


class _Equal:
    """Which nodes have the same value in every partial match that has their stages."""

    def __init__(self) -> None:
        self._class: dict[_Node, frozenset[_Node]] = {}

    def add(self, equalities: Sequence[_Equality]) -> None:
        for one in equalities:
            joined = self.of(one.value) | self.of(one.earlier)
            self._class.update(dict.fromkeys(joined, joined))

    def of(self, node: _Node) -> frozenset[_Node]:
        return self._class.get(node, frozenset([node]))


def _links(equalities: Sequence[_Equality], equal: _Equal, first: int) -> list[Link]:
    """One link for each value of the stage's events; that with the earliest stage."""
    found: dict[Side, Link] = {}
    for one in equalities:
        known = (node for node in equal.of(one.earlier) if node.stage < first)
        earliest = min(known, key=lambda node: (node.stage, node.side.column))
        link = Link(earliest.stage, earliest.side, one.value.side)
        if one.value.side not in found or link.stage < found[one.value.side].stage:
            found[one.value.side] = link
    return [*found.values()]


def _continues(equalities: Sequence[_Equality], equal: _Equal, link: Link, first: int) -> bool:
    """Whether the events of a next stage have the link's value, too."""
    same = equal.of(_Node(first, link.value))
    return any(one.value.side == link.value and one.earlier in same for one in equalities)


def _untied(plan: Plan, stage: int) -> str:
    label = plan.pattern.leaves[stage].label
    if [*_with_earlier_stages(equalities(plan, stage), stage)]:
        return f"the condition of {label} can fail, and its equality may be NULL"
    return f"{label} has no equality with a column of an earlier stage"


def _is_shared(link: Link, plan: Plan) -> bool:
    """Whether all events of the first tier, those of the first stage too, can be found by the same value."""
    return link.earlier == link.value and is_identified(link.value, plan)
