"""`subtype` → a condition on the type column; and the problems of subtypes and the taxonomy.

The types below a type are known before any event arrives. So the condition is an IN over the type column alone, and is
lifted like any other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa

from cepheid.errors import Problem, closest, did_you_mean
from cepheid.lang.parameters import string_literal
from cepheid.lang.taxonomy import Taxonomy, subtypes
from cepheid.plan.conditions.types import is_string, sql_name

NO_TAXONOMY = (
    'Name the column of the types: taxonomy("type") or, where types have others below them, '
    'taxonomy("type", {"transfer": "payment"}).'
)


def subtype_conditions(
    types: Taxonomy | None, asked: Sequence[tuple[str, str]], columns: pa.Schema | None, problems: list[Problem]
) -> Mapping[str, str]:
    """Type → SQL for the requested types; `asked` has each type with its place. Types with problems are left out.

    `columns` None: the columns are not known.
    """
    if not asked and types is None:
        return {}
    found = [*_type_problems(types, asked), *column_problems(types, columns)]
    problems += found
    if types is None or found:
        return {}
    below = subtypes(types)
    return {name: type_condition(types, below.get(name, (name,))) for _, name in asked}


def type_condition(types: Taxonomy, names: Sequence[str]) -> str:
    """SQL that is true for events of these types."""
    column = types.column.replace("`", "``")
    return f"`{column}` IN ({', '.join(map(string_literal, names))})"


def taxonomy_warnings(types: Taxonomy | None, asked: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Warnings for requested types that seem to be declared the wrong way round: as a kind of the types that are below
    them. Such a pattern finds nothing.
    """
    above = {} if types is None else dict(types.kinds)
    for name in dict.fromkeys(name for _, name in asked):
        others = above.get(name, ())
        # A type may be a kind of several types, but hardly the only kind of each of them.
        if len(others) > 1 and all(sum(other in names for names in above.values()) == 1 for other in others):
            listed = ", ".join(map(repr, others))
            right = ", ".join(f'"{other}": "{name}"' for other in others)
            yield (
                f"taxonomy: {name!r} is declared as a kind of {listed}, so subtype({name!r}) takes none of these. "
                f"If they are kinds of {name!r}, write {{{right}}}: each type with what it is a kind of"
            )


MOST_TYPES = 1000
"""A column with more different values hardly holds types; comparing names with all of them would take long."""


def unseen_types(types: Taxonomy, asked: Collection[str], values: pa.ChunkedArray) -> Iterator[str]:
    """Warnings for requested types that no event has and the taxonomy does not list, if they may be slips for types
    that events have; `values` are the types of all events.
    """
    unlisted = [name for name in dict.fromkeys(asked) if name not in types.types]
    if not unlisted or len(seen := values.unique().drop_null()) > MOST_TYPES:
        return
    seen = seen.to_pylist()
    others = [name for name in seen if name not in asked]
    for name in unlisted:
        if name not in seen and closest(name, others):
            hint = f'{did_you_mean(name, others)} If not, list all types in the taxonomy, as in {{"transfer": []}}'
            yield f"no event is of the type {name!r}. {hint}"


def _type_problems(types: Taxonomy | None, asked: Sequence[tuple[str, str]]) -> Iterator[Problem]:
    for where, name in asked:
        if types is None:
            message = "subtype needs to know which column holds the type"
            yield Problem(message, where, name, (0, len(name)), NO_TAXONOMY)
        elif types.kinds and name not in types.types:
            hint = did_you_mean(name, types.types)
            if not closest(name, types.types):
                hint += f'. Types that are not kinds of others are declared, too: "{name}": []'
            yield Problem(f"no type {name!r} in the taxonomy", where, name, (0, len(name)), hint)


def column_problems(types: Taxonomy | None, columns: pa.Schema | None) -> Iterator[Problem]:
    """The problems of the column that holds the types; `columns` None: the columns are not known."""
    if types is None or columns is None:
        return
    if types.column not in columns.names:
        hint = did_you_mean(types.column, columns.names)
        yield Problem(f"no column named {types.column!r}, which holds the types", "taxonomy", hint=hint)
    elif not (
        is_string(type_ := columns.field(types.column).type) or pa.types.is_null(type_)
    ):  # a column of NULL has no values
        message = f"the column of the types must be STRING, {types.column!r} is {sql_name(type_)}"
        yield Problem(message, "taxonomy", hint="Cast it to STRING in a column of its own: names of types are text.")
