"""The four engines of `out_of_order.py`: each reads a stream and emits matches. Also the quality of these matches.

All engines use the same compiled joins, so that their times compare ways to handle disorder and not languages.

- real time and conservative: an `IntervalMatcher`.
- K-slack on points: a buffer of K sorts the events by their ends, and the engine sees only the ends. So intervals
  become instants, and relations become the order of the ends.
- in order only, which stands for IEMiner: an engine that assumes that events arrive in the order of their ends. It
  finds a match if the match's events arrive in that order, before the window is over, and never retracts one. Its
  matches are selected from those emitted in real time; its time is that of the real-time engine on the same events in
  order.
"""

from __future__ import annotations

import statistics
import time
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from measuring import timed
from out_of_order_events import LATEST, LONGEST, SECOND, WINDOW, Longs, Query, Stream

from cepheid import detect
from cepheid.intervals import IntervalMatcher, interval_pattern

PIECE, CALL = 1 << 17, 1_000
NAMES: dict[str, Any] = {"time": ("start", "end"), "columns": ["id"]}
ENGINES = ("real time", "conservative", "K-slack on points", "in order only")


class Rows(NamedTuple):
    """Insertions and retractions, in the order in which they are emitted."""

    sign: Longs
    """1 for an insertion, -1 for a retraction."""
    ids: Longs
    """The events of each row; shape (m, n)."""
    clock: Longs
    """The latest end that had arrived when the row was emitted, including the event that caused the row."""
    end: Longs
    """The end of the match."""

    def only(self, chosen: npt.NDArray[np.bool_]) -> Rows:
        return Rows(*(part[chosen] for part in self))


class Answer(NamedTuple):
    """The rows that an engine emits, and the time that it takes."""

    seconds: float
    """The processor time of the thread, from table to rows."""
    call: float
    """The median elapsed seconds of several calls with CALL events."""
    rows: Rows
    late: Longs
    """The events that it has not matched, as they arrived later than K."""

    @property
    def net(self) -> Longs:
        """The matches that are not retracted, each once, sorted."""
        found, inverse = np.unique(as_keys(self.rows.ids), return_inverse=True)
        signs = np.bincount(inverse.ravel(), weights=self.rows.sign, minlength=len(found))
        assert np.isin(signs, (0, 1)).all(), "a match was inserted twice, or one that was not inserted was retracted"
        return np.array(found[signs == 1])


def as_keys(ids: Longs) -> Longs:
    """A number for each row, for comparisons. The probability that any two of a million rows share one is about 1 in
    10 million.
    """
    factors = np.random.default_rng(1).integers(np.iinfo(np.int64).min, np.iinfo(np.int64).max, ids.shape[1]) | 1
    return ids @ factors


class Quality(NamedTuple):
    """The quality of an answer, compared with the true matches."""

    precision: float
    recall: float
    accuracy: float
    """The share of the insertions that are right, with those that are retracted later: what was given."""
    retracted: float
    """The share of the insertions that are retracted: the rate of compensation."""
    behind: float
    """The mean seconds of event time from the end of a match until it is emitted, or retracted."""
    waited: float
    """The mean number of events that arrive between the last event of a match and the row."""


def truth(stream: Stream, query: Query, *, without: Longs | None = None) -> Longs:
    """The true matches, sorted: those of all events in order. The late events, `without`, are left out."""
    events = stream.events
    if without is not None and len(without):
        events = events.take(pa.array(np.setdiff1d(np.arange(len(events)), without)))
    return np.unique(
        as_keys(_ids(detect(events, interval_pattern(query.text).taxonomy("type"), **NAMES), query.length))
    )


def answer(engine: str, stream: Stream, query: Query, slack: int, buffer: int | None = None) -> Answer:
    """The answer of an engine. `slack` is how many microseconds before the latest end an event may end without being
    late. With a `buffer`, so many of the latest events are not late.
    """
    # Lateness is by start, so the delay includes the longest event.
    delay = f"{slack + (LONGEST if query.durations else 0)} microseconds"
    points_delay = f"{slack} microseconds"
    if buffer is not None:
        delay = points_delay = f"{buffer} events"
    match engine:
        case "real time":
            return _answered(query, stream.events, delay, "realtime")
        case "conservative":
            return _answered(query, stream.events, delay, "conservative")
        case "K-slack on points":
            points = stream.events.set_column(3, "start", stream.events["end"])
            return _answered(query.of_points, points, points_delay, "conservative")
        case _:
            assert engine == "in order only"
            return _in_order_only(stream, query)


