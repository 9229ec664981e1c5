"""The types that leaves ask for: types of events, with those below them, and restricted types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from cepheid.errors import Problem, did_you_mean
from cepheid.lang.algebra import Leaf, Occurrence, OccurrencePattern, RestrictedType, operands
from cepheid.lang.taxonomy import subtypes
from cepheid.plan.subtypes import NO_TAXONOMY, column_problems, type_condition


@dataclass(frozen=True)
class Chain:
    """What an event must be to be of a type: of the types that `sql` asks for, and true to the restrictions."""

    sql: str
    several: bool
    """Whether these types are more than one."""
    restricted: tuple[RestrictedType, ...]
    """Inner ones, which are restricted further, first."""


def leaf_types(expression: Occurrence) -> list[str]:
    """The types of all leaves, left to right."""
    if isinstance(expression, Leaf):
        return [expression.type]
    return [type_ for operand in operands(expression) for type_ in leaf_types(operand)]


def type_chains(pattern: OccurrencePattern, columns: pa.Schema | None, problems: list[Problem]) -> Mapping[str, Chain]:
    """For each type that a leaf asks for what that means; none where there are problems."""
    found = [*_problems(pattern), *column_problems(pattern.types, columns)]
    problems += found
    if found or pattern.types is None:
        return {}
    below, restricted = subtypes(pattern.types), {one.name: one for one in pattern.restricted}
    chains = {}
    for name in dict.fromkeys(leaf_types(pattern.expression)):
        base, above = name, []
        while base in restricted:
            above.append(restricted[base])
            base = restricted[base].base
        names = below.get(base, (base,))
        chains[name] = Chain(type_condition(pattern.types, names), len(names) > 1, tuple(reversed(above)))
    return chains


def _problems(pattern: OccurrencePattern) -> Iterator[Problem]:
    if pattern.types is None:
        yield Problem("which column holds the type of an event is not known", "taxonomy", hint=NO_TAXONOMY)
    names = [one.name for one in pattern.restricted]
    declared = () if pattern.types is None else pattern.types.types
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            yield Problem(f"the type {name!r} is declared twice", hint="Choose another name for one of them.")
        if name in declared:
            hint = "Choose another name: a type of the taxonomy is not restricted, one of its own is made of it."
            yield Problem(f"the type {name!r} is in the taxonomy, too", f"type {name!r}", hint=hint)
    yield from _circles(pattern)
    if declared:
        known = [*declared, *names]
        for one in pattern.restricted:
            if one.base not in known:
                yield _unknown(one.base, f"type {one.name!r}", known)
        for name in dict.fromkeys(leaf_types(pattern.expression)):
            if name not in known:
                yield _unknown(name, None, known)


def _unknown(name: str, where: str | None, known: list[str]) -> Problem:
    message = f"no type {name!r} in the taxonomy, nor among the restricted types"
    return Problem(message, where, name, (0, len(name)), did_you_mean(name, known))


def _circles(pattern: OccurrencePattern) -> Iterator[Problem]:
    bases = {one.name: one.base for one in pattern.restricted}
    for name in bases:
        seen, base = [name], bases.get(name)
        while base in bases and base not in seen:
            seen.append(base)
            base = bases[base]
        if base == name == min(seen):  # told once a circle
            circle = " → ".join(map(repr, [*seen, name]))
            yield Problem(f"restricted types cannot be made of each other in a circle: {circle}", f"type {name!r}")
