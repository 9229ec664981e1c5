"""The types that leaves ask for: types of events, with the types below them; and restricted types."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from cepheid.errors import PatternError, Problem, closest, did_you_mean
from cepheid.lang.duration import WORD, parse_duration
from cepheid.lang.occurrences.expression import RestrictedType, leaf_types
from cepheid.lang.occurrences.pattern import OccurrencePattern
from cepheid.lang.taxonomy import subtypes
from cepheid.plan.taxonomy import NO_TAXONOMY, column_problems, type_condition


@dataclass(frozen=True)
class Chain:
    """The meaning of a type: an event of one of the types in `sql`, for which all restrictions are true."""

    base: str
    sql: str | None
    """None: the base is a class, of which knowledge knows the members."""
    several: bool
    """Whether `sql` asks for more than one type."""
    restricted: tuple[RestrictedType, ...]
    """Inner types first; outer ones restrict them further."""


def event_types(pattern: OccurrencePattern) -> list[str]:
    """The types that the pattern names, each once, without its restricted types and those that are warned of."""
    others = {one.name for one in pattern.restricted} | {name for name, _ in _misread(pattern)}
    return [name for name in dict.fromkeys(name for name, _ in _asked(pattern)) if name not in others]


def type_chains(pattern: OccurrencePattern, columns: pa.Schema | None, problems: list[Problem]) -> Mapping[str, Chain]:
    """The meaning of each type that a leaf asks for; empty if there are problems."""
    found = [*_problems(pattern), *column_problems(pattern.types, columns)]
    problems += found
    if found:
        return {}
    below = {} if pattern.types is None else subtypes(pattern.types)
    restricted = {one.name: one for one in pattern.restricted}
    chains = {}
    for name in dict.fromkeys(leaf_types(pattern.expression)):
        base, above = name, []
        while base in restricted:
            above.append(restricted[base])
            base = restricted[base].base
        names = below.get(base, (base,))
        by_column = None if pattern.knowledge is not None or pattern.types is None else pattern.types
        sql = None if by_column is None else type_condition(by_column, names)
        chains[name] = Chain(base, sql, len(names) > 1, tuple(reversed(above)))
    return chains


def _problems(pattern: OccurrencePattern) -> Iterator[Problem]:
    if pattern.types is None and pattern.knowledge is None:
        yield Problem("which column holds the type of an event is not known", "taxonomy", hint=NO_TAXONOMY)
    names = [one.name for one in pattern.restricted]
    declared = () if pattern.types is None else pattern.types.types
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            yield Problem(f"the type {name!r} is declared twice", hint="Choose another name for one of them.")
        if name in declared:
            hint = "Choose another name: restricting a type makes a new type, and does not change the taxonomy's."
            yield Problem(f"the type {name!r} is in the taxonomy, too", f"type {name!r}", hint=hint)
    yield from _circles(pattern)
    if pattern.types is not None and pattern.types.lists_all:
        known = [*declared, *names]
        for name, where in _asked(pattern):
            if name not in known:
                yield _unknown(name, where, known)


def _asked(pattern: OccurrencePattern) -> Iterator[tuple[str, str | None]]:
    """The types that are named, and where: the base of each restricted type, and each type of a leaf once."""
    yield from ((one.base, f"type {one.name!r}") for one in pattern.restricted)
    yield from ((name, None) for name in dict.fromkeys(leaf_types(pattern.expression)))


def _unknown(name: str, where: str | None, known: list[str]) -> Problem:
    message = f"no type {name!r} in the taxonomy, nor among the restricted types"
    hint = did_you_mean(name, known)
    if (length := _window_in(name)) is not None:
        hint = f"{_as_window(name, length)}. {hint}"
    return Problem(message, where, name, (0, len(name)), hint)


def misread_types(pattern: OccurrencePattern) -> Iterator[str]:
    """Warnings for names that are read as types, because no taxonomy lists the types, but are probably not meant as
    types.
    """
    return (warning for _, warning in _misread(pattern))


def _misread(pattern: OccurrencePattern) -> Iterator[tuple[str, str]]:
    """Each such name, with its warning."""
    if pattern.types is None or pattern.types.lists_all:
        return
    declared, restricted = pattern.types.types, [one.name for one in pattern.restricted]
    names = dict.fromkeys(name for name, _ in _asked(pattern))
    asked = [name for name in names if name not in (*declared, *restricted)]
    declare = 'If it is one, list all types in the taxonomy, as in {"transfer": []}'
    for name in asked:
        if (length := _window_in(name)) is not None:
            yield name, f"{name!r} is read as the name of a type. {_as_window(name, length)}. {declare}"
    unused = [name for name in restricted if name not in names]
    for name in asked:
        if closest(name, unused):
            found, hint = "of the events, and a restricted type is not used", did_you_mean(name, unused)
        elif closest(name, declared):
            found, hint = "of its own, as the taxonomy does not have it", did_you_mean(name, declared)
        else:
            continue
        yield name, f"{name!r} is read as a type {found}. {hint} {declare}"


_WINDOW = re.compile(rf"(.+)_([0-9]+{WORD})")


def _window_in(name: str) -> str | None:
    """The length of time at the end of a type's name, if a window may be meant; None otherwise."""
    if (found := _WINDOW.fullmatch(name)) is None:
        return None
    try:
        parse_duration(found[2], or_zero=True)
    except PatternError:
        return None
    return found[2]


def _as_window(name: str, length: str) -> str:
    of = name.removesuffix(f"_{length}")
    return f"For a window write parentheses: ({of})_{length}, or (A; B)_{length} around all that it is about"


def _circles(pattern: OccurrencePattern) -> Iterator[Problem]:
    bases = {one.name: one.base for one in pattern.restricted}
    for name in bases:
        seen, base = [name], bases.get(name)
        while base in bases and base not in seen:
            seen.append(base)
            base = bases[base]
        if base == name == min(seen):  # reported once per circle
            circle = " → ".join(map(repr, [*seen, name]))
            yield Problem(f"restricted types cannot be made of each other in a circle: {circle}", f"type {name!r}")
