"""The order of the events of matches that are there already, from the columns of their stages.

The order of a match is that of time, then of a sequence or of content (see `events.order`). The columns of stages have
the events of each stage in this order, and the stages in that of the pattern. So only events of equal time in a loop of
a group may stand in several orders. Their sequence decides; without a sequence, their content does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import SchemaError, did_you_mean
from cepheid.events.order import content_digests, leaves
from cepheid.hosts.in_process.prepare import whole
from cepheid.hosts.in_process.tables import plain_schema

Numbers: TypeAlias = npt.NDArray[np.int64]


class Placed(NamedTuple):
    """Events, and where they are in the columns of matches."""

    match: Numbers
    """(n,) the row of each event's match."""
    order: Numbers
    """(n,) by which the stages of a match are ordered."""
    place: Numbers
    """(n,) the place among the events of the stage, from 1."""
    stage: pa.Array
    """(n,) the name of the stage."""
    events: pa.Table
    """(n,) the columns of the events."""


def order_in_matches(placed: Placed, time: str | None, sequence: Sequence[str]) -> Numbers:
    """(n,) the rows in the order of matches, and of each match in its order.

    Raises:
        SchemaError: the events have no such columns.
    """
    match, order, place = placed.match, placed.order, placed.place
    if time is None:
        return np.lexsort((place, order, match))
    at = _ranks(placed.events, "time", time)
    if sequence:
        ranks = [_ranks(placed.events, "sequence", name) for name in reversed(sequence)]
        return np.lexsort((place, order, *ranks, at, match))
    block, content = _blocks(placed), np.zeros((2, len(match)), np.int64)
    rows = np.lexsort((place, order, block, at, match))
    tied = _interleaved(placed, rows, at, block)
    if not len(tied):
        return rows
    content[:, tied] = np.array(content_digests(_plain(placed.events.take(pa.array(tied))), len(tied))).view(np.int64)
    by_content = tied[_sorted(tied, *content.view(np.uint64), block, at, match)]
    agreeing = _agreeing(by_content, placed, at)
    content[:, tied[~agreeing[tied]]] = 0
    first, second = content.view(np.uint64)
    return np.lexsort((place, order, second, first, block, at, match))


def _ranks(events: pa.Table, argument: str, name: str) -> Numbers:
    """The ranks of the values in a column, from 1; NULL last."""
    if name not in events.column_names:
        names = events.column_names
        raise SchemaError(f"{argument}: no column named {name!r} in the events. {did_you_mean(name, names)}")
    columns = leaves(whole(events.column(name)))
    if not columns:
        return np.zeros(len(events), np.int64)
    each = [pc.rank(column, tiebreaker="dense").to_numpy().astype(np.int64) for column in columns]
    _, ranks = np.unique(np.array(each), axis=1, return_inverse=True)
    found: Numbers = np.asarray(ranks, np.int64).reshape(-1) + 1
    return found


def _blocks(placed: Placed) -> Numbers:
    """A number for each event: smaller for the events of earlier stages, and equal for stages side by side that took
    several events in some match, as the stages of a loop do.
    """
    names = placed.stage.dictionary_encode()
    code = names.indices.to_numpy().astype(np.int64)
    most = np.zeros(len(names.dictionary), np.int64)
    np.maximum.at(most, code, placed.place)
    loops = most[code] > 1
    rows = np.lexsort((placed.place, placed.order, placed.match))
    match, order, loop = placed.match[rows], placed.order[rows], loops[rows]
    new = np.ones(len(rows), np.bool_)
    new[1:] = (match[1:] != match[:-1]) | ((order[1:] != order[:-1]) & ~(loop[1:] & loop[:-1]))
    block = np.empty(len(rows), np.int64)
    block[rows] = np.cumsum(new)
    return block


def _interleaved(placed: Placed, rows: Numbers, at: Numbers, block: Numbers) -> Numbers:
    """The events of equal match, time and block that several stages took."""
    group = _groups(rows, placed.match, at, block)
    order = placed.order[rows]
    least, most = (
        np.full(group.max(initial=-1) + 1, start) for start in (np.iinfo(np.int64).max, np.iinfo(np.int64).min)
    )
    np.minimum.at(least, group, order)
    np.maximum.at(most, group, order)
    return rows[(least < most)[group]]


def _agreeing(rows: Numbers, placed: Placed, at: Numbers) -> npt.NDArray[np.bool_]:
    """(n,) whether in this order of the rows the events of each stage keep their places, in the whole group of equal
    match and time.
    """
    group = _groups(rows, placed.match, at)
    kept = np.ones(group.max(initial=-1) + 1, np.bool_)
    by_stage = np.lexsort((np.arange(len(rows)), placed.order[rows], group))
    stage, place, of = placed.order[rows][by_stage], placed.place[rows][by_stage], group[by_stage]
    wrong = (of[1:] == of[:-1]) & (stage[1:] == stage[:-1]) & (place[1:] < place[:-1])
    kept[of[1:][wrong]] = False
    agreeing = np.ones(len(placed.match), np.bool_)
    agreeing[rows] = kept[group]
    return agreeing


def _sorted(rows: Numbers, first: npt.NDArray[np.uint64], second: npt.NDArray[np.uint64], *ranks: Numbers) -> Numbers:
    """The indices of `rows` by the last of the ranks first, then by the digests."""
    return np.lexsort((second[rows], first[rows], *(rank[rows] for rank in ranks)))


def _groups(rows: Numbers, *columns: Numbers) -> Numbers:
    """(n,) the number of each row's group, from 0; rows are sorted by groups, which agree in the columns."""
    new = np.zeros(len(rows), np.bool_)
    for column in columns:
        new[1:] |= column[rows][1:] != column[rows][:-1]
    groups: Numbers = np.cumsum(new)
    return groups


def _plain(events: pa.Table) -> list[pa.Array]:
    """The columns in the types in which `detect` orders them."""
    columns = []
    for field, column in zip(plain_schema(events.schema), events.columns, strict=True):
        try:
            columns.append(whole(column.cast(field.type)))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # as nanoseconds, which are not cut
            columns.append(whole(column))
    return columns
