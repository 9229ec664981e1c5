"""Spark's connector for Apache Kafka; no package on PyPI has its jars."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

JARS = Path(sys.prefix) / "kafka"
"""The folder to which `make kafka` copies jars: those of the connector and of the broker, each in its own subfolder."""


def connector_jars() -> list[Path]:
    """The connector's jars in the running environment; empty if nobody has copied them."""
    return sorted((JARS / "connector").glob("*.jar"))


def with_jars(jars: Sequence[Path]) -> dict[str, str]:
    """The settings of a session that loads these jars."""
    return {"spark.jars": ",".join(map(str, jars))} if jars else {}
