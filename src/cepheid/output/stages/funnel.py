"""The funnel of a pattern of stages."""

from __future__ import annotations

from collections.abc import Mapping

from cepheid.kernel.stages.observed.tally import Tally
from cepheid.lang.stages.pattern import Pattern
from cepheid.output.funnel import BEGIN_WITHOUT, Funnel, Stopped, in_order


def funnel_of(pattern: Pattern, tally: Tally, *, kept_out: int, relevant: int, read: Mapping[str, int]) -> Funnel:
    """The funnel of these starts, and of so many that `begin_without` has `kept_out`. `read` has the counts of the
    events read, among them those without key or time.
    """
    taking = [(number, leaf.name) for number, leaf in enumerate(pattern.leaves) if not leaf.contiguity.negated]
    names = [*(leaf.name for leaf in pattern.leaves), *(loop.name or loop.label for loop in pattern.loops_until)]
    stopped = [
        Stopped(stop.fate.value, names[stop.reached], None if stop.by is None else names[stop.by], count)
        for stop, count in tally.stopped.items()
    ]
    if kept_out:
        assert pattern.without is not None
        stopped.append(Stopped(BEGIN_WITHOUT, None, pattern.without.name, kept_out))
    reached = {name: tally.reached[number] for number, name in taking}
    return Funnel(
        events=read["events"],
        null_keys=read["null_keys"],
        null_times=read["null_times"],
        relevant=relevant,
        starts=tally.starts + kept_out,
        reached=reached,
        matched=tally.matched,
        stopped=in_order(stopped, reached),
    )
