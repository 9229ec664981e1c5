"""Answers filters by their programs."""

from __future__ import annotations

from cepheid.compile.arrays import NONE, Ints
from cepheid.kernel.arrays import NO_TIME
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.knowledge.layout import NEVER, Knowing, Verdict
from cepheid.kernel.knowledge.step import begin, matches, proceed


@kernel
def earliest(knowing: Knowing, session: int, program: int, now: int) -> int:
    """The earliest time from which all patterns of a program match, NEVER if they do not; or any time up to `now` at
    which they do. Matching.values has the terms of the variables that are bound.
    """
    rules, base, store, matching = knowing.rules, knowing.base, knowing.store, knowing.matching
    start = knowing.programs[program].patterns
    count = knowing.programs[program].patterns_end - start
    if not count:
        return int(NO_TIME)
    values, at, times = matching.values, matching.at, matching.times
    best, level = NEVER, 0
    at[0] = begin(rules, base, store, session, values, start)
    while level >= 0:
        if at[level] == NONE:
            level -= 1
        elif matches(rules, base, store, values, start + level, at[level]):
            since = times[level - 1] if level else NO_TIME
            times[level] = max(since, since_when(knowing, at[level]))
            if times[level] < best:
                if level + 1 < count:
                    level += 1
                    at[level] = begin(rules, base, store, session, values, start + level)
                    continue
                best = times[level]
                if best <= now:
                    break
        if level >= 0:
            at[level] = proceed(rules, base, store, session, values, start + level, at[level])
    return int(best)


@inlined
def since_when(knowing: Knowing, at: int) -> int:
    """The time of a fact; a shared one holds always."""
    return int(knowing.store.facts[at].time) if at >= 0 else int(NO_TIME)


@kernel
def ask_each(knowing: Knowing, program: int, times: Ints, found: Ints) -> None:
    """Asks a program about each individual in its session at a time, and writes a Verdict for each. Knowing.sessions
    and Knowing.individuals have those that are asked about.
    """
    whole = knowing.programs[program].whole
    for i in range(len(times)):
        session = knowing.sessions[i]
        if knowing.store.sessions[session].left:
            found[i] = Verdict.UNDECIDED
            continue
        knowing.matching.values[0] = knowing.individuals[i]
        if earliest(knowing, session, program, times[i]) > times[i]:
            found[i] = Verdict.DOES_NOT_HOLD
        else:
            found[i] = Verdict.HOLDS if whole else Verdict.UNDECIDED
