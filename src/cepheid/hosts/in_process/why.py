"""Why events did not match, in process: the observed matcher in place of the compiled one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cepheid.errors import SchemaError
from cepheid.hosts.in_process.detect import prepared, warn_of_ties
from cepheid.output.funnel import Funnel
from cepheid.requests.request import Request


@dataclass(frozen=True)
class Why:
    """Why events did not match a pattern. Printed, it is a readable text."""

    funnel: Funnel
    """How many events were read and started a partial match, how far these came, and what became of each
    start.
    """

    def __str__(self) -> str:
        return str(self.funnel)

    def to_dict(self) -> dict[str, Any]:
        """The funnel in values of JSON."""
        return self.funnel.to_dict()


def why_in_process(events: pa.Table, request: Request) -> Why:
    """What became of the events that started a partial match.

    Raises:
        SchemaError: the request has several patterns, or one of a kind that does not explain misses.
        Others: as `detect_in_process`.
    """
    family = request.family
    if request.named or not family.explains_misses:
        given = "several patterns" if request.named else family.noun
        raise SchemaError(f"why explains one pattern of stages, made with Pattern.begin(…); it was given {given}")
    ready = prepared(events, request)
    matcher = family.observed(ready.compiled, ready.until)
    for batch in ready.batches(ordered=True):
        matcher.process(batch)
    matcher.finish()
    warn_of_ties(matcher.counts["ties"], ready.request)
    return Why(matcher.funnel(ready.read))
