"""Semantic filters in the kernel: it asks whether one holds, and remembers the answers of a call.

Facts are never taken back, so a filter holds from some time on. An answer is this time, and so it serves for all later
instants of the call.
"""

from __future__ import annotations

from cepheid.compile.arrays import Ints
from cepheid.compile.occurrences.tables import NONE, AlgebraTables
from cepheid.kernel.arrays import grown
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.occurrences.layout import (
    SEVERAL,
    UNANSWERED,
    Answers,
    Bindings,
    OccurrenceStatus,
    TreeCursor,
)


@kernel
def follows(tables: AlgebraTables, bindings: Bindings, cursor: TreeCursor, number: int) -> bool:
    """Whether the semantic filter holds at the instant for the variables that are bound. If that is not known, asks,
    and sets the shortage.
    """
    answers, individuals = bindings.answers, bindings.variables.individuals
    asked = cursor.questions
    if asked == len(answers.times):
        cursor.shortage = OccurrenceStatus.MORE_QUESTIONS
        return False
    question = answers.questions[asked]
    question[0], question[1] = number, cursor.visit
    for place in range(tables.filters.shape[1]):
        variable = tables.filters[number, place]
        question[2 + place] = NONE if variable == NONE else individuals[variable]
        if question[2 + place] == SEVERAL:
            return False  # what is no single event is no individual
    known = find_question(answers, asked)
    if known != asked and answers.times[known] != UNANSWERED:
        return bool(answers.times[known] <= cursor.now)
    if known == asked:
        answers.times[asked] = UNANSWERED
        cursor.questions += 1
    cursor.shortage = OccurrenceStatus.ASKED
    return False


@kernel
def find_question(answers: Answers, asked: int) -> int:
    """The number of the question that equals number `asked`; `asked` itself if it is new, which is added then."""
    questions, slots = answers.questions, answers.slots
    hash_ = 0
    for place in range(questions.shape[1]):
        hash_ = (hash_ ^ questions[asked, place]) * 0x9E3779B97F4A7C1  # an odd number that spreads the bits
        hash_ ^= hash_ >> 29
    slot = hash_ & (len(slots) - 1)
    while slots[slot] != NONE:
        if are_equal(questions, slots[slot], asked):
            return int(slots[slot])
        slot = (slot + 1) & (len(slots) - 1)
    slots[slot] = asked
    return asked


@inlined
def are_equal(questions: Ints, one: int, other: int) -> bool:
    for place in range(questions.shape[1]):
        if questions[one, place] != questions[other, place]:
            return False
    return True


@kernel
def add_all(answers: Answers, count: int) -> None:
    """Adds the first questions to the table, which is empty."""
    for number in range(count):
        find_question(answers, number)


def with_room(answers: Answers) -> Answers:
    """The same answers with twice the room, all of which are asked."""
    count = len(answers.times)
    slots = grown(answers.slots, 2 * len(answers.slots))
    slots.fill(NONE)
    larger = Answers(slots, grown(answers.questions, 2 * count), grown(answers.times, 2 * count))
    add_all(larger, count)
    return larger
