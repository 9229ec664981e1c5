"""Parts of conditions that events must make true for there to be a match: for warnings, once all events are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

from cepheid.lang.expression import Call, Expression, Literal, Name
from cepheid.lang.taxonomy import Taxonomy
from cepheid.plan.lifted import Lifted

_MOST_LETTERS = 200


class NeededBit(NamedTuple):
    """A bit of the mask that the events of a stage or variable have set."""

    place: str | None
    """The stage or variable, for messages."""
    bit: int
    """Its number in the bits of the plan."""


def unheld_parts(
    needed: Iterable[NeededBit],
    bits: tuple[Lifted, ...],
    types: Taxonomy | None,
    seen: Callable[[str], pa.ChunkedArray],
) -> Iterator[str]:
    """A sentence without its end for each of these bits, which no event has set. `seen` gives the distinct values of a
    column.
    """
    values = None if types is None else frozenset(seen(types.column).drop_null().to_pylist())
    for place, bit in needed:
        prefix = "" if place is None else f"{place}: "
        lifted = bits[bit]
        if types is not None and values is not None:
            missing = [*_missing_types(lifted.expression, types.column, values)]
            if missing:
                below = ", nor of one below it" if len(missing) > 1 else ""
                yield f"{prefix}no event is of the type {missing[0]!r}{below}"
                continue
        text = lifted.sql if len(lifted.sql) <= _MOST_LETTERS else f"{lifted.sql[:_MOST_LETTERS]} …"
        yield f"{prefix}{text} held for no event"


def _missing_types(expression: Expression, column: str, values: frozenset[object]) -> list[str]:
    """The type that the condition asks for and those below it, if no event has one of them."""
    match expression:
        case Call("and", args):
            return next((found for arg in args if (found := _missing_types(arg, column, values))), [])
        case Call("in", (Name(parts), *asked)) if parts == (column,):
            names = [one.value for one in asked if isinstance(one, Literal) and isinstance(one.value, str)]
            return [] if values.intersection(names) else names
    return []
