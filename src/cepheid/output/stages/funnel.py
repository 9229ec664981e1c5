"""The funnel of a pattern of stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from cepheid.kernel.stages.observed.fates import Start
from cepheid.lang.stages.pattern import Pattern
from cepheid.output.funnel import Funnel, Stopped


def funnel_of(pattern: Pattern, starts: Sequence[Start], *, relevant: int, read: Mapping[str, int]) -> Funnel:
    """The funnel of these starts. `read` has the counts of the events read, among them those without key or time."""
    taking = [(number, leaf.name) for number, leaf in enumerate(pattern.leaves) if not leaf.contiguity.negated]
    names = [*(leaf.name for leaf in pattern.leaves), *(loop.name or loop.label for loop in pattern.loops_until)]
    ends = Counter((start.end.reached, start.end.fate, start.end.by) for start in starts if start.end is not None)
    stopped = [
        Stopped(fate.value, names[reached], None if by is None else names[by], count)
        for (reached, fate, by), count in sorted(ends.items(), key=lambda end: (-end[0][0], -end[1], end[0][1]))
    ]
    return Funnel(
        events=read["events"],
        null_keys=read["null_keys"],
        null_times=read["null_times"],
        relevant=relevant,
        starts=len(starts),
        reached={name: sum(start.stages >> number & 1 for start in starts) for number, name in taking},
        matched=sum(start.end is None for start in starts),
        stopped=tuple(stopped),
    )
