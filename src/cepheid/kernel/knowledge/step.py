"""What follows from what events say.

Facts are taken by time from the agenda, so that those that come in order have their final time at once. A fact that
comes late may lower the times of others, which are taken again. When something is short, the step ends between two
facts; the fact that it was at is taken again, as what is known already is not learned twice.
"""

from __future__ import annotations

from cepheid.compile.arrays import NONE, Ints
from cepheid.compile.knowledge.tables import Lookup, RuleTables
from cepheid.kernel.arrays import NO_TIME, Flags, Int32s
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.knowledge.agenda import pop, push
from cepheid.kernel.knowledge.layout import (
    NEVER,
    Agenda,
    ClosureCursor,
    ClosureStatus,
    Matching,
    Said,
    Store,
)
from cepheid.kernel.knowledge.matching import begin, matches, proceed, value_of
from cepheid.kernel.knowledge.store import find, first, following, make_slots, put


@kernel
def close_sessions(
    rules: RuleTables,
    base: Store,
    store: Store,
    agenda: Agenda,
    matching: Matching,
    literal: Flags,
    cursor: ClosureCursor,
    said: Said,
    session: Int32s,
    end: Ints,
    numbers: Int32s,
) -> int:
    """Adds what events say to sessions, and all that follows. `end` has for each session the end of its facts.

    `numbers` is scratch, one for each fact. What an event says is only noted as stated when all that follows is there:
    so it can be left out if it passes a limit.
    """
    cursor.shortage = ClosureStatus.DONE
    while cursor.visit < len(session):
        number = int(session[cursor.visit])
        begin = end[cursor.visit - 1] if cursor.visit else 0
        if not is_taken(store, cursor, number, end[cursor.visit] - begin):
            cursor.stated = end[cursor.visit]
            cursor.visit += 1
            continue
        while cursor.stated < end[cursor.visit]:
            at = cursor.stated
            numbers[at] = state(rules, base, store, agenda, literal, cursor, number, said, at)
            if cursor.shortage != ClosureStatus.DONE:
                return int(cursor.shortage)
            cursor.stated += 1
        follow(rules, base, store, agenda, matching, literal, cursor, number)
        if cursor.shortage != ClosureStatus.DONE:
            return int(cursor.shortage)
        if cursor.storing or not store.sessions[number].left:
            note_stated(store, said, numbers, begin, end[cursor.visit])
        cursor.visit += 1
    return int(cursor.shortage)


@inlined
def is_taken(store: Store, cursor: ClosureCursor, session: int, facts: int) -> bool:
    """Whether what an event says is taken here: not if its session is full, or is closed elsewhere."""
    if store.sessions[session].full:
        cursor.dropped += facts
        return False
    return bool(cursor.storing or not store.sessions[session].left)


@inlined
def note_stated(store: Store, said: Said, numbers: Int32s, begin: int, end: int) -> None:
    for at in range(begin, end):
        if numbers[at] >= 0 and said.time[at] < store.facts[numbers[at]].stated:
            store.facts[numbers[at]].stated = said.time[at]


@inlined
def state(
    rules: RuleTables,
    base: Store,
    store: Store,
    agenda: Agenda,
    literal: Flags,
    cursor: ClosureCursor,
    session: int,
    said: Said,
    at: int,
) -> int:
    """Adds a fact that an event states. Returns its number, or NONE if the session does not store it."""
    subject, predicate, object_ = int(said.subject[at]), int(said.predicate[at]), int(said.object[at])
    time = said.time[at]
    return int(learn(rules, base, store, agenda, literal, cursor, session, subject, predicate, object_, time, 1))


