"""Adds a column of answers to tables in process."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import SchemaError
from cepheid.hosts.in_process.tables import as_plain, column_faults, plain_schema, to_arrow, without_views
from cepheid.knowledge.column import AnswerColumn
from cepheid.plan.semantics.answers import MOST_VALUES, Answers, answers, checked_name, tested_columns, too_many

Numbers: TypeAlias = npt.NDArray[np.int64]


def with_answers(events: Any, column: AnswerColumn, name: str | None) -> Any:
    """The events, in their order, with the column of answers as the last one.

    Raises:
        SchemaError, KnowledgeError: as `cepheid.add_column`.
    """
    table, from_arrow = to_arrow(events)
    plain = plain_schema(table.schema)
    name = checked_name(column, plain, name)
    if faults := column_faults(table.schema, table.column_names):
        raise SchemaError("\n".join(faults))
    table = without_views(table)
    keys = as_plain(table.select([*column.readings]), plain)
    found = answers(column, plain, _distinct(keys.select([*tested_columns(column)])))
    events_of, answers_of = _joined(keys, found)
    result = table.take(events_of).append_column(name, found.values.take(answers_of))
    return from_arrow(result, {one: one for one in table.column_names})


def _distinct(values: pa.Table) -> pa.Table:
    """The distinct rows without NULL."""
    if not values.num_columns:
        return values
    found = values.drop_null().group_by(values.column_names).aggregate([])
    if len(found) > MOST_VALUES:
        raise SchemaError(too_many(values.column_names))
    return found


def _joined(keys: pa.Table, found: Answers) -> tuple[pa.Array, pa.Array]:
    """The numbers of events and of their answers: in the order of both, each event at least once, and with NULL if it
    has no answer.
    """
    codes, of_answers = _codes(keys, found.keys)
    counts = np.bincount(of_answers, minlength=1)
    firsts = np.cumsum(counts) - counts
    by_code = np.argsort(of_answers, kind="stable")
    has_any = codes >= 0
    count = np.where(has_any, counts[codes], 0)
    rows = np.maximum(count, 1)
    events = np.repeat(np.arange(len(codes)), rows)
    within = np.arange(len(events)) - np.repeat(np.cumsum(rows) - rows, rows)
    places = np.where(has_any, firsts[codes], 0)[events] + within
    numbers = by_code[places] if len(by_code) else places
    return pa.array(events), pa.array(numbers, mask=~has_any[events])


def _codes(keys: pa.Table, known: pa.Table) -> tuple[Numbers, Numbers]:
    """Numbers from 0 for the rows of `known`, equal for equal rows, and for those of `keys` that are among them; -1 for
    others.
    """
    first, *others = known.column_names
    codes, of_known, _ = _places(keys[first], known[first])
    for one in others:
        here, there, count = _places(keys[one], known[one])
        pairs, of_known = np.unique(of_known * count + there, return_inverse=True)
        pair = np.where((codes < 0) | (here < 0), -1, codes * count + here)
        at = np.minimum(np.searchsorted(pairs, pair), max(len(pairs) - 1, 0))
        codes = np.where(pairs[at] == pair, at, -1) if len(pairs) else np.full(len(pair), -1)
    return codes, of_known


def _places(keys: pa.ChunkedArray, known: pa.ChunkedArray) -> tuple[Numbers, Numbers, int]:
    """The places of the values among the distinct ones of `known`, -1 for those that are not there; and how many these
    are.
    """
    values = pc.unique(known)
    here, there = (pc.fill_null(pc.index_in(some, values), -1).to_numpy().astype(np.int64) for some in (keys, known))
    return here, there, len(values)
