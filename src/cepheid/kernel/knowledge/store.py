"""Facts in hash tables: found whole, by subject and predicate, and so on.

Each session has slots of its own, next to each other: those of a small session fit into the fastest cache, whatever all
others know. When they are half full, the session gets four times as many.

A chain for a lookup is made when a rule or filter asks for it, from the facts that came since it was last asked for,
and only of facts that may be asked for so. Most are never asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cepheid.compile.arrays import NONE, Ints
from cepheid.compile.knowledge.tables import LOOKUPS, Lookup
from cepheid.kernel.arrays import Flags, Int32s
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.knowledge.layout import ClosureCursor, Store

_FEWEST = 64
"""The fewest slots of a session."""


@inlined
def room_for(facts: int) -> int:
    """How many slots a session with so many facts gets: a power of two, and more than twice as many."""
    room = _FEWEST
    while 2 * facts >= room - 1:
        room *= 4
    return room


@inlined
def hashed(one: int, two: int, three: int) -> int:
    """Multiplied by odd numbers and folded: terms that follow each other must not share slots."""
    word = np.uint64(one) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(two) * np.uint64(0xBF58476D1CE4E5B9)
    word += np.uint64(three) * np.uint64(0x94D049BB133111EB)
    word = (word ^ (word >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    hash_: Any = np.int64(word >> np.uint64(20))
    return hash_


@inlined
def find(store: Store, session: int, subject: int, predicate: int, object_: int) -> int:
    """The slot of the fact: its number, or NONE, is in there."""
    begin, most = store.sessions[session].slots, store.sessions[session].room - 1
    slot = hashed(subject, predicate, object_) & most
    while store.slots[0, begin + slot] != NONE:
        fact = store.facts[store.slots[0, begin + slot]]
        if fact.subject == subject and fact.object == object_ and fact.predicate == predicate:
            break
        slot = (slot + 1) & most
    return int(begin + slot)


@inlined
def parts(store: Store, number: int, lookup: int) -> tuple[int, int]:
    """The parts of a fact by which it is found."""
    fact = store.facts[number]
    if lookup == Lookup.SUBJECT_PREDICATE:
        return int(fact.subject), int(fact.predicate)
    if lookup == Lookup.PREDICATE_OBJECT:
        return int(fact.predicate), int(fact.object)
    if lookup == Lookup.SUBJECT:
        return int(fact.subject), int(NONE)
    if lookup == Lookup.OBJECT:
        return int(fact.object), int(NONE)
    return int(fact.predicate), int(NONE)


@inlined
def chain(store: Store, session: int, lookup: int, one: int, two: int) -> int:
    """The slot of the first fact with the parts."""
    begin, most = store.sessions[session].slots, store.sessions[session].room - 1
    slot = hashed(one, two, lookup) & most
    while store.slots[lookup, begin + slot] != NONE:
        left, right = parts(store, store.slots[lookup, begin + slot], lookup)
        if left == one and right == two:
            break
        slot = (slot + 1) & most
    return int(begin + slot)


@kernel
def link(store: Store, session: int, lookup: int) -> None:
    """Puts the session's new facts into the chains of a lookup."""
    number, linked = store.sessions[session].last, store.linked[session, lookup]
    store.linked[session, lookup] = number
    while number != linked:
        if store.wanted[store.facts[number].kind] >> lookup & 1:
            one, two = parts(store, number, lookup)
            slot = chain(store, session, lookup, one, two)
            store.chains[number, lookup] = store.slots[lookup, slot]
            store.slots[lookup, slot] = number
        number = int(store.facts[number].previous)


@inlined
def first(store: Store, session: int, lookup: int, one: int, two: int) -> int:
    """The first fact with the parts, NONE if there is none."""
    if lookup == Lookup.ALL:
        return int(store.sessions[session].last)
    if store.linked[session, lookup] != store.sessions[session].last:
        link(store, session, lookup)
    return int(store.slots[lookup, chain(store, session, lookup, one, two)])


@inlined
def following(store: Store, number: int, lookup: int) -> int:
    """The next fact with the same parts."""
    if lookup == Lookup.ALL:
        return int(store.facts[number].previous)
    return int(store.chains[number, lookup])