@inlined
def learn(
    rules: RuleTables,
    base: Store,
    store: Store,
    agenda: Agenda,
    literal: Flags,
    cursor: ClosureCursor,
    session: int,
    subject: int,
    predicate: int,
    object_: int,
    time: int,
    alone: int,
) -> int:
    """Adds that a fact holds from a time on. Returns its number, or NONE if the session does not store it.

    Args:
        alone: Whether what follows from it alone is still to be found.
    """
    settings = rules.settings[0]
    left = store.sessions[session].left
    if not left and (literal[subject] or literal[predicate] or (predicate == settings.same and literal[object_])):
        return NONE
    shared = settings.shared
    if is_shared(base, shared, subject, predicate, object_):
        return NONE
    slot = find(store, session, subject, predicate, object_)
    number = int(store.slots[0, slot])
    if number == NONE:
        kind = rules.of_predicate[min(predicate, shared)]
        if predicate == settings.type:
            kind = rules.of_class[min(object_, shared)]
        if kind == NONE:
            cursor.predicate, cursor.object, cursor.shortage = predicate, object_, ClosureStatus.UNPREPARED
            return NONE
        if not left and store.sessions[session].count >= cursor.most_facts:
            cursor.shortage = ClosureStatus.TOO_MANY_FACTS
            return NONE
        if (
            predicate == settings.same
            and not left
            and subject != object_
            # Itself, and the new one. Each name of n has n facts of this kind: this is found before most of them.
            and others(base, store, shared, session, subject, predicate) + 2 > cursor.most_names
        ):
            cursor.shortage = ClosureStatus.TOO_MANY_NAMES
            return NONE
        if cursor.facts == len(store.facts):
            cursor.shortage = ClosureStatus.MORE_FACTS
            return NONE
        if cursor.waiting == len(agenda.time):
            cursor.shortage = ClosureStatus.MORE_AGENDA
            return NONE
        of = store.sessions[session]
        if 2 * of.count >= of.room - 1:
            if not make_slots(store, cursor, session, 2 * int(of.count)):
                cursor.shortage = ClosureStatus.MORE_SLOTS
                return NONE
            slot = find(store, session, subject, predicate, object_)
        number = int(cursor.facts)
        cursor.facts += 1
        put(store, slot, number, session, subject, predicate, object_)
        fact = store.facts[number]
        fact.kind, fact.time, fact.stated = kind, time, NEVER
        store.sessions[session].bits |= rules.kinds[kind].bit
        if rules.kinds[kind].states:
            store.sessions[session].left = 1
    elif time < store.facts[number].time:
        if cursor.waiting == len(agenda.time):
            cursor.shortage = ClosureStatus.MORE_AGENDA
            return NONE
        store.facts[number].time = time
    else:
        return number
    if not store.sessions[session].left:
        push(agenda, cursor, time, 2 * number + alone)
    return number


@kernel
def others(base: Store, store: Store, shared: int, session: int, subject: int, same: int) -> int:
    """How many other names of an individual are known."""
    count = 0
    if subject < shared:
        at = first(base, 0, Lookup.SUBJECT_PREDICATE, subject, same)
        while at != NONE:
            count += base.facts[at].object != subject
            at = following(base, at, Lookup.SUBJECT_PREDICATE)
    at = NONE
    if store.sessions[session].count:  # otherwise it has no slots
        at = first(store, session, Lookup.SUBJECT_PREDICATE, subject, same)
    while at != NONE:
        count += store.facts[at].object != subject
        at = following(store, at, Lookup.SUBJECT_PREDICATE)
    return count


@inlined
def is_shared(base: Store, shared: int, subject: int, predicate: int, object_: int) -> bool:
    """Whether the fact is of the shared knowledge, which has `shared` terms."""
    if subject >= shared or predicate >= shared or object_ >= shared:
        return False
    return bool(base.slots[0, find(base, 0, subject, predicate, object_)] != NONE)


@kernel
def follow(
    rules: RuleTables,
    base: Store,
    store: Store,
    agenda: Agenda,
    matching: Matching,
    literal: Flags,
    cursor: ClosureCursor,
    session: int,
) -> None:
    """Applies the rules until nothing new follows."""
    while cursor.waiting and not store.sessions[session].left:
        number, alone = agenda.fact[0] >> 1, agenda.fact[0] & 1
        time = agenda.time[0]
        fact = store.facts[number]
        if fact.time == time:
            kind = rules.kinds[fact.kind]
            if alone and kind.heads < kind.heads_end:
                follow_alone(rules, base, store, agenda, literal, cursor, number)
            for join in range(kind.joins, kind.joins_end):
                if cursor.shortage != ClosureStatus.DONE:
                    return
                if may_apply(rules, store, number, join):
                    apply_rule(rules, base, store, agenda, matching, literal, cursor, number, join)
            if cursor.shortage != ClosureStatus.DONE:
                return
        pop(agenda, cursor)
    cursor.waiting = 0


@inlined
def follow_alone(
    rules: RuleTables, base: Store, store: Store, agenda: Agenda, literal: Flags, cursor: ClosureCursor, number: int
) -> None:
    """Learns what follows from a fact alone."""
    fact = store.facts[number]
    session, subject = int(fact.session), int(fact.subject)
    predicate, object_ = int(fact.predicate), int(fact.object)
    time, kind = fact.time, rules.kinds[fact.kind]
    for place in range(kind.heads, kind.heads_end):
        head = rules.heads[place]
        if head.of_node and literal[object_]:
            continue
        one = part_of(head.subject, subject, predicate, object_)
        two = part_of(head.predicate, subject, predicate, object_)
        three = part_of(head.object, subject, predicate, object_)
        learn(rules, base, store, agenda, literal, cursor, session, one, two, three, time, 0)
        if cursor.shortage != ClosureStatus.DONE:
            return


