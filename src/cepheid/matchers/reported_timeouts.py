"""A log of reported timeouts, so that each is reported only once.

Branches of a pattern may have the same events. With windows between events, one branch may time out first. An event may
then move another branch to a state whose deadline has already passed. At the next event that branch times out with the
same events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events.identity import key_names
from cepheid.kernel.arrays import Flags, Int32s
from cepheid.matchers.key_numbers import Names
from cepheid.output.common import TIMEOUT

_FEW = 1024


class TimeoutLog(Protocol):
    """The reported timeouts of the keys that have something open."""

    may_repeat: ClassVar[bool]
    """Whether the same timeout may occur again. If not, the log stores nothing."""

    def new(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows without the timeouts that were reported before. The other timeouts count as reported from now on."""

    def take_back(self, rows: pa.RecordBatch) -> None:
        """Removes the timeouts among the rows from the log."""

    def forget(self, keys: Iterable[bytes]) -> None:
        """Forgets the timeouts of these keys, which have nothing open now."""

    def forget_closed(self, keys: Int32s, is_open: Flags, names: Names) -> None:
        """Forgets the timeouts of keys that have nothing open now. For the other keys, forgets timeouts that began
        before all open partial matches. `names` has the keys' names by their numbers.
        """

    def keep_only(self, keys: Iterable[bytes]) -> None:
        """Forgets the timeouts of all other keys, which have nothing open now."""

    def forget_expired(self, time: int) -> None:
        """Forgets timeouts that began a window or more before `time` (microseconds), once the log is large enough to be
        worth it.
        """

    def saved(self, name: str) -> dict[str, pa.RecordBatch]:
        """The batches of a snapshot for `restore`, under this name."""

    def restore(self, batches: Mapping[str, pa.RecordBatch], name: str) -> None:
        """Continues from what `saved` returned."""


class NoTimeouts:
    """The log for patterns whose timeouts cannot occur twice."""

    may_repeat: ClassVar[bool] = False

    def new(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows

    def take_back(self, rows: pa.RecordBatch) -> None:
        pass

    def forget(self, keys: Iterable[bytes]) -> None:
        pass

    def forget_closed(self, keys: Int32s, is_open: Flags, names: Names) -> None:
        pass

    def keep_only(self, keys: Iterable[bytes]) -> None:
        pass

    def forget_expired(self, time: int) -> None:
        pass

    def saved(self, name: str) -> dict[str, pa.RecordBatch]:  # noqa: ARG002
        return {}

    def restore(self, batches: Mapping[str, pa.RecordBatch], name: str) -> None:
        pass


@dataclass
class ReportedTimeouts:
    """The log for patterns whose timeouts may occur twice."""

    may_repeat: ClassVar[bool] = True

    key: tuple[str, ...]
    """Names of the key columns in a matcher's rows."""
    window: int | None
    """Microseconds from the first event of a match to its deadline, if the pattern has such a window."""
    first_starts: Callable[[Int32s], Sequence[int]]
    """(k,) microseconds: the start of the first open partial match of each key; all these keys have some open."""
    starts: dict[bytes, dict[str, int]] = field(default_factory=dict)
    """Canonical bytes of a key → match_id of each reported timeout → time of its first event, in microseconds."""
    _many: dict[bytes, int] = field(default_factory=dict)
    """Key → the number of ids above which old ones are removed; without an entry, `_FEW`."""
    _count: int = 0
    _kept: int = 0

    def new(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        at = np.flatnonzero(pc.equal(rows.column("kind"), TIMEOUT).to_numpy(zero_copy_only=False))
        timeouts = rows.take(pa.array(at))
        names = key_names([timeouts.column(name) for name in self.key], len(at))
        ids, starts = timeouts.column("match_id").to_pylist(), timeouts.column("match_start").cast(pa.int64())
        is_new = np.ones(len(rows), np.bool_)
        for row, name, match_id, start in zip(at.tolist(), names, ids, starts.to_pylist(), strict=True):
            is_new[row] = self._add(name, match_id, start)
        return rows if is_new.all() else rows.filter(pa.array(is_new))

    def take_back(self, rows: pa.RecordBatch) -> None:
        timeouts = rows.filter(pc.equal(rows.column("kind"), TIMEOUT))
        names = key_names([timeouts.column(name) for name in self.key], len(timeouts))
        for name, match_id in zip(names, timeouts.column("match_id").to_pylist(), strict=True):
            if self.starts.get(name, {}).pop(match_id, None) is not None:
                self._count -= 1

    def forget(self, keys: Iterable[bytes]) -> None:
        for name in keys:
            self._count -= len(self.starts.pop(name, ()))
            self._many.pop(name, None)

    def forget_closed(self, keys: Int32s, is_open: Flags, names: Names) -> None:
        self.forget(names[number] for number in keys[~is_open].tolist())
        busy = keys[is_open]
        for number, start in zip(busy.tolist(), self.first_starts(busy), strict=True):
            self._keep_from(names[number], start)

    def _keep_from(self, name: bytes, start: int) -> None:
        """Forgets the key's timeouts that began before `start` (microseconds), once there are enough to be worth it."""
        starts = self.starts.get(name)
        if starts is None or len(starts) <= self._many.get(name, _FEW):
            return
        open_ = {match_id: began for match_id, began in starts.items() if began >= start}
        self._count -= len(starts) - len(open_)
        self.starts[name], self._many[name] = open_, max(_FEW, 2 * len(open_))

    def keep_only(self, keys: Iterable[bytes]) -> None:
        self._replace({name: self.starts[name] for name in keys if name in self.starts})

    def forget_expired(self, time: int) -> None:
        if self.window is None or self._count <= 2 * self._kept + _FEW:
            return
        open_ = {
            name: {match_id: start for match_id, start in starts.items() if start + self.window > time}
            for name, starts in self.starts.items()
        }
        self._replace({name: starts for name, starts in open_.items() if starts})

    def saved(self, name: str) -> dict[str, pa.RecordBatch]:
        return {name: self._all}

    @property
    def _all(self) -> pa.RecordBatch:
        listed = [(name, *reported) for name, starts in self.starts.items() for reported in starts.items()]
        columns = zip(*listed, strict=True) if listed else ((), (), ())
        types = {"name": pa.binary(), "id": pa.string(), "start": pa.int64()}
        return pa.record_batch(
            {name: pa.array(values, types[name]) for name, values in zip(types, columns, strict=True)}
        )

    def restore(self, batches: Mapping[str, pa.RecordBatch], name: str) -> None:
        columns = (batches[name].column(column).to_pylist() for column in ("name", "id", "start"))
        for key, match_id, start in zip(*columns, strict=True):
            self._add(key, match_id, start)

    def _add(self, name: bytes, match_id: str, start: int) -> bool:
        """Adds a timeout; returns false if it was reported before."""
        starts = self.starts.setdefault(name, {})
        if match_id in starts:
            return False
        starts[match_id] = start
        self._count += 1
        return True

    def _replace(self, starts: dict[bytes, dict[str, int]]) -> None:
        self.starts = starts
        self._count = self._kept = sum(map(len, starts.values()))
