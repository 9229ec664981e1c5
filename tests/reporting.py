"""Logs of what a Matcher with a consistency emits, step by step, for tests that compare it with the reference."""

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
"""The kinds of rows, as the reference names them."""

Log = dict[tuple[str, int], list[tuple[str, Any]]]
"""The rows emitted by a switch before an event, at an event, and at the end, by step and position of the event."""


def log_of(
    live: Matcher,
    arriving: Sequence[pa.Table],
    switches: Mapping[int, Consistency],
    shown: Callable[[dict[str, Any]], Any],
) -> Log:
    """The log of a matcher that receives the events one by one; `shown` converts each row."""
    emitted = {}
    for position, event in enumerate(arriving):
        if position in switches:
            emitted["switch", position] = live.switch(switches[position])
        emitted["arrive", position] = live.process(event)
    emitted["eos", len(arriving)] = live.finish()
    return sorted_log(
        (*step, SIGNS[row["kind"]], shown(row)) for step, rows in emitted.items() for row in rows.to_pylist()
    )


def sorted_log(entries: Iterable[tuple[str, int, str, Any]]) -> Log:
    """The log made of (step, position, sign, row) entries; the order of the rows within a step does not count."""
    log: Log = {}
    for when, position, sign, row in entries:
        log.setdefault((when, position), []).append((sign, row))
    return {step: sorted(emitted) for step, emitted in log.items()}


@contextmanager
def states_every(count: int, few: int = real_time.FEW) -> Iterator[None]:
    """Within the block, matchers fork the state of a key after every `count` events and retain up to `few` rows in any
    case.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RollbackPoints, "every", count)
        patch.setattr(real_time, "FEW", few)
        yield


def drawn_states(data: st.DataObject) -> Any:
    """`states_every` with drawn numbers."""
    every = data.draw(st.sampled_from([1, 2, RollbackPoints.every]))
    return states_every(every, data.draw(st.sampled_from([0, real_time.FEW])))
