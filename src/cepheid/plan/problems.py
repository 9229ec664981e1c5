"""The problems of the events' columns, for patterns of any kind, and the errors that report them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from cepheid.errors import PatternError, Problem, SchemaError, did_you_mean
from cepheid.events.batch import Schema
from cepheid.plan.conditions.types import is_orderable, sql_name
from cepheid.plan.lifted import OutputName
from cepheid.plan.pattern_request import PlanOptions
from cepheid.plan.reserved import CAUSE, INTERNAL, KIND, OF_EVENTS, OF_MATCHES, ROW_NUMBER

AS_TEXT = "Cast it, for example to STRING"
"""What to do with a column whose type is not suitable."""


def refusal(problems: Sequence[Problem], faults: Sequence[str]) -> PatternError | SchemaError:
    """The error that lists the faults of the schema, then all problems of patterns and measures."""
    if problems:
        return PatternError([*map(Problem, faults), *dict.fromkeys(problems)])
    return SchemaError("\n".join(faults))


@contextmanager
def beside(faults: Sequence[str]) -> Iterator[None]:
    """Raises the faults together with those that the block raises, and also if it raises none."""
    try:
        yield
    except PatternError as error:
        raise refusal(error.problems, faults) from None
    except SchemaError as error:
        raise SchemaError("\n".join([*faults, str(error)])) from None
    if faults:
        raise SchemaError("\n".join(faults))


def schema_faults(schema: Schema, options: PlanOptions) -> list[str]:
    """The faults of the key, the time, the sequence and the columns: unknown names and types that do not fit, and
    columns that have the name of another one of the output.
    """
    return [*_faults_of_names(schema, options.chosen(schema)), *_taken_names(schema, options)]


def names_beside(schema: Schema, options: PlanOptions) -> list[str]:
    """The names in the output that a measure cannot have, in addition to those that patterns of its kind reserve."""
    if options.rows_per == "match":
        return [*schema.key]
    return [*OF_EVENTS, ROW_NUMBER, *dict.fromkeys([*schema.key, *options.chosen(schema)])]


def _taken_names(schema: Schema, options: PlanOptions) -> Iterator[str]:
    """The faults of event columns that stand beside columns of the output with the same name."""
    if options.rows_per == "match":
        return
    taken = {*OF_MATCHES, *OF_EVENTS, ROW_NUMBER, *[KIND] * options.in_one_table}
    taken |= {*[CAUSE] * has_cause(options.outputs)}
    for name in dict.fromkeys([*schema.key, *options.chosen(schema)]):
        if name.lower() in taken or INTERNAL.fullmatch(name.lower()):
            yield taken_name(name, is_key=name in schema.key)


def taken_name(name: str, *, is_key: bool) -> str:
    """The fault of an event column that has the name of another column in rows of events."""
    how = "rename it" if is_key else "rename it, or choose others with columns=[…]"
    return f"columns: {name!r} is the name of a column that rows of events have themselves; {how}"


def has_cause(outputs: tuple[OutputName, ...] | None) -> bool:
    """Whether rows say why there is no match."""
    return not {"no_match", "inconsistent"}.isdisjoint(outputs or ())


def _faults_of_names(schema: Schema, chosen: Sequence[str]) -> list[str]:
    names = schema.columns.names
    named = [("key", k) for k in schema.key]
    if schema.time is not None:
        named.append(("time", schema.time))
    named += [("columns", c) for c in chosen] + [("sequence", s) for s in schema.sequence]
    faults = [f"{what}: no column named {n!r}. {did_you_mean(n, names)}" for what, n in named if n not in names]
    return faults + [
        f for what, name in named if name in names and (f := _unfit(what, name, schema.columns.field(name).type))
    ]


def _unfit(what: str, name: str, type_: pa.DataType) -> str | None:
    """Why the column's type is not suitable for its purpose."""
    if what == "key" and not _is_hashable(type_):
        return f"key: {name!r} is of type {sql_name(type_)}; a key cannot be or hold a MAP or an ARRAY. {AS_TEXT}"
    if what == "time" and not is_time(type_):
        return f"time: {name!r} is of type {sql_name(type_)}; event time is a TIMESTAMP, TIMESTAMP_NTZ or DATE: cast it"
    if what == "sequence" and not is_orderable(type_):
        return f"sequence: {name!r} is of type {sql_name(type_)}, whose values have no order"
    return None


def is_time(type_: pa.DataType) -> bool:
    """Whether values of the type are times; a DATE is its first instant."""
    return bool(pa.types.is_timestamp(type_) or pa.types.is_date(type_))


def _is_hashable(type_: pa.DataType) -> bool:
    if pa.types.is_struct(type_):
        return all(_is_hashable(field.type) for field in type_)
    return not pa.types.is_nested(type_)
