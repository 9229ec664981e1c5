"""What a Matcher with a consistency tells, step by step, for tests against the definition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st

from cepheid import Matcher
from cepheid.lang.consistency import Consistency
from cepheid.matchers.real_time import matcher as real_time
from cepheid.matchers.real_time.rollback_points import RollbackPoints

SIGNS = {"insertion": "+", "retraction": "-", "late": "late"}
"""Kinds of rows as the definition has them."""

Log = dict[tuple[str, int], list[tuple[str, Any]]]
"""What is told by a switch before an event, at an event, and at the end; by its position."""


def log_of(
    live: Matcher,
    arriving: Sequence[pa.Table],
    switches: Mapping[int, Consistency],
    shown: Callable[[dict[str, Any]], Any],
) -> Log:
    """What the matcher tells of events that come one by one, each row as `shown`."""
    told = {}
    for position, event in enumerate(arriving):
        if position in switches:
            told["switch", position] = live.switch(switches[position])
        told["arrive", position] = live.process(event)
    told["eos", len(arriving)] = live.finish()
    return sorted_log(
        (*step, SIGNS[row["kind"]], shown(row)) for step, rows in told.items() for row in rows.to_pylist()
    )


def sorted_log(entries: Iterable[tuple[str, int, str, Any]]) -> Log:
    """When, where, the sign and what of each; in whatever order it is told at a step."""
    log: Log = {}
    for when, position, sign, what in entries:
        log.setdefault((when, position), []).append((sign, what))
    return {step: sorted(told) for step, told in log.items()}


@contextmanager
def states_every(count: int, few: int = real_time.FEW) -> Iterator[None]:
    """Matchers in the block fork a key after so many of its events, and keep up to `few` rows in any case."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RollbackPoints, "every", count)
        patch.setattr(real_time, "FEW", few)
        yield


def drawn_states(data: st.DataObject) -> Any:
    """`states_every` of some counts."""
    every = data.draw(st.sampled_from([1, 2, RollbackPoints.every]))
    return states_every(every, data.draw(st.sampled_from([0, real_time.FEW])))
