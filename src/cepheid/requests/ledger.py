"""The ledger that is stored with a stream's state. It has the arguments that the plan is made from, so that the
checkpoint can be read without the query.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from cepheid.families.family import LateBy
from cepheid.plan.pattern_request import PatternRequest
from cepheid.requests.request import Request


def stored_request(
    request: Request, asked: PatternRequest[Any], zone: str, events: dict[str, Any], late_by: LateBy
) -> dict[str, Any]:
    """The request for one of its patterns, in JSON values. It has the pattern's document, the other arguments of
    `detect` that a plan is made from, the events' columns as described in `events`, and which time of an event has the
    watermark. If partial matches of this kind of pattern cannot be listed, it says the kind, which is all that earlier
    versions have stored of such patterns.
    """
    family = request.family
    return {
        **({} if family.lists_open else {"kind": family.kind}),
        "pattern": family.document(asked.pattern),
        "functions": family.names_of_functions(asked.pattern),
        "events": events,
        "late_by": late_by,
        "limits": asdict(request.limits),
        "arguments": {
            "key": list(request.key) or None,
            "time": request.time if request.end is None else [request.time, request.end],
            **({} if request.event_id is None else {"event_id": request.event_id}),
            "sequence": list(request.sequence) or None,
            "columns": None if request.columns is None else list(request.columns),
            "measures": None if asked.measures is None else dict(asked.measures),
            "outputs": None if request.outputs is None else list(request.outputs),
            "time_zone": zone,
            "shards": request.shards,
            **({} if request.rows_per == "match" else {"rows_per": request.rows_per}),
        },
    }
