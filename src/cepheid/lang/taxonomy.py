"""Types of events: the column that holds an event's type, and the more general types of each type.

FlinkCEP takes subtypes from Java's classes. Rows have no classes, so subtypes are declared here. A type may be a kind
of several others; `subtypes` follows the declarations down to the lowest types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from cepheid.errors import PatternError, Problem


@dataclass(frozen=True)
class Taxonomy:
    """Made by `make_taxonomy`, which checks it."""

    column: str
    """The column with the type of each event, as text."""
    kinds: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Type → the types that it is a kind of. Empty: every type is known, and no type has others below it."""

    @property
    def types(self) -> tuple[str, ...]:
        """All types that are declared, each once."""
        return tuple(dict.fromkeys(name for kind, above in self.kinds for name in (kind, *above)))

    @property
    def lists_all(self) -> bool:
        """Whether the taxonomy lists all types. It does if it also declares a type that is not a kind of another."""
        return any(not above for _, above in self.kinds)


def make_taxonomy(column: str, kinds: Mapping[str, str | Sequence[str]]) -> Taxonomy:
    """The taxonomy with this type column. `kinds` maps each type to the type, or types, that it is a kind of.

    Raises:
        PatternError: lists all entries that are not text or are declared twice, or names the types of a cycle.
    """
    problems = [Problem(message, "taxonomy") for message in _faults(column, kinds)]
    if problems:
        raise PatternError(problems)
    declared = {kind: (above,) if isinstance(above, str) else tuple(above) for kind, above in kinds.items()}
    cycle = _cycle(declared)
    if cycle:
        message = f"types cannot be kinds of each other in a circle: {' → '.join(map(repr, cycle))}"
        raise PatternError(Problem(message, "taxonomy", hint="Take one of these out, or make them one type."))
    return Taxonomy(column, tuple(declared.items()))


def subtypes(taxonomy: Taxonomy) -> dict[str, tuple[str, ...]]:
    """Each declared type → itself, then all types below it; types in the order of their declaration."""
    above = dict(taxonomy.kinds)
    place = {name: number for number, name in enumerate(taxonomy.types)}
    found: dict[str, set[str]] = {name: {name} for name in taxonomy.types}
    # The static order has each type after the types that it is a kind of. In reverse order, all types below a type are
    # known when it is reached.
    for name in reversed(list(TopologicalSorter(above).static_order())):
        for parent in above.get(name, ()):
            found[parent] |= found[name]
    return {name: (name, *sorted(below - {name}, key=place.__getitem__)) for name, below in found.items()}


def _faults(column: object, kinds: object) -> Iterator[str]:
    if not isinstance(column, str) or not column:
        yield f"the name of the column that holds the types is expected, got {column!r}"
    if not isinstance(kinds, Mapping):
        yield f'types and what they are kinds of are expected, as in {{"transfer": "payment"}}, got {kinds!r}'
        return
    for kind, above in kinds.items():
        if not isinstance(kind, str) or not kind:
            yield f"a type's name must be text that is not empty, got {kind!r}"
        names = [above] if isinstance(above, str) else above
        if not isinstance(names, list | tuple):
            yield f"{kind!r} must be a kind of a type or of a list of types, which may be empty, got {above!r}"
            continue
        yield from (
            f"{kind!r} is a kind of a type, whose name must be text that is not empty, got {name!r}"
            for name in names
            if not isinstance(name, str) or not name
        )
        yield from (
            f"{kind!r} is declared twice as a kind of {name!r}"
            for name in dict.fromkeys(name for name in names if isinstance(name, str))
            if names.count(name) > 1
        )


def _cycle(kinds: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """A cycle: a type, a type that it is a kind of, and so on back to the first type; empty if there is none."""
    try:
        TopologicalSorter(kinds).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle[::-1]  # from kind to what it is a kind of
    return ()
