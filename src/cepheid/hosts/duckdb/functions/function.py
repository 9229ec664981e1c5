"""One way to call a function, as a template of DuckDB SQL."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Function:
    """One way to call a function.

    `takes` names Spark types, or kinds: INTEGER and FLOATING (any such type; the same word in `gives` means the same
    type), ARRAY, LOCAL (a TIMESTAMP on the session's clock, a TIMESTAMP_NTZ, a DATE at midnight). `sql` has {0}, {1}, …
    for the arguments. `constants` are the arguments that must be constants: not NULL, not empty, not 0. A function that
    `is_exact` gives Spark's result to the last bit; others are within 2 units in the last place of it. Arguments are
    evaluated in their order, up to the first NULL, unless the SQL `is_in_order` itself: it has Spark's own order.
    """

    name: str
    takes: tuple[str, ...]
    gives: str
    sql: str
    notes: str = ""
    fails: bool = False
    constants: tuple[int, ...] = ()
    is_exact: bool = True
    is_in_order: bool = False


def same(
    names: str, takes: tuple[str, ...], gives: str, sql: str, notes: str = "", *, is_exact: bool = True
) -> tuple[Function, ...]:
    """A function that has several names."""
    first, *others = names.split()
    function = Function(first, takes, gives, sql, notes, is_exact=is_exact)
    return function, *(replace(function, name=name, notes=f"The same as `{first}`.") for name in others)
