"""The event columns for DuckDB: only those that expressions name, with fields taken out of structs, and renamed.

The new names are `c0`, `c1`, …, because DuckDB, unlike Arrow, ignores case in column names.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as arrow

from cepheid.errors import EventError, PatternError, Problem, did_you_mean
from cepheid.hosts.duckdb.fragment import Fragment, held_type, same_kind
from cepheid.hosts.duckdb.translate import is_known
from cepheid.lang.expression import Name
from cepheid.plan.conditions.types import sql_name

Path = tuple[int, ...]
"""A column's position, then the positions of fields within fields."""


class EventColumns:
    """The columns that expressions have named so far."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._names: dict[Path, str] = {}

    def resolve(self, name: Name) -> Fragment:
        """The column or field that the name means. From now on `taken_from` includes it."""
        path, type_ = self._find(name)
        if not is_known(type_):
            raise _problem(name, f"the type {sql_name(type_)} cannot be used in process; on Spark it can")
        text = self._names.setdefault(path, f"c{len(self._names)}")
        return Fragment(text, same_kind(type_))

    def _find(self, name: Name) -> tuple[Path, pa.DataType]:
        fields: Sequence[pa.Field] = list(self._schema)
        path: list[int] = []
        type_ = pa.null()
        for i, part in enumerate(name.parts):
            same = [j for j, field in enumerate(fields) if field.name.lower() == part.lower()]
            if len(same) != 1:
                what = "ambiguous" if same else "unknown"
                message = f"{what} {'field' if i else 'column'} {part!r}"
                raise _problem(name, message, _advice(part, [field.name for field in fields], same), i)
            path.append(same[0])
            type_ = fields[same[0]].type
            fields = list(type_) if arrow.is_struct(type_) else []
        return tuple(path), type_

    def taken_from(self, events: pa.Table) -> pa.Table:
        """The columns of the events that were named, in DuckDB's form; one column of NULLs if none was."""
        if not self._names:
            return pa.table({"none": pa.nulls(events.num_rows, pa.bool_())})
        return pa.table({name: _as_held(_at(events, path)) for path, name in self._names.items()})


def _advice(name: str, known: Sequence[str], same: Sequence[int]) -> str:
    """What to do about a name that none of the `known` ones is, or several of them, by number."""
    if not same:
        return did_you_mean(name, known)
    return f"{' and '.join(repr(known[number]) for number in same)} differ only in case, which SQL ignores: rename one."


def _at(events: pa.Table, path: Path) -> pa.ChunkedArray:
    column = events.column(path[0])
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


def _as_held(column: pa.ChunkedArray) -> pa.ChunkedArray:
    type_ = column.type
    try:
        if arrow.is_timestamp(type_):
            return viewed(column.cast(pa.timestamp("us", type_.tz)), pa.timestamp("us"))
        if arrow.is_duration(type_):
            return viewed(column.cast(pa.duration("us")), pa.int64())
        if arrow.is_dictionary(type_) or arrow.is_nested(type_):
            return column.cast(held_type(type_))
    except pa.ArrowInvalid as error:
        message = f"a time does not fit microseconds: {error}. Round the column to microseconds first"
        raise EventError(message) from error
    return column


def viewed(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """The same bits, read as another type."""
    return column if column.type == type_ else pa.chunked_array([chunk.view(type_) for chunk in column.chunks], type_)


def _problem(name: Name, message: str, hint: str | None = None, part: int = 0) -> PatternError:
    return PatternError(Problem(message, span=name.spans[part] if name.spans else None, hint=hint))
