"""The sets of patterns of a supervised query, and how one follows from another."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from cepheid.errors import PatternError, Problem
from cepheid.families import why_not_drained
from cepheid.hosts.durable.state import Status
from cepheid.hosts.spark.stream.places import Place, Places
from cepheid.lang.documents import AnyPattern, pattern_from_text, pattern_to_document

if TYPE_CHECKING:
    from cepheid.hosts.durable.host import Old


@dataclass(frozen=True)
class Deployment:
    """A pattern in a supervised query."""

    number: int
    """Unique in the checkpoint, also among versions."""
    document: str
    """The pattern's document, as JSON."""
    status: Status = "running"

    @cached_property
    def pattern(self) -> AnyPattern:
        return pattern_from_text(self.document, source="the checkpoint's pattern")

    @property
    def name(self) -> str:
        return self.pattern.name

    @property
    def version(self) -> str:
        return self.pattern.version or "1"

    @property
    def drains(self) -> bool:
        return self.status == "draining"

    def __str__(self) -> str:
        return f"{self.name}, version {self.version}"


@dataclass(frozen=True)
class PatternSet:
    """The patterns of a supervised query from one micro-batch on."""

    first: int
    """The number of the micro-batch."""
    deployments: tuple[Deployment, ...]
    """The running ones, in the order of their numbers, then those that drain."""
    ended: tuple[int, ...] = ()
    """The numbers of deployments whose state is still to be cleared."""

    @property
    def running(self) -> dict[str, Deployment]:
        """By name."""
        return {one.name: one for one in self.deployments if not one.drains}

    @property
    def draining(self) -> tuple[Deployment, ...]:
        return tuple(one for one in self.deployments if one.drains)

    @property
    def places(self) -> Places:
        """The places of its patterns. Figures call a pattern that drains by its name and version, as another version
        may have the plain name. If one that was removed, put back and removed again drains twice, a number is added.
        """
        each, drains = list[Place](), Counter[str]()
        for one in self.deployments:
            label = one.name
            if one.drains:
                label = f"{one.name}@{one.version}"
                drains[label] += 1
                label += f"#{drains[label]}" if drains[label] > 1 else ""
            each.append(Place(one.number, label, one.version, one.drains))
        return Places(tuple(each), self.ended, supervised=True)

    def without_first(self) -> PatternSet:
        """The same patterns. Two sets with the same patterns are equal in this form."""
        return replace(self, first=0, ended=())


class Change(NamedTuple):
    """What is new in a set of patterns."""

    deployed: tuple[Deployment, ...]
    draining: tuple[Deployment, ...]
    """Those that start nothing more from now on."""
    gone: tuple[Deployment, ...]
    """Those that were dropped, or have nothing open any more."""

    @staticmethod
    def between(former: PatternSet | None, following: PatternSet) -> Change:
        before = {} if former is None else {one.number: one for one in former.deployments}
        after = {one.number: one for one in following.deployments}
        return Change(
            deployed=tuple(one for number, one in after.items() if number not in before),
            draining=tuple(one for number, one in after.items() if number in before and one != before[number]),
            gone=tuple(one for number, one in before.items() if number not in after),
        )


def following(
    former: PatternSet,
    wanted: Mapping[str, AnyPattern],
    old: Old,
    known: Iterable[PatternSet],
    idle: Collection[int] = (),
) -> PatternSet:
    """The set with the wanted patterns after the former one; the micro-batch is left open.

    Args:
        wanted: By name.
        old: What becomes of what is open of patterns that end.
        known: All sets so far.
        idle: The numbers of draining deployments that have nothing open any more. They leave the set.

    Raises:
        PatternError: a version was deployed before with other content, or a pattern cannot be drained; lists all
            problems.
    """
    every = {one.number: one for pattern_set in [*known, former] for one in pattern_set.deployments}
    documents = {(one.name, one.version): _document(one.pattern) for one in every.values()}
    number, problems = max(every, default=-1), list[Problem]()
    running, draining = list[Deployment](), [one for one in former.draining if one.number not in idle]
    for name, pattern in wanted.items():
        document, before = _document(pattern), former.running.get(name)
        if before is not None and _document(before.pattern) == document:  # an earlier version may write it otherwise
            running.append(before)
            continue
        number += 1
        running.append(Deployment(number, document))
        version = running[-1].version
        if documents.get((name, version), document) != document:
            message = f"pattern {name!r} was deployed with version {version!r} before: give it another one"
            problems.append(Problem(message).of_pattern(name))
    ending = [one for one in former.running.values() if one not in running]
    if old == "drain":
        draining += [replace(one, status="draining") for one in ending]
        for one in ending:
            if reason := why_not_drained(one.pattern):
                problems.append(Problem(reason).of_pattern(one.name))
    if problems:
        raise PatternError(problems)
    each = (*sorted(running, key=lambda one: one.number), *draining)
    gone = {one.number for one in former.deployments} - {one.number for one in each}
    return PatternSet(former.first, each, tuple(sorted({*former.ended, *gone})))


def _document(pattern: AnyPattern) -> str:
    """The pattern's document in one form, so that equal patterns have equal documents."""
    return json.dumps(pattern_to_document(pattern), sort_keys=True)


def to_json(given: PatternSet) -> dict[str, Any]:
    """The set as JSON values."""
    each = [{"number": one.number, "status": one.status, "pattern": one.document} for one in given.deployments]
    return {"first": given.first, "deployments": each, "ended": list(given.ended)}


def from_json(value: Mapping[str, Any]) -> PatternSet:
    each = (Deployment(one["number"], one["pattern"], one["status"]) for one in value["deployments"])
    return PatternSet(value["first"], tuple(each), tuple(value["ended"]))
