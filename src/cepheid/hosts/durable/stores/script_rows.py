"""The rows of the table `scripts`."""

from __future__ import annotations

import pyarrow as pa

from cepheid.families import known_family_of
from cepheid.hosts.durable.state import Deployment
from cepheid.hosts.durable.stores.database import Database
from cepheid.hosts.durable.stores.layout import SCRIPTS, TABLES


def save_scripts(database: Database, deployment: Deployment) -> None:
    """Replaces the rows of the deployment."""
    database.execute(f"DELETE FROM {SCRIPTS} WHERE deployment = {deployment.number:d}")
    rows = script_rows(deployment)
    if rows.num_rows:
        database.insert(SCRIPTS, rows)


def script_rows(deployment: Deployment) -> pa.Table:
    """The rows of the deployment."""
    about = {"deployment": deployment.number, "pattern": deployment.name, "version": deployment.version}
    steps = known_family_of(deployment.pattern).steps_in_words(deployment.pattern)
    rows = [about | {"step": number} | step._asdict() for number, step in enumerate(steps, 1)]
    return pa.Table.from_pylist(rows, TABLES[SCRIPTS])
