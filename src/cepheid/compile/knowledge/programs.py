"""Filters over the facts of sessions → patterns of numbers, as those of rules.

A program has the class and property atoms of a filter. If these are all of it, what the program finds is the answer.
Otherwise it finds what must hold in any case: mostly it does not, and nobody asks the other atoms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cepheid.compile.arrays import Records
from cepheid.compile.knowledge.compiled import CompiledRules, in_order, pattern_row
from cepheid.compile.knowledge.tables import MOST_PATTERNS, MOST_VARIABLES, PATTERN, PROGRAM, RuleTables
from cepheid.knowledge.closure.closure import Pattern
from cepheid.knowledge.closure.lists import TYPE
from cepheid.knowledge.filters.syntax import Argument, Atom, Variable
from cepheid.knowledge.terms import Literal, Terms

_OF_FACTS = ("class", "property")


class Filter(NamedTuple):
    """A semantic filter, and its variables that are bound when it is asked."""

    atoms: Sequence[Atom]
    bound: Sequence[str]


class Remaining(NamedTuple):
    """The built-ins of a filter, which programs do not have."""

    atoms: Sequence[Atom]
    variables: Sequence[tuple[str, int]]
    """Their variables that are bound by then, each with the number that it has in the program."""


class Programs(NamedTuple):
    """The programs of filters."""

    programs: Records
    """(f,) PROGRAM."""
    rules: RuleTables
    """With the patterns of the programs in place of those of rules."""
    remaining: Sequence[Remaining | None]
    """For each filter; None: it is not only built-ins that remain, or nothing does."""
    of_sessions: bool
    """Whether a program has a term that the shared knowledge does not have: its number may change."""


def compile_programs(filters: Sequence[Filter], rules: CompiledRules, terms: Terms) -> Programs:
    """Terms that have no number yet get one."""
    programs, patterns, remaining = list[tuple[int, ...]](), list[tuple[int, ...]](), list[Remaining | None]()
    of_sessions = False
    for filter_ in filters:
        asked, variables, whole = _patterns(filter_, terms)
        if len(asked) > MOST_PATTERNS or len(variables) > MOST_VARIABLES:
            asked, whole = [], False
        of_sessions |= any(part >= rules.shared for one in asked for part in one)
        numbers = {-1 - number: number for number in range(len(filter_.bound))}
        rows = [pattern_row(rules, one, numbers) for one in in_order(asked, set(numbers))]
        programs.append((len(patterns), len(patterns) + len(rows), len(filter_.bound), int(whole)))
        patterns += rows
        remaining.append(_remaining(filter_, {name: numbers.get(one) for name, one in variables.items()}))
    tables = rules.tables._replace(patterns=np.array(patterns, PATTERN))
    return Programs(np.array(programs, PROGRAM), tables, remaining, of_sessions)


def _remaining(filter_: Filter, numbers: Mapping[str, int | None]) -> Remaining | None:
    """`numbers` has those of variables of class and property atoms; None: these are not compiled."""
    atoms = [atom for atom in filter_.atoms if atom.kind not in _OF_FACTS]
    known = [(name, number) for name, number in numbers.items() if number is not None]
    if not atoms or any(atom.kind != "builtin" for atom in atoms) or len(known) < len(numbers):
        return None
    used = {argument.name for atom in atoms for argument in atom.arguments if isinstance(argument, Variable)}
    by_value = any(isinstance(one, Literal) for atom in filter_.atoms for one in atom.arguments if atom not in atoms)
    return None if by_value else Remaining(atoms, [one for one in known if one[0] in used])


def _patterns(filter_: Filter, terms: Terms) -> tuple[list[Pattern], dict[str, int], bool]:
    """The class and property atoms, whose variables are negative numbers, the bound ones from -1 on; these numbers;
    whether the atoms are the whole filter.
    """
    variables = {name: -1 - number for number, name in enumerate(filter_.bound)}
    whole = True

    def part(argument: Argument) -> int:
        nonlocal whole
        if isinstance(argument, Variable):
            return variables.setdefault(argument.name, -1 - len(variables))
        if isinstance(argument, Literal):  # it is found by its value, which terms do not tell
            whole = False
            return variables.setdefault(f"\0{len(variables)}", -1 - len(variables))
        return terms.number(argument)

    found = list[Pattern]()
    for atom in filter_.atoms:
        match atom.kind:
            case "class":
                found.append((part(atom.arguments[0]), terms.number(TYPE), terms.number(atom.name)))
            case "property":
                found.append((part(atom.arguments[0]), terms.number(atom.name), part(atom.arguments[1])))
            case _:
                whole = False
    return found, variables, whole
