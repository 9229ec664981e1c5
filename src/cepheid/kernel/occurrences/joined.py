"""Joins the states of several kernels of one pattern, which have different keys, into one state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.compile.arrays import Ints
from cepheid.kernel.parts import State, StatePart, firsts


def joined_kernels(parts: Sequence[StatePart], first_keys: Sequence[int]) -> dict[str, npt.NDArray[Any]]:
    """One state with what all of these states (`state.kernel_state`) have. `first_keys` says for each part what is
    added to the numbers of its keys.
    """
    first_events = firsts(part.events for part in parts)
    first_nodes = firsts(part.arrays["nodes"].shape[1] for part in parts)
    starts = zip(first_keys, first_events, first_nodes, strict=True)
    moved = [_moved(part.arrays, *start) for part, start in zip(parts, starts, strict=True)]
    return {name: np.concatenate([one[name] for one in moved], axis=-1) for name in moved[0]}


def _moved(arrays: State, key: int, event: int, node: int) -> State:
    """A part's arrays with its keys, events and nodes from these numbers on."""
    (starts, ends, contents), (kind, left, right, *others) = arrays["entries"], arrays["nodes"]
    return {
        **arrays,
        "keys": arrays["keys"] + key,
        "entries": np.stack([starts, ends, _contents(contents, event, node)]),
        "nodes": np.stack([kind, _contents(left, event, node), _contents(right, event, node), *others]),
    }


def _contents(contents: Ints, event: int, node: int) -> Ints:
    """The contents of occurrences: the number of a node, or `~position` of an event."""
    moved: Ints = np.where(contents < 0, contents - event, contents + node)
    return moved
