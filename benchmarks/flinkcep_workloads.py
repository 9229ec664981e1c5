"""The workloads for the comparison with FlinkCEP: patterns, each with its events. FlinkCEP's side is in
flinkcep/Workloads.java.

A key has about one event per second, of one of ten equally likely kinds; a, b and c are three of them. No two events of
a key have the same time, so that their order is the same on both sides. Patterns have the skip strategy no_skip unless
they state another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cepheid import Pattern, Skip

KINDS = 10
EVENTS_OF_A_RUN = 1_000
A, B, C, NEVER = "kind = 0", "kind = 1", "kind = 2", "kind = 10"


def interleaved(rows: int, keys: int) -> pa.Table:
    """Events of all keys in time order, as on a stream."""
    random = np.random.default_rng(rows + keys)
    key = random.integers(0, keys, rows)
    key.sort()
    first = np.searchsorted(key, np.arange(keys))
    at = (np.arange(rows) - first[key]) * 1_000 + random.integers(0, 500, rows)
    order = np.argsort(at, kind="stable")
    return _table(key[order], at[order], random)


def one_key_after_the_other(rows: int, keys: int) -> pa.Table:
    """Events in time order, one key after the other, so that a few events are enough to fill a window. This is for
    workloads in which a few events take long.
    """
    random = np.random.default_rng(rows + keys)
    return _table(np.arange(rows) // EVENTS_OF_A_RUN % keys, _every_second(rows, random), random)


def without_key(rows: int, _: int) -> pa.Table:
    random = np.random.default_rng(rows)
    return _table(np.zeros(rows, np.int64), _every_second(rows, random), random)


def _every_second(rows: int, random: np.random.Generator) -> np.ndarray:
    return np.arange(rows) * 1_000 + random.integers(0, 500, rows)


def _table(key: np.ndarray, at: np.ndarray, random: np.random.Generator) -> pa.Table:
    rows = len(key)
    return pa.table(
        {
            "key": pa.array(key.astype(np.int32)),
            "at": pa.array(at).cast(pa.timestamp("ms", "UTC")),
            "kind": pa.array(random.integers(0, KINDS, rows).astype(np.int32)),
            "price": pa.array(random.uniform(50, 150, rows)),
            "v": pa.array(random.integers(0, 10, rows).astype(np.int32)),
        }
    )


@dataclass(frozen=True)
class Workload:
    name: str
    """The name in flinkcep/Workloads.java."""
    what: str
    pattern: Pattern
    events: Callable[[int, int], pa.Table]
    """Makes the events from a number of rows and a number of keys."""

    @property
    def key(self) -> str | None:
        return None if self.events is without_key else "key"


def _a_b_c_any(condition: str = "") -> Pattern:
    stages = Pattern.begin("a").where(A + condition).followed_by_any("b").where(B + condition)
    return stages.followed_by_any("c").where(C + condition)


def _never(seconds: int) -> Workload:
    pattern = _a_b_c_any().followed_by_any("d").where(NEVER).within(f"{seconds} seconds")
    return Workload(f"W3, {seconds:,}", f"A;B;C;D, D never, window {seconds:,}", pattern, without_key)


_A = Pattern.begin("a").where(A)
_A_FOLLOWED_BY_B = _A.followed_by("b").where(B)
_RISING = Pattern.begin("run").where("count(run) = 0 OR price > last(run.price)")

KEYED = (
    Workload("P1", "a next b next c", _A.next("b").where(B).next("c").where(C).within("30 seconds"), interleaved),
    Workload(
        "P2",
        "a followed_by b followed_by c, past the last event",
        _A_FOLLOWED_BY_B.followed_by("c").where(C).within("30 seconds").skip(Skip.past_last_event()),
        interleaved,
    ),
    Workload("P3", "a followed_by_any b followed_by_any c", _a_b_c_any().within("30 seconds"), interleaved),
    Workload(
        "P4", "a b+ c", _A_FOLLOWED_BY_B.one_or_more().followed_by("c").where(C).within("30 seconds"), interleaved
    ),
    Workload(
        "P5",
        "a b+ c, all combinations of b",
        _A_FOLLOWED_BY_B.one_or_more().allow_combinations().followed_by("c").where(C).within("2 minutes"),
        one_key_after_the_other,
    ),
    Workload(
        "P6",
        "a b+ c, b dearer than a, c cheaper than b",
        _A.followed_by("b")
        .where(f"{B} AND price > a.price * 1.1")
        .one_or_more()
        .followed_by("c")
        .where(f"{C} AND price < avg(b.price)")
        .within("30 seconds"),
        interleaved,
    ),
    Workload(
        "P7",
        "a not_followed_by b followed_by c",
        _A.not_followed_by("b").where(B).followed_by("c").where(C).within("30 seconds"),
        interleaved,
    ),
    Workload("P8", "rising run", _RISING.one_or_more().consecutive().greedy().within("30 seconds"), interleaved),
)

WITHOUT_KEY = (
    Workload("W1", "A;B;C, window 100", _a_b_c_any().within("100 seconds"), without_key),
    Workload("W2", "A;B;C of v < 5, window 1,000", _a_b_c_any(" AND v < 5").within("1000 seconds"), without_key),
    _never(100),
    _never(1_000),
    _never(10_000),
    Workload(
        "W4",
        "A;B+;C, all subsets, window 30",
        _A.followed_by_any("b")
        .where(B)
        .one_or_more()
        .allow_combinations()
        .followed_by_any("c")
        .where(C)
        .within("30 seconds"),
        without_key,
    ),
)
