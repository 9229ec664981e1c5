"""The simulation of rates: who gets how many messages a second, under each way to decide about copies.

A step is one second. Messages have no delay here; `races` and `network` say what delays do. The draws are fixed by the
seed: the same generator, the same order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.allocation.thresholds import THRESHOLDS, Thresholds

Counts: TypeAlias = npt.NDArray[np.int64]
"""Messages of one second: (control threads, originals)."""
Loads: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """What is simulated: sizes, and how the load moves. A thread's `capacity` is in messages a second."""

    inputs: int = 10_000
    controls: int = 100
    originals: int = 1_000
    capacity: int = 100
    hot: int = 5
    share_to_hot: float = 0.5
    seconds: int = 120
    hot_for: int = 60
    """Seconds after which other originals are hot."""
    judged_after: int = 10
    """Seconds after the last change of what is hot, from which on peaks count."""
    thresholds: Thresholds = THRESHOLDS

    def __post_init__(self) -> None:
        left = self.seconds - self.last_change
        if self.judged_after >= left:
            raise ValueError(
                f"judged_after={self.judged_after} must be less than {left}, the seconds after the last change"
            )

    @property
    def last_change(self) -> int:
        """The second in which the last hot originals become hot."""
        return (self.seconds - 1) // self.hot_for * self.hot_for


SETTING = Setting()


def targets(seed: int, setting: Setting = SETTING) -> Iterator[npt.NDArray[np.int64]]:
    """For each second, the original to which each input sends its message."""
    draws = np.random.default_rng(seed)
    hot = np.empty(0, np.int64)
    for second in range(setting.seconds):
        if second % setting.hot_for == 0:
            hot = draws.permutation(setting.originals)[: setting.hot]
        chance = draws.random(setting.inputs)
        to_hot = hot[draws.integers(0, setting.hot, setting.inputs)]
        to_any = draws.integers(0, setting.originals, setting.inputs)
        yield np.where(chance < setting.share_to_hot, to_hot, to_any)


def counted(seed: int, setting: Setting = SETTING) -> list[Counts]:
    """For each second, how many messages each control thread has for each original."""
    control = np.arange(setting.inputs) % setting.controls
    shape = (setting.controls, setting.originals)
    return [
        np.bincount(control * setting.originals + target, minlength=shape[0] * shape[1]).reshape(shape)
        for target in targets(seed, setting)
    ]


class Scheme(Protocol):
    """A way to decide about copies. Each second, first `decide` is called, then `arrivals`."""

    standbys: int
    growths: int
    """How many copies were made so far."""
    releases: int
    """How many copies were released so far."""

    def decide(self, counts: Counts) -> None:
        """Takes the messages of this second into account, and makes and releases copies."""

    def arrivals(self, counts: Counts, second: int) -> Loads:
        """How many messages each original gets, and then each standby."""

    def holders(self) -> dict[int, set[int]]:
        """For each standby that now holds copies, the originals that it copies."""


@dataclass(frozen=True)
class Outcome:
    """What a run came to. Loads and queues are those of the busiest thread; the time since the last change counts."""

    peak_arrival: float
    """The greatest number of arrivals in a second, from `judged_after` on."""
    median_peak: float
    """The median over these seconds of the greatest number of arrivals."""
    longest_queue: float
    """Since the last change."""
    queue_at_end: float
    growths: int
    releases: int
    standbys_used: int
    """The most standbys that held copies at the same time, since the last change."""
    shared_at_most: int
    """The most standbys that held copies of two or more originals at the same time, since the last change."""
    shared_at_end: int
    reached: int | None
    """The first second since the last change in which no thread got more than 120 % of its capacity."""
    stayed: int | None
    """The first such second after which no thread got more again."""
    peaks: tuple[float, ...]
    """For each second of the run, the arrivals at the busiest thread."""
    queues: tuple[float, ...]
    """For each second of the run, the longest queue."""

    @property
    def control_messages(self) -> int:
        """A growth takes a request and a copy message, a release one message."""
        return 2 * self.growths + self.releases


def run(scheme: Scheme, counts: list[Counts], setting: Setting = SETTING) -> Outcome:
    """Runs a scheme, which must be new, on these messages."""
    queue = np.zeros(setting.originals + scheme.standbys)
    peaks, queues, holders = [], [], []
    for second, now in enumerate(counts):
        scheme.decide(now)
        arrivals = scheme.arrivals(now, second)
        queue = np.maximum(0.0, queue + arrivals - setting.capacity)
        peaks.append(float(arrivals.max()))
        queues.append(float(queue.max()))
        holders.append(scheme.holders())
    change = setting.last_change
    judged = peaks[change + setting.judged_after :]
    over = [peak > 1.2 * setting.capacity for peak in peaks[change:]]
    shared = [sum(len(originals) > 1 for originals in held.values()) for held in holders[change:]]
    return Outcome(
        peak_arrival=max(judged),
        median_peak=float(np.median(judged)),
        longest_queue=max(queues[change:]),
        queue_at_end=queues[-1],
        growths=scheme.growths,
        releases=scheme.releases,
        standbys_used=max(map(len, holders[change:])),
        shared_at_most=max(shared),
        shared_at_end=shared[-1],
        reached=over.index(False) if False in over else None,
        stayed=None if over[-1] else len(over) - over[::-1].index(True) if True in over else 0,
        peaks=tuple(peaks),
        queues=tuple(queues),
    )
