"""The supervisor of a streaming query: it changes the set of patterns while the query runs.

Spark freezes the plan of a running query. So the supervisor stops it after a micro-batch, plans again with the new set
on the same checkpoint, and goes on. Everything that can be wrong with the new set is found while the former query still
runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Event
from time import monotonic, sleep
from typing import TYPE_CHECKING

from pyspark.errors import StreamingQueryException

from cepheid.errors import LimitExceeded, PatternError, SchemaError, SnapshotError
from cepheid.hosts.spark.stream.detect import Earlier
from cepheid.hosts.spark.stream.placement import Placement
from cepheid.hosts.spark.stream.progress import progress_of
from cepheid.hosts.spark.stream.stored_state import open_by_number, stored_patterns
from cepheid.hosts.spark.supervised.folder import Content, FilePattern, content_of, located, patterns_of
from cepheid.hosts.spark.supervised.ledger import SetLedger, set_of
from cepheid.hosts.spark.supervised.news import Refusal, Switch
from cepheid.hosts.spark.supervised.pattern_set import Change, PatternSet, following
from cepheid.hosts.spark.supervised.supervised import Supervised
from cepheid.lang.documents import AnyPattern

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


_TIERS = (
    "events: these are matches of another detect in the same query, whose patterns stay the same. Write them to a "
    "topic or a table first, and read that as a stream"
)

LOOK = 1
"""Seconds between two looks at the folder."""

_SETTLED = 0.2
"""Seconds between two looks at the folder when the supervisor starts."""
_POLL = 0.005
_RARELY = 20
"""Reading whether something is still open may take one part in so many of the time."""


class Supervisor:
    """Runs a query, and changes its set of patterns. Made by `supervise`."""

    def __init__(self, given: Supervised) -> None:
        """Starts the query; as `supervise`."""
        if Earlier.of(given.events).patterns:
            raise SchemaError(_TIERS)
        spark = given.events.sparkSession
        even = all(one.placement.even for one in stored_patterns(spark, given.checkpoint))
        self._given = given = replace(given, even=even)
        self._ledger = SetLedger(spark, given.checkpoint)
        self._sets = self._ledger.sets()
        self._stopped = Event()
        self._checked_at, self._followed = 0.0, -1
        self._open: dict[int, int] | None = None
        """How much is open of draining patterns, by number; None: it must be read."""
        self._unreadable = ""
        self._seen = _settled(given.folder)
        self._judged = self._seen
        if self._sets:
            self._wanted: Mapping[str, AnyPattern] = {name: one.pattern for name, one in self._sets[-1].running.items()}
            new = self._judge(self._seen)
        else:
            self._check_new()
            files = patterns_of(self._seen, given.folder, given.parameters)
            self._wanted = {name: file.pattern for name, file in files.items()}
            with _located_in(files):
                nothing = PatternSet(0, ())
                new = following(nothing, self._wanted, given.old, ())
                given.rows(new)
        self._begin(new)

    def _begin(self, new: PatternSet | None) -> None:
        before = self._sets[-1] if self._sets else None
        if new is not None:
            if before is not None:
                ended = self._not_cleared(new.ended)
                new = replace(new, first=self._next_batch(may_fail=True), ended=ended)
            self._add(new)
        self.query = self._given.start(self._given.rows(self.patterns))
        """The query that runs now."""
        change = Change.between(before, self.patterns)
        self._given.report(Switch(self.patterns, change, None, None))

    @property
    def patterns(self) -> PatternSet:
        """The patterns that run and drain now."""
        return self._sets[-1]

    def run(self) -> None:
        """Looks at the folder every second, until the query ends or `stop` is called.

        Raises:
            StreamingQueryException: the query has failed.
        """
        while not self.query.awaitTermination(LOOK) and not self._stopped.is_set():
            self.look()
        self.query.stop()  # `stop` may have been called while this one was about to start

    def stop(self) -> None:
        """Stops the query, which interrupts its micro-batch, and ends `run`. May be called by another thread."""
        self._stopped.set()
        self.query.stop()

    def look(self) -> None:
        """Looks at the folder once, and makes the change that is due. Content must be the same at two looks before it
        counts: then nobody is writing it.
        """
        if not self.query.isActive:
            return
        content = self._content()
        is_settled, self._seen = content == self._seen, content
        new = None
        if is_settled and content != self._judged:
            self._judged = content
            new = self._judge(content)
        if new is None and (idle := self._idle()):
            new = following(self.patterns, self._wanted, self._given.old, self._sets, idle)
        if new is not None:
            self._switch(new)

    def _content(self) -> Content:
        try:
            return content_of(self._given.folder)
        except PatternError as error:
            self._refuse_once(error)
            return self._seen

    def _refuse_once(self, error: PatternError) -> None:
        if self._unreadable != str(error):
            self._unreadable = str(error)
            self._given.report(Refusal(str(error)))

    def _judge(self, content: Content) -> PatternSet | None:
        """The set that the content asks for; None if it is the present one, or if the content is refused."""
        given = self._given
        try:
            files = patterns_of(content, given.folder, given.parameters)
            wanted = {name: file.pattern for name, file in files.items()}
            with _located_in(files):
                new = following(self.patterns, wanted, given.old, self._sets)
                if new.without_first() == self.patterns.without_first():
                    return None
                given.rows(new)
        except (PatternError, SchemaError, LimitExceeded) as error:
            given.report(Refusal(str(error)))
            return None
        self._wanted = wanted
        return new

    def _switch(self, new: PatternSet) -> None:
        new = replace(new, ended=self._not_cleared(new.ended))
        rows = self._given.rows(new)
        change = Change.between(self.patterns, new)
        former, began = self.query, self._stop_after_commit()
        if former.exception() is not None or self._stopped.is_set():
            return
        self._add(replace(new, first=self._next_batch()))
        self.query = self._given.start(rows)
        self._await_first()
        pause = timedelta(seconds=monotonic() - began)
        self._given.report(Switch(self.patterns, change, pause, former))

    def _add(self, new: PatternSet) -> None:
        self._ledger.add(new, self._sets)
        self._sets.append(new)

    def _stop_after_commit(self) -> float:
        """Stops the query when its micro-batch has been committed; returns the time of that by the monotonic clock. If
        the next micro-batch has begun by then, `_next_batch` finishes it.
        """
        query, before = self.query, _last_batch(self.query)
        while query.isActive and query.status["isTriggerActive"] and _last_batch(query) == before:
            if self._stopped.is_set():
                break
            sleep(_POLL)
        began = monotonic()
        query.stop()
        return began

    def _next_batch(self, *, may_fail: bool = False) -> int:
        """The number of the next micro-batch, after one that was begun is finished with the set that it was begun with.

        If that fails and `may_fail`, it is the number of that micro-batch: the new set may do what the old one cannot,
        and a micro-batch that fails is not in the sink.
        """
        planned, committed = self._ledger.batches()
        if planned == committed:
            return committed + 1
        try:
            rows = self._given.rows(set_of(planned, self._sets))
            self._given.start(rows, once=True).awaitTermination()
        except StreamingQueryException:
            if may_fail:
                return planned
            raise
        return self._ledger.batches().committed + 1

    def _await_first(self) -> None:
        """Waits until the query has committed its first micro-batch, or waits for events."""
        query = self.query
        while query.isActive and query.lastProgress is None and not self._stopped.is_set():
            if query.status["message"].startswith("Waiting"):
                break
            sleep(_POLL)

    def _idle(self) -> list[int]:
        """The numbers of draining patterns that have nothing open any more.

        The checkpoint says so. Reading it costs some small jobs, so it is read once, and then again when all that was
        open has ended according to the query's progress; if events still wait for the watermark, once in a while.
        """
        draining = [one.number for one in self.patterns.draining]
        if not draining or self._follow() or monotonic() < self._checked_at:
            return []
        began = monotonic()
        stored = self._stored()
        self._open = {number: stored.get(number, 0) for number in draining}
        if not all(self._open.values()):
            self._checked_at = monotonic() + _RARELY * (monotonic() - began)
        return [number for number in draining if number not in stored]

    def _follow(self) -> bool:
        """Adds up what has been opened and has ended; returns whether something is open of each draining pattern."""
        places = [place for place in self.patterns.places.each if place.drains]
        for reported in self.query.recentProgress:
            progress = progress_of(json.loads(reported.json)) if reported.batchId > self._followed else None
            if progress is None:
                continue
            if self._open is not None and progress.batch == self._followed + 1:
                for place in places:
                    self._open[place.number] = self._open.get(place.number, 0) + progress.patterns[place.label].opened
            else:  # some were reported by the former query, or too long ago
                self._open = None
            self._followed = progress.batch
        return self._open is not None and all(self._open.get(place.number, 0) > 0 for place in places)

    def _not_cleared(self, ended: Iterable[int]) -> tuple[int, ...]:
        """Those of the ended patterns that still have state."""
        known = {*self.patterns.ended}
        if known.isdisjoint(ended):
            return tuple(ended)
        stored = self._stored()
        return tuple(number for number in ended if number not in known or number in stored)

    def _stored(self) -> dict[int, int]:
        placement = Placement(self._given.arguments["shards"], even=self._given.even)
        return open_by_number(self._given.checkpoint, placement)

    def _check_new(self) -> None:
        if self._ledger.batches().planned >= 0:
            raise SnapshotError(
                f"the checkpoint at {self._given.checkpoint!r} belongs to a query without a supervisor, whose patterns "
                "stay the same. Give this query a new one"
            )


@contextmanager
def _located_in(files: Mapping[str, FilePattern]) -> Iterator[None]:
    """Wraps planning: problems get their places in the files."""
    try:
        yield
    except PatternError as error:
        raise PatternError(located(error.problems, files)) from None


def _settled(folder: Path) -> Content:
    """The content of the folder once it is the same at two looks."""
    before, content = None, content_of(folder)
    while content != before:
        sleep(_SETTLED)
        before, content = content, content_of(folder)
    return content


def _last_batch(query: StreamingQuery) -> int:
    """The number in the query's last report of a micro-batch; -1 before the first."""
    reported = query.lastProgress
    return -1 if reported is None else reported.batchId
