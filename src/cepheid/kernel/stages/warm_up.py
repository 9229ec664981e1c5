"""Loads a kernel before there are events for it."""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import numpy as np

from cepheid.compile.arrays import INSTRUCTION, NONE
from cepheid.compile.stages.tables import EDGE, SCRIPT, SETTINGS, SLOT, STATE, TIE, SkipKind, Tables
from cepheid.kernel import jit
from cepheid.kernel.arrays import Events, Visits
from cepheid.kernel.sets.kernel import SetKernel
from cepheid.kernel.stages.before.looking_back import LookingBackKernel
from cepheid.kernel.stages.kernel import CompiledKernel

Kind: TypeAlias = type[CompiledKernel | SetKernel]
KINDS: dict[str, Kind] = {kind.__name__: kind for kind in (CompiledKernel, LookingBackKernel, SetKernel)}
"""The compiled kernels of patterns of stages, by their names."""


@cache
def warm_up(kind: Kind) -> None:
    """Loads the compiled functions of a kernel. Compiles them if they are not in the disk cache.

    One process compiles at a time, and the others wait for its result. Compiling in each of them would take no less
    time. None waits for functions that are compiled.
    """
    with jit.compiling_alone(kind.__name__):
        _run_once(kind)


def is_compiled(kind: Kind) -> bool:
    """Whether a kernel's functions are in the disk cache. True without a cache: then each process compiles its own."""
    return jit.is_compiled(kind.__name__)


def _run_once(kind: Kind) -> None:
    """Runs the kernel over a pattern without stages, with no events and no keys: only the types count."""
    tables = Tables(
        settings=np.array([(0, NONE, 0, SkipKind.NO_SKIP, NONE, *[0] * (len(SETTINGS.names or ()) - 5))], SETTINGS),
        states=np.zeros(1, STATE),
        edges=np.zeros(0, EDGE),
        state_scripts=np.zeros(0, np.int64),
        scripts=np.zeros(0, SCRIPT),
        code=np.zeros(0, INSTRUCTION),
        constants=np.zeros(0, np.int64),
        stage_slots=np.zeros(2, np.int64),
        slots=np.zeros(0, SLOT),
        ties=np.zeros(0, TIE),
    )
    words, flags = np.zeros(0, np.int64), np.zeros(0, np.bool_)
    events = Events(words, words.copy(), np.zeros((0, 0), np.int64), np.zeros((0, 0), np.bool_))
    kernel = kind(tables)
    kernel.run(events, Visits(np.zeros(0, np.int32), words.copy(), words.copy(), flags))
    kernel.hold()
