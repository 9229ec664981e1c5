"""The variables of a filter."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from cepheid.knowledge.filters.builtins import BUILTINS
from cepheid.knowledge.filters.syntax import SWRLB, Atom, Variable


def variables_of(atoms: Sequence[Atom]) -> list[str]:
    """The names of the variables, each once, in the order of the text."""
    return [*dict.fromkeys(one.name for atom in atoms for one in atom.arguments if isinstance(one, Variable))]


def place_of(variable: str, text: str) -> tuple[int, int] | None:
    """The start and end of the variable in the text of a filter that has it."""
    found = re.search(rf"\?{variable}(?!\w)", text)
    return None if found is None else found.span()


def never_bound(atoms: Sequence[Atom], given: Collection[str]) -> list[str]:
    """The variables that nothing can bind, so that the filter never holds: they stand only in built-ins, and there as
    other than the first argument of one that computes it from what is known. `given` have values beforehand.
    """
    bound = {*given, *variables_of([atom for atom in atoms if atom.kind != "builtin"])}
    waiting = [atom for atom in atoms if atom.kind == "builtin" and BUILTINS[atom.name.value[len(SWRLB) :]].computes]
    while ready := [atom for atom in waiting if bound.issuperset(_needed(atom))]:
        bound.update(variables_of(ready))
        waiting = [atom for atom in waiting if atom not in ready]
    return [name for name in variables_of(atoms) if name not in bound]


def _needed(atom: Atom) -> list[str]:
    """The variables that must be known before the first argument can be computed."""
    return [one.name for one in atom.arguments[1:] if isinstance(one, Variable)]


def never_holds(text: str, atoms: Sequence[Atom], given: Collection[str]) -> str | None:
    """Why a filter never holds: nothing binds some variables. None: each may be bound."""
    free = " and ".join(f"?{name}" for name in never_bound(atoms, given))
    if not free:
        return None
    return f"the filter {text!r} never holds: nothing binds {free}, as only built-ins have it. Use it in another atom"
