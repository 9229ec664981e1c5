"""What a supervisor reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from cepheid.hosts.spark.supervised.pattern_set import Change, PatternSet


@dataclass(frozen=True)
class Switch:
    """The set of patterns has changed."""

    patterns: PatternSet
    change: Change
    pause: timedelta | None
    """From the last commit of the former query to the first commit of this one, or until it waits for events; if the
    former one was waiting for events, from when it was stopped. None for the first query of a supervisor.
    """
    former: StreamingQuery | None
    """The former query, which has ended."""

    def __str__(self) -> str:
        change = self.change
        parts = [f"deployed {one}" for one in change.deployed]
        parts += [f"draining {one}" for one in change.draining]
        parts += [f"retired {one}" for one in change.gone]
        parts = parts or [str(one) for one in self.patterns.deployments]
        if self.pause is not None:
            parts.append(f"pause {self.pause.total_seconds():.2f} s")
        return f"patterns from batch {self.patterns.first}: {'; '.join(parts)}"


@dataclass(frozen=True)
class Refusal:
    """The files in the folder are wrong. Nothing has changed: the query goes on with the former set."""

    problems: str

    def __str__(self) -> str:
        return f"the patterns in the folder are refused, and the former ones go on:\n{self.problems}"


Report: TypeAlias = "Callable[[Switch | Refusal], object]"
