"""Problems of a pattern of occurrences that do not depend on its conditions: names, policies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cepheid.errors import Problem
from cepheid.events.batch import Schema
from cepheid.lang.duration import LONGEST
from cepheid.lang.occurrences.expression import (
    Both,
    Either,
    Leaf,
    Occurrence,
    Then,
    Within,
    delay_of,
    depth_of,
    leaf_types,
    operands,
)
from cepheid.lang.occurrences.parser import MAX_DEPTH
from cepheid.lang.occurrences.pattern import OccurrencePattern, Policy
from cepheid.lang.taxonomy import subtypes
from cepheid.plan.occurrences.variables import Scopes
from cepheid.plan.reserved import COMMON
from cepheid.plan.taxonomy import column_problems

OUTPUT = (*COMMON, "events")
"""Names of output columns, which are not allowed for variables and measures."""
EVENT_FIELDS, DELAY_FIELDS = ("type", "time"), ("delay", "depth")
"""The fields of `events` before the chosen columns. DELAY_FIELDS are there only if there are temporal events."""


def occurrence_problems(pattern: OccurrencePattern, scopes: Scopes, columns: Sequence[str]) -> Iterator[Problem]:
    """The problems of names and of the policy; `columns` are the names of the events' columns, as far as known."""
    taken = {column.lower(): f"a column of the events ({column!r})" for column in columns}
    taken |= dict.fromkeys(OUTPUT, "a column of the output")
    for name in scopes.names:
        if name.lower() in taken:
            hint = "Case does not count; choose another name for the variable."
            yield Problem(f"the variable {name!r} has the name of {taken[name.lower()]}", hint=hint)
    if delay_of(pattern.expression) > LONGEST:
        message = f"nested delays add up to more than {LONGEST.days} days, which are 100,000 years"
        yield Problem(message, hint="Shorten them: times so far ahead do not fit 64 bits.")
    if pattern.chosen is not None and pattern.chosen.is_context:
        yield from _context_problems(pattern, pattern.chosen)


def with_types(pattern: OccurrencePattern, chosen: tuple[str, ...]) -> tuple[str, ...]:
    """The event columns that appear in the output: the chosen ones, and always the type."""
    column = None if pattern.types is None else pattern.types.column
    return chosen if column is None or column in chosen else (*chosen, column)


def event_faults(
    pattern: OccurrencePattern, schema: Schema, chosen: tuple[str, ...], *, with_delays: bool
) -> list[str]:
    """The names of columns that the output already has: of the key, and of the chosen columns, which follow the fields
    that `events` always has. The latter are not checked while the column of types has problems.
    """
    faults = [
        f"key: {name!r} is the name of a column that the output has itself; rename the key's"
        for name in schema.key
        if name.lower() == "events"
    ]
    if any(column_problems(pattern.types, schema.columns)):
        return faults
    fields = (*EVENT_FIELDS, *DELAY_FIELDS) if with_delays else EVENT_FIELDS
    own = {schema.time, *with_types(pattern, ())} if pattern.types is not None else {schema.time, "type"}
    return faults + [
        f"columns: {name!r} is the name of a field that 'events' has itself; rename the column, or choose others"
        for name in chosen
        if name.lower() in fields and name not in own
    ]


def check_depth(pattern: OccurrencePattern) -> list[Problem]:
    """A problem if the expression is too deep for the recursive functions that follow."""
    if depth_of(pattern.expression) <= MAX_DEPTH:
        return []
    return [Problem(f"operators are nested more than {MAX_DEPTH} levels deep", hint="Split the pattern into several.")]


def _context_problems(pattern: OccurrencePattern, policy: Policy) -> Iterator[Problem]:
    hint = "Take the policy 'recent' or 'unrestricted', which are defined for every pattern."
    for name in dict.fromkeys(_other_operators(pattern.expression)):
        message = f"{policy.value} is defined only for sequence, and, or and within, and the pattern has {name}"
        yield Problem(message, "policy", hint=hint)
    types = leaf_types(pattern.expression)
    restricted = {one.name for one in pattern.restricted}
    below = {} if pattern.types is None else subtypes(pattern.types)
    for type_ in dict.fromkeys(types):
        if types.count(type_) > 1:
            yield Problem(
                f"{policy.value} is defined only if each type appears once, and {type_!r} appears twice",
                "policy",
                hint=hint,
            )
        if type_ in restricted:
            yield Problem(f"{policy.value} is not defined for restricted types such as {type_!r}", "policy", hint=hint)
        if len(below.get(type_, ())) > 1:
            message = f"{policy.value} is not defined for a type with others below it, such as {type_!r}"
            yield Problem(message, "policy", hint=hint)


def _other_operators(expression: Occurrence) -> Iterator[str]:
    if not isinstance(expression, Leaf | Both | Either | Then | Within):
        yield _CALLED[type(expression).__name__]
    for operand in operands(expression):
        yield from _other_operators(operand)


_CALLED = {"Without": "minus", "Delayed": "a delay", "Bound": "a variable", "Filtered": "a filter"}


def costly(condition: str) -> str:
    """The warning that the recent policy costs more than expected with a condition on several events."""
    return (
        f"policy 'recent' with the condition {condition!r}: an operator below it that stores only the latest "
        "occurrence could lose those for which the condition is true. So all occurrences are found first, and then the "
        "recent ones are chosen. Memory grows with the events, unless within(…) bounds it. If the condition only asks "
        "for equal columns, make these the key"
    )
