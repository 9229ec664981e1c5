"""SWRL's built-ins as SQL over values of events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cepheid.knowledge.filters.builtins import BUILTINS
from cepheid.knowledge.filters.values import NoValue, compared, literal_of, value_of
from cepheid.knowledge.terms import Literal
from cepheid.plan.semantics import numbers, texts, times
from cepheid.plan.semantics.comparisons import SIGNS, compared_sql
from cepheid.plan.semantics.inert import NotLifted
from cepheid.plan.semantics.numbers import Computation
from cepheid.plan.semantics.values import SqlValue, of_literal

_COMPUTED: Mapping[str, Computation] = {**numbers.COMPUTED, **texts.COMPUTED, **times.COMPUTED}


def computed(name: str, given: Sequence[SqlValue | Literal]) -> SqlValue | Literal | None:
    """What the built-in computes from these values; None: it always fails.

    Raises:
        NotLifted: it has no SQL.
    """
    known = [value for value in given if isinstance(value, Literal)]
    try:
        if len(known) == len(given):
            return literal_of(BUILTINS[name].apply(*map(value_of, known)))
        if name not in _COMPUTED:
            raise NotLifted(f"{name} has no SQL")
        return _COMPUTED[name]([*map(_as_sql, given)])
    except NoValue:
        return None


def tested(name: str, given: Sequence[SqlValue | Literal]) -> Iterator[str]:
    """SQL of the built-in as a test of all its arguments; nothing if it never holds.

    Raises:
        NotLifted: it has no SQL.
    """
    known = [value for value in given if isinstance(value, Literal)]
    try:
        if BUILTINS[name].computes:
            result = computed(name, given[1:])
            conditions = result.conditions if isinstance(result, SqlValue) else ()
            if result is not None:
                yield from (" AND ".join([*conditions, equal]) for equal in _equal(given[0], result))
        elif len(known) == len(given):
            yield from ["TRUE"] if BUILTINS[name].apply(*map(value_of, known)) else []
        elif name in SIGNS:
            one, other = map(_as_sql, given)
            yield from compared_sql(name, one, other)
        elif name in texts.TESTED:
            found = texts.TESTED[name]([*map(_as_sql, given)])
            yield from [] if found is None else [found]
        else:
            raise NotLifted(f"{name} has no SQL")
    except NoValue:
        return


def _equal(one: SqlValue | Literal, other: SqlValue | Literal) -> Iterator[str]:
    if isinstance(one, Literal) and isinstance(other, Literal):
        yield from ["TRUE"] if compared(value_of(one), value_of(other)) == 0 else []
    else:
        yield from compared_sql("equal", _as_sql(one), _as_sql(other))


def _as_sql(value: SqlValue | Literal) -> SqlValue:
    return of_literal(value) if isinstance(value, Literal) else value
