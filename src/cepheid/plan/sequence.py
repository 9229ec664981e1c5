"""The sequence as users give it: names of columns, or items as in ORDER BY.

The exact name of a column is this column, ascending with NULL last. Any other text is an item of ORDER BY in Spark's
dialect: a column or an expression, then ASC or DESC, and NULLS FIRST or NULLS LAST. An expression becomes a column of
the events that hosts compute before anything else; its name begins with `COMPUTED`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from cepheid.errors import PatternError, Problem, SchemaError
from cepheid.events.batch import COMPUTED
from cepheid.events.direction import BY_NAME, Direction
from cepheid.lang.expression import Call, Literal, Name
from cepheid.lang.sql.parser import parse_expression
from cepheid.plan.conditions.types import is_orderable, sql_name
from cepheid.plan.engine import SqlEngine
from cepheid.plan.lifted import Lifted
from cepheid.plan.used_columns import names_in

_ITEM = re.compile(
    r"\s*(?P<value>.+?)(?:\s+(?P<way>ASC|DESC))?(?:\s+NULLS\s+(?P<nulls>FIRST|LAST))?\s*", re.IGNORECASE | re.DOTALL
)
_EXPECTED = "Name a column, or write a column or an expression and then ASC or DESC, NULLS FIRST or NULLS LAST"


class OrderItem(NamedTuple):
    """A column that orders events of equal time."""

    column: str
    direction: Direction = BY_NAME
    computed: Lifted | None = None
    """How the column is computed, if the events do not have it."""


def order_items(sequence: Sequence[str], columns: pa.Schema, engine: SqlEngine) -> list[OrderItem]:
    """The columns that order events of equal time. A name that the events do not have stays as it is.

    Raises:
        SchemaError: a text is no item of ORDER BY over these columns; the message has all faults.
    """
    items, faults = list[OrderItem](), list[str]()
    for text in sequence:
        try:
            items.append(OrderItem(text) if text in columns.names else _order_item(text, columns, engine))
        except PatternError as error:
            faults += [f"sequence: {text!r}: {problem.message}. {_EXPECTED}" for problem in error.problems]
    if faults:
        raise SchemaError("\n".join(faults))
    return items


def columns_of(sequence: Sequence[str], columns: pa.Schema) -> set[str]:
    """The columns from which the items are made; PatternError if a text is no item."""
    found = set[str]()
    for text in sequence:
        if text in columns.names:
            found.add(text)
        elif (item := _ITEM.fullmatch(text)) is not None:
            named = {name.lower() for name in names_in(parse_expression(item["value"]))}
            found |= {name for name in columns.names if name.lower() in named}
    return found


def _order_item(text: str, columns: pa.Schema, engine: SqlEngine) -> OrderItem:
    found = _ITEM.fullmatch(text)
    if found is None or not text.strip():
        raise PatternError("it is empty")
    value, way, nulls = (found[name] for name in ("value", "way", "nulls"))
    tree = parse_expression(value)
    if value == text.strip() and isinstance(tree, Name) and len(tree.parts) == 1 and not value.startswith("`"):
        return OrderItem(text)  # an unknown name
    descending = (way or "").upper() == "DESC"
    # As in Spark: NULL is the least value, unless the item says otherwise.
    direction = Direction(descending, not descending if nulls is None else nulls.upper() == "FIRST")
    if isinstance(tree, Name) and len(tree.parts) == 1:
        return OrderItem(_column(tree.parts[0], columns), direction)
    return _computed(tree, value, direction, columns, engine)


def _column(name: str, columns: pa.Schema) -> str:
    """The column that Spark would match: case does not count, unless two names differ only in case."""
    if name in columns.names:
        return name
    return next((known for known in columns.names if known.lower() == name.lower()), name)


def _computed(
    tree: Call | Name | Literal, value: str, direction: Direction, columns: pa.Schema, engine: SqlEngine
) -> OrderItem:
    name = COMPUTED + value
    if name in columns.names:
        return OrderItem(name, direction)
    if not any(names_in(tree)):
        raise PatternError("the expression names no column, so it orders nothing")
    (type_,) = engine.types_of([(tree, value)], columns)
    if isinstance(type_, Problem):
        raise PatternError(type_)
    if not is_orderable(type_):
        raise PatternError(f"it is of type {sql_name(type_)}, whose values have no order")
    return OrderItem(name, direction, Lifted(value, tree, type_))
