"""Inputs and deployments as JSON values, in which stores keep them."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa

from cepheid.hosts.durable.state import Deployment, Input, MatchesOf
from cepheid.lang.documents import pattern_from_text, pattern_to_document
from cepheid.matchers.watermark import Reached
from cepheid.plan.limits import Limits


def input_to_json(one: Input) -> dict[str, Any]:
    """The input as JSON values. Its columns are in Arrow's binary form, as text."""
    columns = b64encode(one.columns.serialize().to_pybytes()).decode()
    return {**one.__dict__, "columns": columns, "sequence": list(one.sequence), "reached": list(one.reached)}


def input_from_json(value: dict[str, Any]) -> Input:
    columns = pa.ipc.read_schema(pa.BufferReader(b64decode(value["columns"])))
    known = {"columns": columns, "sequence": tuple(value["sequence"]), "reached": Reached(*value["reached"])}
    return Input(**{**value, **known})


def deployment_to_json(one: Deployment) -> dict[str, Any]:
    """The deployment as JSON values.

    Raises:
        PatternError: the pattern has conditions in Python, which are in no document.
    """
    given = one.input if isinstance(one.input, str) else asdict(one.input)
    limits = asdict(one.limits)
    return {**one.__dict__, "pattern": pattern_to_document(one.pattern), "input": given, "limits": limits}


def deployment_from_json(value: dict[str, Any]) -> Deployment:
    given = value["input"]
    tier = given if isinstance(given, str) else MatchesOf(tuple(given["patterns"]), given["raw"])
    columns = value["columns"]
    return replace(
        Deployment(**value),
        pattern=pattern_from_text(json.dumps(value["pattern"])),
        input=tier,
        key=tuple(value["key"]),
        columns=None if columns is None else tuple(columns),
        outputs=tuple(value["outputs"]),
        problems=tuple(value.get("problems", ())),
        limits=Limits(**value["limits"]),
    )
