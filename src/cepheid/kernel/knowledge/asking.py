"""Answers filters by their programs."""

from __future__ import annotations

from cepheid.compile.arrays import NONE, Ints
from cepheid.kernel.arrays import NO_TIME, Int32s
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.knowledge.layout import NEVER, Knowing, Verdict
from cepheid.kernel.knowledge.matching import begin, matches, proceed


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


@kernel
def assign(knowing: Knowing, program: int, bound: Int32s, times: Ints, found: Ints) -> int:
    """Finds all ways in which the patterns of a program match at times, in the sessions Knowing.sessions; `bound` has
    the terms of the variables that are bound (questions, variables). Writes the number of the question and the terms of
    all variables to the rows of `found`. Returns how many rows there are, one more than there is room for if there are
    too many.
    """
    rules, base, store, matching = knowing.rules, knowing.base, knowing.store, knowing.matching
    start = knowing.programs[program].patterns
    count = knowing.programs[program].patterns_end - start
    values, at, rows = matching.values, matching.at, 0
    for question in range(len(times)):
        session, level = int(knowing.sessions[question]), 0
        for place in range(bound.shape[1]):
            values[place] = bound[question, place]
        at[0] = begin(rules, base, store, session, values, start) if count else NONE
        if not count:
            rows = put_row(found, rows, question, values)
        while level >= 0:
            if at[level] == NONE:
                level -= 1
            elif (
                matches(rules, base, store, values, start + level, at[level])
                and since_when(knowing, at[level]) <= times[question]
            ):
                if level + 1 < count:
                    level += 1
                    at[level] = begin(rules, base, store, session, values, start + level)
                    continue
                rows = put_row(found, rows, question, values)
            if level >= 0:
                at[level] = proceed(rules, base, store, session, values, start + level, at[level])
            if rows > len(found):
                return rows
    return rows


@inlined
def put_row(found: Ints, row: int, question: int, values: Ints) -> int:
    if row < len(found):
        found[row, 0] = question
        for place in range(len(values)):
            found[row, 1 + place] = values[place]
    return row + 1
