"""Visits keys whose events mean something: programs answer the questions of semantic filters, as far as they can."""

from __future__ import annotations

from cepheid.compile.occurrences.tables import AlgebraTables
from cepheid.kernel.arrays import Events, Visits
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.knowledge.asking import earliest
from cepheid.kernel.knowledge.layout import Knowing
from cepheid.kernel.occurrences.layout import (
    NEVER,
    UNBOUND,
    Answers,
    Forest,
    OccurrenceStatus,
    TreeCursor,
    Variables,
)
from cepheid.kernel.occurrences.step import visit_keys


@kernel
def visit_knowing(
    tables: AlgebraTables,
    events: Events,
    forest: Forest,
    variables: Variables,
    answers: Answers,
    cursor: TreeCursor,
    visits: Visits,
    knowing: Knowing,
) -> int:
    """As `visit_keys`. It returns ASKED only if there are questions that programs cannot answer."""
    while True:
        status = visit_keys(tables, events, forest, variables, answers, cursor, visits)
        if status != OccurrenceStatus.ASKED or not answer(answers, cursor, knowing):
            return int(status)


@kernel
def answer(answers: Answers, cursor: TreeCursor, knowing: Knowing) -> bool:
    """Answers the new questions. Returns whether all are answered."""
    all_are = True
    for number in range(cursor.considered, cursor.questions):
        program, session = answers.questions[number, 0], knowing.sessions[answers.questions[number, 1]]
        if knowing.store.sessions[session].left or not bind(answers, number, knowing, program):
            all_are = False
            continue
        time = earliest(knowing, session, program, cursor.now)
        if time == NEVER or knowing.programs[program].whole:
            answers.times[number] = time
        else:
            all_are = False
    cursor.considered = cursor.questions
    return all_are


@inlined
def bind(answers: Answers, number: int, knowing: Knowing, program: int) -> bool:
    """Gives variables their individuals; False if one is not bound, so that the program is for another question."""
    for place in range(knowing.programs[program].bound):
        position = answers.questions[number, 2 + place]
        if position == UNBOUND:
            return False
        knowing.matching.values[place] = knowing.individuals[position]
    return True