def _in_order_only(stream: Stream, query: Query) -> Answer:
    delay = f"{LATEST + LONGEST} microseconds"
    found = _answered(query, stream.events, delay, "realtime").rows
    clock = np.append(np.iinfo(np.int64).min, np.maximum.accumulate(stream.end)[:-1])
    # Ends ascend with the variables, as the right part of `overlap` and of `before` ends last.
    begun = stream.start[found.ids].min(axis=1) + WINDOW * SECOND
    chosen = (found.sign > 0) & (np.diff(found.ids) > 0).all(axis=1) & (clock[found.ids[:, -1]] <= begun)
    used_to = _answered(query, stream.in_order, delay, "realtime")
    return used_to._replace(rows=found.only(chosen))


def _answered(query: Query, events: pa.Table, delay: str, consistency: str) -> Answer:
    pattern = interval_pattern(f"{query.text} CONSISTENCY {consistency}").taxonomy("type")
    called, matcher = (IntervalMatcher(pattern, events.schema, lateness=delay, **NAMES) for _ in range(2))
    calls = [timed(partial(called.process, piece))[0] for piece in _pieces(events.slice(0, 10 * CALL), CALL)]
    seconds, tables = timed(
        lambda: [*(_one_by_one(matcher, piece) for piece in _pieces(events, PIECE)), matcher.finish()],
        clock=time.thread_time,
    )
    table = pa.concat_tables(tables)
    kinds = table["kind"].to_numpy(zero_copy_only=False)
    late = kinds == "late"
    matched = table.filter(pa.array(~late))
    rows = Rows(
        np.where(kinds[~late] == "insertion", 1, -1),
        _ids(matched, query.length),
        *(matched[name].cast(pa.int64()).fill_null(0).to_numpy() for name in ("detected_at", "match_end")),
    )
    return Answer(seconds, statistics.median(calls), rows, _id_of(table.filter(pa.array(late)), "event"))


def _one_by_one(matcher: IntervalMatcher, events: pa.Table) -> pa.Table:
    """The rows that one call per event would return. A normal call sorts its events, so that none is out of order."""
    host = matcher._host  # noqa: SLF001 - the public call sorts
    return host.matcher._matcher.process(host._batch(events)[0])  # type: ignore[attr-defined]  # noqa: SLF001


def _pieces(events: pa.Table, rows: int) -> list[pa.Table]:
    return [events.slice(start, rows) for start in range(0, len(events), rows)]


def _ids(table: pa.Table, length: int) -> Longs:
    return np.stack([_id_of(table, f"v{number}") for number in range(length)], axis=1)


def _id_of(table: pa.Table, column: str) -> Longs:
    events = table[column].combine_chunks()
    found: Longs = events.field("id").to_numpy() if len(events) else np.zeros(0, np.int64)
    return found


def quality(found: Answer, expected: Longs, stream: Stream) -> Quality:
    rows, net = found.rows, found.net
    right = len(np.intersect1d(net, expected, assume_unique=True))
    emitted = rows.only(rows.sign > 0)
    clocks = np.maximum.accumulate(stream.end)
    last = rows.ids.max(axis=1, initial=0)
    # A match is emitted when its last event arrives, or when a later event moves the clock to `rows.clock`.
    at = np.maximum(np.searchsorted(clocks, rows.clock), last)
    given = as_keys(emitted.ids)
    return Quality(
        right / len(net) if len(net) else 1.0,
        right / len(expected) if len(expected) else 1.0,
        float(np.isin(given, expected).mean()) if len(given) else 0.0,
        float((rows.sign < 0).sum() / max(len(given), 1)),
        float((clocks[at] - rows.end).mean() / SECOND) if len(rows.sign) else 0.0,
        float((at - last).mean()) if len(rows.sign) else 0.0,
    )
