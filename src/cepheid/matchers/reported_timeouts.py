"""Timeouts that were told, as each is told once.

Branches of a pattern may have the same events. Where windows are between events, one of them may time out, and an event
may then move another to where that time is over already: it times out as well, with the next.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events.identity import key_names
from cepheid.output.stages import TIMEOUT

_FEW = 1024


@dataclass
class ToldTimeouts:
    """Of the keys that have something open."""

    key: tuple[str, ...]
    """Names of the key's columns in a matcher's rows."""
    window: int | None
    """Microseconds from the first event of a match to its deadline, if the pattern has such a window."""
    starts: dict[bytes, dict[str, int]] = field(default_factory=dict)
    """For the canonical bytes of a key the ids of what was told, each with the time of its first event."""
    _many: dict[bytes, int] = field(default_factory=dict)
    """How many ids of a key are too many, where it has had that."""
    _count: int = 0
    _kept: int = 0

    def not_told(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows but the timeouts that were told before; the others now are."""
        at = np.flatnonzero(pc.equal(rows.column("kind"), TIMEOUT).to_numpy(zero_copy_only=False))
        timeouts = rows.take(pa.array(at))
        names = key_names([timeouts.column(name) for name in self.key], len(at))
        ids, starts = timeouts.column("match_id").to_pylist(), timeouts.column("match_start").cast(pa.int64())
        is_new = np.ones(len(rows), np.bool_)
        for row, name, match_id, start in zip(at.tolist(), names, ids, starts.to_pylist(), strict=True):
            is_new[row] = self._tell(name, match_id, start)
        return rows if is_new.all() else rows.filter(pa.array(is_new))

    def take_back(self, rows: pa.RecordBatch) -> None:
        """The timeouts among the rows are not told any more."""
        timeouts = rows.filter(pc.equal(rows.column("kind"), TIMEOUT))
        names = key_names([timeouts.column(name) for name in self.key], len(timeouts))
        for name, match_id in zip(names, timeouts.column("match_id").to_pylist(), strict=True):
            if self.starts.get(name, {}).pop(match_id, None) is not None:
                self._count -= 1

    def forget(self, keys: Iterable[bytes]) -> None:
        """These have nothing open any more."""
        for name in keys:
            self._count -= len(self.starts.pop(name, ()))
            self._many.pop(name, None)

    def keep_from(self, name: bytes, start: int) -> None:
        """What the key has open began at `start` (microseconds) or later. Done when it is worth it."""
        starts = self.starts.get(name)
        if starts is None or len(starts) <= self._many.get(name, _FEW):
            return
        open_ = {match_id: began for match_id, began in starts.items() if began >= start}
        self._count -= len(starts) - len(open_)
        self.starts[name], self._many[name] = open_, max(_FEW, 2 * len(open_))

    def keep_only(self, keys: Iterable[bytes]) -> None:
        """The others have nothing open any more."""
        self._replace({name: self.starts[name] for name in keys if name in self.starts})

    def pass_time(self, time: int) -> None:
        """Time has passed for all keys: what started too long ago is not open any more. Done when it is worth it."""
        if self.window is None or self._count <= 2 * self._kept + _FEW:
            return
        open_ = {
            name: {match_id: start for match_id, start in starts.items() if start + self.window > time}
            for name, starts in self.starts.items()
        }
        self._replace({name: starts for name, starts in open_.items() if starts})

    @property
    def all(self) -> pa.RecordBatch:
        """What was told, as `restore` takes it."""
        listed = [(name, *told) for name, starts in self.starts.items() for told in starts.items()]
        columns = zip(*listed, strict=True) if listed else ((), (), ())
        types = {"name": pa.binary(), "id": pa.string(), "start": pa.int64()}
        return pa.record_batch(
            {name: pa.array(values, types[name]) for name, values in zip(types, columns, strict=True)}
        )

    def restore(self, told: pa.RecordBatch) -> None:
        """Goes on with what `all` gave."""
        for name, match_id, start in zip(*(told.column(c).to_pylist() for c in ("name", "id", "start")), strict=True):
            self._tell(name, match_id, start)

    def _tell(self, name: bytes, match_id: str, start: int) -> bool:
        """Whether it was not told before."""
        starts = self.starts.setdefault(name, {})
        if match_id in starts:
            return False
        starts[match_id] = start
        self._count += 1
        return True

    def _replace(self, starts: dict[bytes, dict[str, int]]) -> None:
        self.starts = starts
        self._count = self._kept = sum(map(len, starts.values()))
