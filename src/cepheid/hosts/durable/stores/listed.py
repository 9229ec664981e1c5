"""The rows of the tables of inputs and of patterns."""

from __future__ import annotations

import json
from typing import Any

from cepheid.hosts.durable.documents import deployment_to_json, input_to_json
from cepheid.hosts.durable.state import BEFORE_ALL, Deployment, Input


def input_row(given: Input) -> tuple[Any, ...]:
    """The row of an input, with the columns of `TABLES[INPUTS]`."""
    position = None if given.position is None else json.dumps(given.position)
    watermark = None if given.reached == BEFORE_ALL else given.reached.time
    return given.name, position, watermark, given.events, json.dumps(input_to_json(given))


def pattern_row(deployment: Deployment) -> tuple[Any, ...]:
    """The row of a deployment, with the columns of `TABLES[PATTERNS]`."""
    content = deployment_to_json(deployment)
    about = (deployment.name, deployment.version, deployment.status, json.dumps(content["input"]))
    tables = (f"open_{deployment.slug}", f"matches_{deployment.slug}")
    documents = (json.dumps(content["pattern"]), json.dumps(content))
    position = None if deployment.position is None else json.dumps(deployment.position)
    notes = ("\n".join(deployment.problems) or None, position)
    return (deployment.number, *about, *tables, *documents, *notes)
