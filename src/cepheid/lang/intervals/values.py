"""What interval patterns are made of: Allen's relations, endpoints and their order, trees of relations, negations.

Hierarchical patterns with counts and negation are those of Zhou et al., the relations those of Allen's algebra. Here an
event is an interval with a start and an end; for an instant both are the same time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from cepheid.errors import PatternError, did_you_mean
from cepheid.lang.consistency import End


class Relation(Enum):
    """Allen's relations; exactly one holds between two intervals. Their order is the kernel's numbering.

    An instant at the border of an interval starts or finishes the interval; only proper intervals meet.
    """

    BEFORE = "before"
    AFTER = "after"
    MEET = "meet"
    MET_BY = "met_by"
    OVERLAP = "overlap"
    OVERLAPPED_BY = "overlapped_by"
    START = "start"
    STARTED_BY = "started_by"
    DURING = "during"
    CONTAIN = "contain"
    FINISH = "finish"
    FINISHED_BY = "finished_by"
    EQUAL = "equal"


RELATIONS = {relation.value: relation for relation in Relation} | {
    "meets": Relation.MEET,
    "overlaps": Relation.OVERLAP,
    "starts": Relation.START,
    "contains": Relation.CONTAIN,
    "finishes": Relation.FINISH,
    "equals": Relation.EQUAL,
}
"""Relations by name: the paper's names, and the standard ones (`overlaps` and so on)."""


class Mode(Enum):
    PAL = "PAL"
    """Nothing holds between the events except what the pattern says."""
    SEQ = "SEQ"
    """Each event begins when the event before it ends, or later. After an instant it begins later."""


class Window(Enum):
    """What `within` bounds."""

    MATCH = "match"
    """From the first start to the last end."""
    STARTS = "starts"
    """From the first start to the last start."""


class Scope(Enum):
    """When an event d of a negation forbids a match; X and Y are the spans of the parts to its left and right.

    A negation before the first event has no part on its left, and one after the last has none on its right. The window
    is then the border: d.start is not before match.end - window, or d is within match.start + window, see `Negation`.
    """

    START_BETWEEN = "start_between"
    """X.start < d.start < Y.start."""
    GAP = "gap"
    """X.end <= d.start and d.end <= Y.start."""
    SEQ_BETWEEN = "seq_between"
    """As gap, but d begins after X if X is an instant, and Y begins after d if d is an instant."""
    INTERSECTS_GAP = "intersects_gap"
    """d.start < Y.start and d.end > X.end."""
    DURING_SPAN = "during_span"
    """d lies within the span of X and Y."""


def default_scope(mode: Mode, left: Sequence[str], right: Sequence[str]) -> Scope:
    """The scope of a negation between these parts, if none is given."""
    if mode is Mode.SEQ:
        return Scope.SEQ_BETWEEN
    return Scope.START_BETWEEN if left and right else Scope.GAP


@dataclass(frozen=True)
class Positive:
    """An event of the match, by its variable."""

    variable: str
    type: str


@dataclass(frozen=True)
class Endpoint:
    variable: str
    end: End

    def __str__(self) -> str:
        return f"{self.end.value}({self.variable})"


COMPARISONS = ("<", "<=", "=", ">=", ">")


@dataclass(frozen=True)
class Comparison:
    """An order of two endpoints; `operator` is one of COMPARISONS."""

    left: Endpoint
    operator: str
    right: Endpoint

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


@dataclass(frozen=True)
class Counts:
    """How many events of the left part contain, are finished by, meet, overlap and start the event on the right."""

    contain: int
    finished_by: int
    meet: int
    overlap: int
    start: int


@dataclass(frozen=True)
class Related:
    """A relation between the spans of two parts.

    With `counts`, the right part is one event. The variables of the whole tree up to that event are then, from left to
    right, in the order of (start, end).
    """

    relation: Relation
    left: Tree
    right: Tree
    counts: Counts | None = None


Tree: TypeAlias = str | Related
"""A variable, or two parts and the relation between them."""


@dataclass(frozen=True)
class Pair:
    """One of the relations holds between two events."""

    left: str
    relations: tuple[Relation, ...]
    right: str


@dataclass(frozen=True)
class Negation:
    """No event of the type, other than those of the match, lies in the scope and satisfies `order` and `condition`.

    `scope` None: `order` alone says where the event must not lie; `left` and `right` are then empty.

    With a scope, one of the parts may be empty, if the pattern has a window: without `left` the scope begins at the end
    of the match minus the window, without `right` it ends at the start of the match plus the window. Both borders
    belong to the scope.
    """

    variable: str
    type: str
    scope: Scope | None = None
    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    order: tuple[Comparison, ...] = ()
    condition: str | None = None
    """SQL over this variable and the variables of the match."""


def variables_of(tree: Tree) -> Iterator[str]:
    """The variables, from left to right."""
    if isinstance(tree, str):
        yield tree
    else:
        yield from variables_of(tree.left)
        yield from variables_of(tree.right)


def related(tree: Tree) -> Iterator[Related]:
    """All relations of the tree, inner ones first."""
    if isinstance(tree, Related):
        yield from related(tree.left)
        yield from related(tree.right)
        yield tree


def relation_named(name: str) -> Relation:
    """The relation with this name; PatternError, which lists the possible names, if there is none."""
    found = RELATIONS.get(name.lower())
    if found is None:
        raise PatternError(f"no relation is named {name!r}. {did_you_mean(name, list(RELATIONS))}")
    return found


def scope_named(name: str) -> Scope:
    """The scope with this name; PatternError, which lists the possible names, if there is none."""
    names = [scope.value for scope in Scope]
    if name.lower() not in names:
        raise PatternError(f"no scope of a negation is named {name!r}. {did_you_mean(name, names)}")
    return Scope(name.lower())


def window_named(name: object) -> Window:
    """What `within` bounds, by name; PatternError, which lists the possible names, if there is no such."""
    if isinstance(name, Window):
        return name
    names = [window.value for window in Window]
    if name not in names:
        raise PatternError(f"within bounds the length of the {' or of the '.join(map(repr, names))}, got of={name!r}")
    return Window(name)
