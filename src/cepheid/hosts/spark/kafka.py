"""Spark's connector for Apache Kafka, whose jars no package of PyPI carries."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

JARS = Path(sys.prefix) / "kafka"
"""Where `make kafka` copies jars to: the connector's and the broker's, each in a folder of its own."""


def connector_jars() -> list[Path]:
    """The connector's jars in the running environment; none where nobody has copied them."""
    return sorted((JARS / "connector").glob("*.jar"))


def with_jars(jars: Sequence[Path]) -> dict[str, str]:
    """The settings of a session that has these jars."""
    return {"spark.jars": ",".join(map(str, jars))} if jars else {}