@inlined
def put(store: Store, slot: int, number: int, session: int, subject: int, predicate: int, object_: int) -> None:
    """Adds a fact to the store: `find` has found the slot."""
    fact, of = store.facts[number], store.sessions[session]
    fact.session, fact.subject, fact.predicate, fact.object = session, subject, predicate, object_
    fact.previous = of.last
    of.last = number
    of.count += 1
    store.slots[0, slot] = number


@kernel
def make_slots(store: Store, cursor: ClosureCursor, session: int, facts: int) -> bool:
    """Gives a session slots for so many facts. False if there is no room. Chains remain as they are: a rule may be
    reading one.
    """
    of = store.sessions[session]
    before, count, room = of.slots, of.room, room_for(facts)
    if cursor.slots + room > store.slots.shape[1]:
        return False
    of.slots, of.room = cursor.slots, room
    cursor.slots += room
    for lookup in range(LOOKUPS):
        for slot in range(of.slots, of.slots + room):
            store.slots[lookup, slot] = NONE
        if lookup and store.linked[session, lookup] == NONE:
            continue
        for slot in range(before, before + count):
            number = store.slots[lookup, slot]
            if number != NONE:
                fact = store.facts[number]
                one, two, three = int(fact.subject), int(fact.predicate), int(fact.object)
                if lookup:
                    one, two = parts(store, number, lookup)
                    three = lookup
                at = hashed(one, two, three) & (room - 1)
                while store.slots[lookup, of.slots + at] != NONE:
                    at = (at + 1) & (room - 1)
                store.slots[lookup, of.slots + at] = number
    return True


@kernel
def place_all(store: Store, cursor: ClosureCursor, count: int) -> None:
    """Puts the first facts, which are all of one session, into its slots."""
    make_slots(store, cursor, 0, count)
    for number in range(count):
        fact = store.facts[number]
        store.slots[0, find(store, 0, int(fact.subject), int(fact.predicate), int(fact.object))] = number


@kernel
def keep_facts(store: Store, count: int, kept: Store, cursor: ClosureCursor, terms: Int32s, moved: Int32s) -> None:
    """Puts the facts of sessions that have not ended into an empty store, with other numbers for terms. `moved` gets
    the new numbers of facts. There is room.
    """
    cursor.facts = 0
    for old in range(count):
        fact = store.facts[old]
        session = int(fact.session)
        moved[old] = NONE
        if store.sessions[session].ended:
            continue
        if kept.sessions[session].count == 0:
            make_slots(kept, cursor, session, int(store.sessions[session].count))
        subject, predicate = int(terms[fact.subject]), int(terms[fact.predicate])
        object_, number = int(terms[fact.object]), int(cursor.facts)
        put(kept, find(kept, session, subject, predicate, object_), number, session, subject, predicate, object_)
        new = kept.facts[number]
        new.time, new.stated, new.kind = fact.time, fact.stated, fact.kind
        moved[old] = number
        cursor.facts += 1


@kernel
def mark_terms(store: Store, count: int, used: Flags) -> None:
    """Marks the terms of sessions that have not ended."""
    for number in range(count):
        fact = store.facts[number]
        if not store.sessions[fact.session].ended:
            used[fact.subject] = used[fact.predicate] = used[fact.object] = True


@kernel
def select(store: Store, session: int, lookup: int, asked: Ints, found: Ints) -> int:
    """Writes the facts of a session with the asked parts (NONE: any), each with its time, to the rows of `found`;
    returns how many there are, even if there is not room for all.
    """
    subject, predicate, object_ = asked[0], asked[1], asked[2]
    count = 0
    if lookup == Lookup.WHOLE:
        number = int(store.slots[0, find(store, session, subject, predicate, object_)])
    elif lookup == Lookup.SUBJECT_PREDICATE:
        number = int(first(store, session, lookup, subject, predicate))
    elif lookup == Lookup.PREDICATE_OBJECT:
        number = int(first(store, session, lookup, predicate, object_))
    else:
        one = subject if lookup == Lookup.SUBJECT else object_ if lookup == Lookup.OBJECT else predicate
        number = int(first(store, session, lookup, one, NONE))
    while number != NONE:
        fact = store.facts[number]
        if object_ == NONE or fact.object == object_:
            if count < len(found):
                found[count, 0], found[count, 1], found[count, 2] = fact.subject, fact.predicate, fact.object
                found[count, 3] = fact.time
            count += 1
        number = NONE if lookup == Lookup.WHOLE else int(following(store, number, lookup))
    return count
