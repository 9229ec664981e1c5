"""Problems of an interval pattern that do not depend on events: variables, parts, counts, impossible orders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from cepheid.errors import Problem, did_you_mean
from cepheid.lang.intervals.grammar import quoted
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.intervals.values import Comparison, Negation, Scope, related, variables_of
from cepheid.plan.intervals.bounds import contradiction
from cepheid.plan.reserved import COMMON

MAX_VARIABLES = 30
"""The most positive variables: sets of variables are bits of one word."""


def interval_problems(pattern: IntervalPattern, key: Sequence[str] = ()) -> list[Problem]:
    """All problems of the pattern that do not depend on events; `key` has the names of the events' key columns."""
    undeclared = list(_undeclared(pattern))
    problems = [*_variable_problems(pattern, key), *undeclared, *_part_problems(pattern), *_tree_problems(pattern)]
    problems += [
        Problem(f"{pair.left} and {pair.right} are related by none of the relations", "relate")
        for pair in pattern.pairs
        if not pair.relations
    ]
    if not problems and (circle := contradiction(pattern)):
        message = f"these cannot hold together: {'; '.join(circle)}"
        problems.append(Problem(message, "order", hint="Take one of them out, or turn it round."))
    return problems


def _variable_problems(pattern: IntervalPattern, key: Sequence[str]) -> Iterator[Problem]:
    if not pattern.positives:
        yield Problem("a pattern has at least one event that is not negated", "EVENT")
    if len(pattern.positives) > MAX_VARIABLES:
        message = f"a pattern can have at most {MAX_VARIABLES} events, this has {len(pattern.positives)}"
        yield Problem(message, "EVENT")
    names = Counter(v.lower() for v in pattern.variables)
    for v in dict.fromkeys(v for v in pattern.variables if names[v.lower()] > 1):
        named = [(p.variable, p.type) for p in pattern.positives] + [(n.variable, n.type) for n in pattern.negations]
        first, second, *_ = (type_ for name, type_ in named if name.lower() == v.lower())
        hint = f"Give each event a variable of its own: {first} first, {second} second."
        yield Problem(f"{names[v.lower()]} events have the variable {v!r}", "EVENT", hint=hint)
    taken = {name.lower() for name in (*COMMON, *key)}
    for v in pattern.variables:
        if v.lower() in taken:
            yield Problem(f"the variable {v!r} has the name of an output column", "EVENT", hint="Rename it.")


def _undeclared(pattern: IntervalPattern) -> Iterator[Problem]:
    known = [p.variable for p in pattern.positives]
    for where, v in _uses(pattern):
        if v not in known:
            negated = v in pattern.variables
            message = (
                f"{v!r} is negated, so it is not an event of a match" if negated else f"no event has the variable {v!r}"
            )
            yield Problem(message, where, hint=None if negated else did_you_mean(v, known))
    for negation in pattern.negations:
        for v in _compared(negation.order):
            if v != negation.variable and v not in known:
                yield Problem(f"no event has the variable {v!r}", _label(negation), hint=did_you_mean(v, known))


def _uses(pattern: IntervalPattern) -> Iterator[tuple[str, str]]:
    """Where the pattern names a variable of the match."""
    for v in dict.fromkeys(variables_of(pattern.tree)) if pattern.tree is not None else ():
        yield "hierarchy", v
    for pair in pattern.pairs:
        yield from (("relate", v) for v in (pair.left, pair.right))
    for v in _compared(pattern.order):
        yield "order", v
    for negation in pattern.negations:
        for v in (*negation.left, *negation.right):
            yield _label(negation), v


def _compared(order: Sequence[Comparison]) -> list[str]:
    return list(dict.fromkeys(e.variable for c in order for e in (c.left, c.right)))


def _label(negation: Negation) -> str:
    return f"negation of {negation.variable!r}"


def _part_problems(pattern: IntervalPattern) -> Iterator[Problem]:
    for negation in pattern.negations:
        where, d = _label(negation), quoted(negation.variable)
        if negation.scope is None:
            if negation.variable not in _compared(negation.order):
                hint = f"Give a scope and the parts, or order start({d}) or end({d})."
                yield Problem("nothing says where the negated event may not lie", where, hint=hint)
            continue
        if not (negation.left and negation.right):
            yield from _border_problems(pattern, negation)
        elif {*negation.left} == {*negation.right} and negation.scope is not Scope.DURING_SPAN:
            both, first = " and ".join(negation.left), quoted(negation.left[0])
            message = f"{negation.scope.value} is about what lies between two parts, and both are {both}"
            hint = f"Name different parts, or take during_span or an order such as start({first}) < start({d})."
            yield Problem(message, where, hint=hint)


def _border_problems(pattern: IntervalPattern, negation: Negation) -> Iterator[Problem]:
    """The problems of a negation that has no event on one side, so that the window is its border there."""
    where = _label(negation)
    if not (negation.left or negation.right):
        hint = "Name the events of the match before or after which it must not occur."
        yield Problem("there is no event on either side of it", where, hint=hint)
        return
    side = "right" if negation.left else "left"
    if pattern.window is None:
        hint = "Add within(…), in text WITHIN: it says how far from the match such an event forbids it."
        yield Problem(f"there is no event on its {side}, and the pattern has no window", where, hint=hint)
    if negation.scope is Scope.DURING_SPAN:
        hint = "Take gap or start_between."
        yield Problem(
            f"during_span is about the span of two parts, and there is no event on its {side}", where, hint=hint
        )


def _tree_problems(pattern: IntervalPattern) -> Iterator[Problem]:
    if pattern.tree is None:
        return
    counted = Counter(variables_of(pattern.tree))
    for v in (v for v, times in counted.items() if times > 1):
        hint = "Use relate(…) for further relations."
        yield Problem(f"{v!r} appears {counted[v]} times", "hierarchy", hint=hint)
    for node in related(pattern.tree):
        if node.counts is None:
            continue
        text = f"{node.relation.value}[…]"
        if not isinstance(node.right, str):
            names = ", ".join(variables_of(node.right))
            hint = "Write the pattern so that one event is on its right, or use relate(…) or ordered(…)."
            message = f"the right part of {text} is not one event but {names}: it cannot be counted"
            yield Problem(message, text, hint=hint)
        members = len(list(variables_of(node.left)))
        total = sum(vars(node.counts).values())
        if total > members:
            yield Problem(f"the counts of {text} add up to {total}, but its left part has {members} events", text)
