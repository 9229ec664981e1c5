"""The rules of knowledge as arrays, for the facts of sessions.

A part of a pattern is a term, or a variable: `-1 - number`. Variables 0, 1 and 2 are the subject, the predicate and the
object of the fact to which a rule is applied.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from cepheid.compile.arrays import Ints, Records

MOST_VARIABLES = 24
MOST_PATTERNS = 16
"""The most variables and patterns of a rule that is compiled."""


class Lookup(IntEnum):
    """By which parts the facts that may match a pattern are found."""

    WHOLE = 0
    SUBJECT_PREDICATE = 1
    PREDICATE_OBJECT = 2
    SUBJECT = 3
    OBJECT = 4
    PREDICATE = 5
    ALL = 6


LOOKUPS = 6
"""How many tables there are: one for each way to find facts, but for all of them."""

KIND = np.dtype(
    [
        ("heads", np.int64),  # the first of its HEADs
        ("heads_end", np.int64),
        ("joins", np.int64),  # the first of its JOINs
        ("joins_end", np.int64),
        ("bit", np.int64),  # of Session.bits
        ("states", np.int64),  # whether such facts say something of classes and properties
        ("wanted", np.int64),  # the lookups by which patterns ask for such facts, as bits
    ]
)
"""Facts with the same predicate or, if that is the type, with the same class."""
HEAD = np.dtype([("subject", np.int64), ("predicate", np.int64), ("object", np.int64), ("of_node", np.int64)])
"""What follows from a fact of a kind alone, whatever else is known; `of_node`: only if its object is no literal."""
JOIN = np.dtype(
    [
        ("subject", np.int64),  # what the fact's subject must be, or NONE
        ("object", np.int64),
        ("reflexive", np.int64),  # whether the fact's subject and object must be the same
        ("patterns", np.int64),  # the first of its PATTERNs
        ("patterns_end", np.int64),
        ("head_subject", np.int64),
        ("head_predicate", np.int64),
        ("head_object", np.int64),
        ("contradicts", np.int64),  # whether it has no head
    ]
)
PATTERN = np.dtype(
    [
        ("subject", np.int64),
        ("predicate", np.int64),
        ("object", np.int64),
        ("binds", np.int64),  # bits: 1 if its subject is a variable that gets a value here, 2 predicate, 4 object
        ("lookup", np.int64),
        ("bits", np.int64),  # a session with none of these has no such facts; 0: that is not known
        ("in_base", np.int64),  # whether shared facts may match it
    ]
)

PROGRAM = np.dtype(
    [
        ("patterns", np.int64),  # the first of its PATTERNs
        ("patterns_end", np.int64),
        ("bound", np.int64),  # how many of its variables are bound; these have the first numbers
        ("whole", np.int64),  # whether the patterns are the whole filter
    ]
)


class RuleTables(NamedTuple):
    """Rules by the kinds of facts to which they are applied. `n` terms are of the shared knowledge."""

    of_predicate: Ints
    """(n + 1,) number of the kind of facts with this predicate, NONE if it is not prepared. The last is for all others.
    """
    of_class: Ints
    """(n + 1,) the same for facts that give something this class."""
    kinds: Records
    heads: Records
    joins: Records
    patterns: Records
    settings: Records


SETTINGS = np.dtype([("type", np.int64), ("same", np.int64), ("shared", np.int64)])
"""The numbers of rdf:type and owl:sameAs, and how many terms the shared knowledge has."""