@inlined
def part_of(part: int, subject: int, predicate: int, object_: int) -> int:
    if part >= 0:
        return part
    if part == -1:
        return subject
    return object_ if part == -3 else predicate


# Rules that join facts


@inlined
def may_apply(rules: RuleTables, store: Store, number: int, rule: int) -> bool:
    """Whether the rule is for the fact, and its session may know facts for the other patterns: mostly it does not."""
    fact, join = store.facts[number], rules.joins[rule]
    if (
        (join.subject != NONE and fact.subject != join.subject)
        or (join.object != NONE and fact.object != join.object)
        or (join.reflexive and fact.subject != fact.object)
    ):
        return False
    bits, shared = store.sessions[fact.session].bits, rules.settings[0].shared
    for place in range(join.patterns, join.patterns_end):
        pattern = rules.patterns[place]
        if pattern.bits and not pattern.bits & bits:
            own = (pattern.subject == -1 and fact.subject >= shared) or (
                pattern.subject == -3 and fact.object >= shared
            )
            if own or not pattern.in_base:
                return False
    return True


@inlined
def apply_rule(
    rules: RuleTables,
    base: Store,
    store: Store,
    agenda: Agenda,
    matching: Matching,
    literal: Flags,
    cursor: ClosureCursor,
    number: int,
    rule: int,
) -> None:
    """Applies a rule to a fact in all ways in which its other patterns match what is known."""
    fact, join = store.facts[number], rules.joins[rule]
    session = int(fact.session)
    values, at = matching.values, matching.at
    values[0], values[1], values[2] = fact.subject, fact.predicate, fact.object
    start, count = join.patterns, join.patterns_end - join.patterns
    if not count:
        conclude(rules, base, store, agenda, matching, literal, cursor, number, rule)
        return
    level = 0
    at[0] = begin(rules, base, store, session, values, start)
    while level >= 0:
        if at[level] == NONE:
            level -= 1
            if level >= 0:
                at[level] = proceed(rules, base, store, session, values, start + level, at[level])
            continue
        if not matches(rules, base, store, values, start + level, at[level]):
            at[level] = proceed(rules, base, store, session, values, start + level, at[level])
            continue
        if level + 1 < count:
            level += 1
            at[level] = begin(rules, base, store, session, values, start + level)
            continue
        conclude(rules, base, store, agenda, matching, literal, cursor, number, rule)
        if cursor.shortage != ClosureStatus.DONE:
            return
        at[level] = proceed(rules, base, store, session, values, start + level, at[level])


@inlined
def conclude(
    rules: RuleTables,
    base: Store,
    store: Store,
    agenda: Agenda,
    matching: Matching,
    literal: Flags,
    cursor: ClosureCursor,
    number: int,
    rule: int,
) -> None:
    """Learns the head of a rule whose patterns are matched."""
    join, values = rules.joins[rule], matching.values
    time, session = int(store.facts[number].time), int(store.facts[number].session)
    count = join.patterns_end - join.patterns
    for level in range(count):
        at = matching.at[level]
        if at >= 0:
            time = max(time, int(store.facts[at].time))
    if join.contradicts:
        known = store.sessions[session]
        if time < known.contradicted:
            if known.contradicted == NEVER:
                known.brought = cursor.visit
            known.contradicted, known.contradiction = time, rule
            against = matching.against[session]
            against[0] = number
            for level in range(count):
                against[1 + level] = matching.at[level]
            if 1 + count < len(against):
                against[1 + count] = NONE
        return
    one, two = value_of(values, join.head_subject), value_of(values, join.head_predicate)
    three = value_of(values, join.head_object)
    if two == rules.settings[0].same and one == three:
        return  # that everything is the same as itself is known
    learn(rules, base, store, agenda, literal, cursor, session, one, two, three, time, 1)


@kernel
def times_of(store: Store, base: Store, shared: int, session: Int32s, facts: Int32s, times: Ints) -> None:
    """The earliest times of facts (subject, predicate, object; n) of sessions, NEVER if they are not known."""
    for i in range(len(session)):
        subject, predicate, object_ = int(facts[0, i]), int(facts[1, i]), int(facts[2, i])
        times[i] = NEVER
        if is_shared(base, shared, subject, predicate, object_):
            times[i] = NO_TIME
            continue
        number = store.slots[0, find(store, int(session[i]), subject, predicate, object_)]
        if number != NONE:
            times[i] = store.facts[number].time
