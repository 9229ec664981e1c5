"""Facts in hash tables: found whole, by subject and predicate, and so on.

A chain for a lookup is made when a rule or filter asks for it, from the facts that came since it was last asked for.
Most are never asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cepheid.compile.arrays import NONE, Ints
from cepheid.compile.knowledge.tables import Lookup
from cepheid.kernel.arrays import Flags, Int32s
from cepheid.kernel.jit import inlined, kernel
from cepheid.kernel.knowledge.layout import Store


@inlined
def hashed(session: int, one: int, two: int, three: int) -> int:
    """Multiplied by odd numbers and folded, twice: terms that follow each other must not share slots."""
    word = np.uint64(one) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(two) * np.uint64(0xBF58476D1CE4E5B9)
    word += np.uint64(three) * np.uint64(0x94D049BB133111EB) + np.uint64(session) * np.uint64(0xD6E8FEB86659FD93)
    word = (word ^ (word >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    hash_: Any = np.int64(word >> np.uint64(20))
    return hash_


@inlined
def find(store: Store, session: int, subject: int, predicate: int, object_: int) -> int:
    """The slot of the fact: its number, or NONE, is in there."""
    slots = store.slots
    most = slots.shape[1] - 1
    slot = hashed(session, subject, predicate, object_) & most
    while slots[0, slot] != NONE:
        fact = store.facts[slots[0, slot]]
        if (
            fact.subject == subject
            and fact.object == object_
            and fact.predicate == predicate
            and fact.session == session
        ):
            break
        slot = (slot + 1) & most
    return slot


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


@kernel
def chain(store: Store, session: int, lookup: int, one: int, two: int) -> int:
    """The slot of the first fact with the parts."""
    slots = store.slots
    most = slots.shape[1] - 1
    slot = hashed(session, one, two, lookup) & most
    while slots[lookup, slot] != NONE:
        number = slots[lookup, slot]
        if store.facts[number].session == session:
            left, right = parts(store, number, lookup)
            if left == one and right == two:
                break
        slot = (slot + 1) & most
    return slot


@kernel
def link(store: Store, session: int, lookup: int) -> None:
    """Puts the session's new facts into the chains of a lookup."""
    number, linked = store.sessions[session].last, store.linked[session, lookup]
    store.linked[session, lookup] = number
    while number != linked:
        one, two = parts(store, number, lookup)
        slot = chain(store, session, lookup, one, two)
        store.chains[number, lookup] = store.slots[lookup, slot]
        store.slots[lookup, slot] = number
        number = int(store.facts[number].previous)


@kernel
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
def place_all(store: Store, count: int) -> None:
    """Puts the first facts into the empty slots of a larger store."""
    for number in range(count):
        fact = store.facts[number]
        slot = find(store, int(fact.session), int(fact.subject), int(fact.predicate), int(fact.object))
        store.slots[0, slot] = number


@kernel
def keep_facts(store: Store, count: int, kept: Store, terms: Int32s, moved: Int32s) -> int:
    """Puts the facts of sessions that have not ended into an empty store, with other numbers for terms; returns their
    number. `moved` gets their new numbers.
    """
    number = 0
    for old in range(count):
        fact = store.facts[old]
        session = int(fact.session)
        moved[old] = NONE
        if store.sessions[session].ended:
            continue
        subject, predicate = int(terms[fact.subject]), int(terms[fact.predicate])
        object_ = int(terms[fact.object])
        put(kept, find(kept, session, subject, predicate, object_), number, session, subject, predicate, object_)
        new = kept.facts[number]
        new.time, new.stated, new.kind = fact.time, fact.stated, fact.kind
        moved[old] = number
        number += 1
    return number


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
