"""The LiveMatcher of patterns of stages and of occurrences, which processes events in the order of time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from cepheid.errors import PatternError
from cepheid.events.batch import Batch, join
from cepheid.kernel.arrays import FOREVER
from cepheid.kernel.parts import Joined, StatePart
from cepheid.matchers.conservative import ConservativeMatcher
from cepheid.matchers.counts import LIVE_COUNTS
from cepheid.matchers.division import joined_snapshots, keep_only
from cepheid.matchers.event_queue import times_of
from cepheid.matchers.open_changes import OpenChanges
from cepheid.matchers.protocols import Detector, LiveMatcher, PatternRunner, ShardMatcher
from cepheid.matchers.snapshot import from_bytes, in_pieces, restored, to_bytes
from cepheid.matchers.watermark import Reached
from cepheid.output.ids import Ids
from cepheid.plan.limits import Limits
from cepheid.plan.plan_set import PatternPlan


def advance(matcher: ShardMatcher, reached: Reached) -> pa.Table:
    """Advances the matcher's watermark; returns the rows that this makes certain."""
    return matcher.advance_time(reached.time) if reached.over else matcher.settle(reached.time)


class Planned:
    """The properties of a PatternRunner that come from its plan."""

    plan: PatternPlan
    why_unlisted: ClassVar[str]
    """The message that says why partial matches cannot be listed, where they cannot."""

    @property
    def plans(self) -> Sequence[PatternPlan]:
        return (self.plan,)

    @property
    def limits(self) -> Limits:
        return self.plan.limits

    @property
    def open_schema(self) -> pa.Schema:
        raise PatternError(self.why_unlisted)

    @property
    def stored_open_schema(self) -> pa.Schema | None:
        return None

    def open_changes(self, matchers: Sequence[LiveMatcher], most: int) -> OpenChanges:  # noqa: ARG002
        raise PatternError(self.why_unlisted)


class OrderedRunner(Planned, ABC):
    """A PatternRunner whose matchers take events in the order of time."""

    live_matcher: ClassVar[type[OrderedLiveMatcher]]
    """What wraps its matchers for hosts."""

    @abstractmethod
    def detector(self) -> Detector:
        """A new detector."""

    def matcher(self, ids: Ids = Ids.SIPHASH) -> OrderedLiveMatcher:
        detector = self.detector()
        detector.ids = ids
        return self.live_matcher(self, ConservativeMatcher(detector))

    def restored(
        self, snapshot: bytes, made_for: Mapping[str, Any], columns: pa.Schema
    ) -> tuple[OrderedLiveMatcher, dict[str, Any]]:
        live, kept = restored(ConservativeMatcher(self.detector()), snapshot, made_for, columns)
        return self.live_matcher(self, live), kept

    @abstractmethod
    def joined_state(self, parts: Sequence[StatePart]) -> Joined:
        """One state of kernels, of the states in snapshots."""

    def joined(self, snapshots: Sequence[bytes]) -> bytes:
        if len(snapshots) == 1:
            return snapshots[0]
        return to_bytes(joined_snapshots([from_bytes(one) for one in snapshots], self.joined_state))

    @property
    @abstractmethod
    def schema(self) -> pa.Schema: ...


class LiveDefaults:
    """What a LiveMatcher answers that cannot drain and has no partial matches to be listed; others override it."""

    drains: bool = False

    @property
    def each(self: LiveMatcher) -> Sequence[LiveMatcher]:
        return (self,)

    def of_each(self, rows: pa.Table) -> Sequence[pa.Table]:
        return (rows,)

    def drain(self, *, waiting: bool) -> None:
        raise NotImplementedError("patterns of this kind cannot be drained")

    @property
    def no_match(self) -> Mapping[str, int]:
        return {}

    @property
    def lists_with(self) -> Hashable:
        return None


class OrderedLiveMatcher(LiveDefaults):
    """A LiveMatcher that emits a match when no event that is not late can change it."""

    def __init__(self, pattern: PatternRunner, live: ConservativeMatcher) -> None:
        self.pattern = pattern
        self.live = live

    def advance_time(self, time: int) -> pa.Table:
        return self.live.advance_time(time)

    def settle(self, time: int) -> pa.Table:
        if self.live.detector.closes_instants:
            return self.advance_time(time - 1)
        return self.live.settle(time)

    def process(self, events: Batch) -> pa.Table:
        return self.live.process(events)

    def net(self, rows: pa.Table) -> pa.Table:
        return rows

    def replay(self, log: Iterable[tuple[Reached, Batch]], reached: Reached, limits: Limits) -> None:
        parts = [*log]
        with self.live.detector.replaying(limits):
            if reached.over and all(before.over for before, _ in parts):
                self._replay_at_once(parts, reached.time)
            else:
                self._replay_in_steps(parts, reached)

    def _replay_at_once(self, log: Sequence[tuple[Reached, Batch]], passed: int) -> None:
        """Processes all batches at once, because the steps in which time passed whole instants do not matter here. Late
        events are only counted: the ordinals of further late events continue from these.
        """
        in_time = []
        for before, events in log:
            is_late = times_of(events) <= before.time
            self.live.watermark.numbered(events.filter(pa.array(is_late)))
            in_time.append(events.filter(pa.array(~is_late)))
        if in_time:
            self.live.process(join(in_time))
        self.live.advance_time(passed)

    def _replay_in_steps(self, log: Sequence[tuple[Reached, Batch]], reached: Reached) -> None:
        """Which events of an instant are late depends on the steps in which the others of that instant came."""
        for before, events in log:
            advance(self, before)
            self.process(events)
        advance(self, reached)

    def renewed(self) -> pa.Table | None:
        return None

    @property
    def now(self) -> int:
        return self.live.now

    @property
    def due(self) -> int:
        return self.live.due

    @property
    def open(self) -> int:
        return self.live.open_partial_matches

    @property
    def is_idle(self) -> bool:
        return not (self.open or len(self.live.waiting) or self.live.detector.kernel.next_due < FOREVER)

    @property
    def counts(self) -> dict[str, int]:
        found = {"ties": self.live.ties, "late": self.live.late, **vars(self.live.found)}
        return {name: found[name] for name in LIVE_COUNTS}

    def partial_matches(self, most: int) -> pa.Table:
        return self.live.partial_matches(most)

    @property
    def open_keys(self) -> Collection[bytes]:
        return self.live.keys.number_of.keys()

    def keep_only(self, names: Collection[bytes]) -> None:
        keep_only(self.live, names)

    def watch(self, *, all_open: bool = False) -> None:
        self.live.visited = dict.fromkeys(self.live.keys.number_of, True) if all_open else {}

    def snapshot(self, made_for: Mapping[str, Any], kept: Mapping[str, Any]) -> bytes:
        return self.live.snapshot(made_for, kept)

    def snapshot_in_pieces(self, made_for: Mapping[str, Any], kept: Mapping[str, Any]) -> Iterator[bytes]:
        captured = self.live.captured(made_for, kept)
        arrays = {name: array.copy() for name, array in captured.arrays.items()}
        return in_pieces(captured._replace(arrays=arrays))
