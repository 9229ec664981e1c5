"""Ways to decide about copies: nobody, each control thread alone, or one place that sees all counts."""

from __future__ import annotations

import numpy as np

from cepheid.allocation.load import AVERAGED_OVER
from cepheid.allocation.pool import allocated
from cepheid.allocation.thresholds import next_copies
from cepheid.distribution.lists import Order, start_of
from cepheid.distribution.rates.simulation import SETTING, Counts, Loads, Setting


class Nobody:
    """There are no copies."""

    standbys = 0
    growths = 0
    releases = 0

    def decide(self, counts: Counts) -> None:
        """Nothing is decided."""

    def arrivals(self, counts: Counts, second: int) -> Loads:  # noqa: ARG002 nothing depends on the second
        totals: Loads = counts.sum(axis=0).astype(np.float64)
        return totals

    def holders(self) -> dict[int, set[int]]:
        return {}


class EachAlone:
    """The document's scheme: each control thread decides by what it sees itself, times the number of control threads.

    It divides its messages for an original evenly over it and the first standbys of the original's list. The lists are
    the same at all control threads.
    """

    def __init__(self, standbys: int, order: Order, setting: Setting = SETTING) -> None:
        self.standbys = standbys
        self.growths = self.releases = 0
        self._setting = setting
        self._lists = np.array([_list_of(original, standbys, order, setting) for original in range(setting.originals)])
        self._loads = np.zeros((setting.controls, setting.originals))
        self._copies = np.zeros((setting.controls, setting.originals), np.int64)

    def decide(self, counts: Counts) -> None:
        setting, copies = self._setting, self._copies
        self._loads += (counts - self._loads) / AVERAGED_OVER
        estimates = setting.controls * self._loads
        # For all others, the scalar function would not change the number of copies.
        open_to_change = (copies > 0) | (estimates > setting.thresholds.grow * setting.capacity)
        for at in zip(*np.nonzero(open_to_change), strict=True):
            after = next_copies(
                float(estimates[at]),
                before := int(copies[at]),
                capacity=setting.capacity,
                most=self.standbys,
                thresholds=setting.thresholds,
            )
            self.growths += max(0, after - before)
            self.releases += max(0, before - after)
            copies[at] = after

    def arrivals(self, counts: Counts, second: int) -> Loads:
        originals = counts.shape[1]
        arriving = np.where(self._copies == 0, counts, 0).sum(axis=0).astype(np.float64)
        arriving = np.concatenate([arriving, np.zeros(self.standbys)])
        control, original = np.nonzero((self._copies > 0) & (counts > 0))
        messages, threads = counts[control, original], self._copies[control, original] + 1
        each, rest = np.divmod(messages, threads)
        for place in range(int(threads.max(initial=0))):
            # The messages that are left over begin at another place for each control thread and second.
            extra = (place - (control + second)) % threads < rest
            taking = place < threads
            where = original if place == 0 else originals + self._lists[original, min(place - 1, self.standbys - 1)]
            np.add.at(arriving, where[taking], (each + extra)[taking])
        return arriving

    def holders(self) -> dict[int, set[int]]:
        held: dict[int, set[int]] = {}
        most = self._copies.max(axis=0)
        for original in np.nonzero(most)[0].tolist():
            for standby in self._lists[original, : most[original]].tolist():
                held.setdefault(standby, set()).add(original)
        return held


class OnePlace:
    """One place sees all counts, decides, and takes the least busy standbys. Loads are divided evenly."""

    def __init__(self, standbys: int, setting: Setting = SETTING) -> None:
        self.standbys = standbys
        self.growths = self.releases = 0
        self._setting = setting
        self._loads = np.zeros(setting.originals)
        self._copies: dict[int, tuple[int, ...]] = {}

    def decide(self, counts: Counts) -> None:
        setting, before = self._setting, self._copies
        self._loads += (counts.sum(axis=0) - self._loads) / AVERAGED_OVER
        after = allocated(
            dict(enumerate(self._loads.tolist())),
            before,
            range(self.standbys),
            capacity=setting.capacity,
            thresholds=setting.thresholds,
        )
        for original in {*before, *after}:
            more = len(after.get(original, ())) - len(before.get(original, ()))
            self.growths += max(0, more)
            self.releases += max(0, -more)
        self._copies = after

    def arrivals(self, counts: Counts, second: int) -> Loads:  # noqa: ARG002 an even share has no rest to place
        totals = counts.sum(axis=0)
        arriving = np.concatenate([totals.astype(np.float64), np.zeros(self.standbys)])
        for original, standbys in self._copies.items():
            share = totals[original] / (len(standbys) + 1)
            arriving[original] = share
            arriving[len(totals) + np.array(standbys)] += share
        return arriving

    def holders(self) -> dict[int, set[int]]:
        held: dict[int, set[int]] = {}
        for original, standbys in self._copies.items():
            for standby in standbys:
                held.setdefault(standby, set()).add(original)
        return held


def _list_of(original: int, standbys: int, order: Order, setting: Setting) -> np.ndarray:
    if order is Order.RANDOM:
        return np.random.default_rng(original).permutation(standbys)
    start = start_of(original, standbys=standbys, originals=setting.originals)
    return (start + np.arange(standbys)) % standbys
