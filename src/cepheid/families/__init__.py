"""All kinds of pattern: hosts, the command line and the public calls reach each kind through this package."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from cepheid.families.family import Family
from cepheid.families.intervals import Intervals
from cepheid.families.occurrences import Occurrences
from cepheid.families.stages import Stages

FAMILIES: tuple[Family, ...] = (Stages(), Occurrences(), Intervals())
"""Each kind of pattern has one entry here, and code under its name in lang, plan, compile, kernel, output and matchers.
"""


def family_of(pattern: object) -> Family | None:
    """The family of the pattern; None if it is no pattern."""
    return next((family for family in FAMILIES if isinstance(pattern, family.pattern)), None)


def family_named(kind: str) -> Family:
    """The family of this kind. Workers, for example, get only the name of the kind."""
    return next(family for family in FAMILIES if family.kind == kind)


def load_matchers() -> None:
    """Imports all modules that run patterns, before a process is forked to run some."""
    for family in FAMILIES:
        package = import_module(f"cepheid.matchers.{family.kind}")
        for module in iter_modules(package.__path__):
            import_module(f"{package.__name__}.{module.name}")


def known_family_of(pattern: Any) -> Family:
    """The family of something that is known to be a pattern."""
    family = family_of(pattern)
    assert family is not None, pattern
    return family


def why_not_drained(pattern: Any) -> str | None:
    """Why what runs the pattern cannot go on with what is open and start nothing more; None if it can."""
    family = known_family_of(pattern)
    if family.drains:
        return None
    return f"pattern {pattern.name!r} is {family.noun}, which cannot be drained: drop what is open of it"
