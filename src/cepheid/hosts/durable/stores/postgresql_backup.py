"""Backups of a store in PostgreSQL, with PostgreSQL's own programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from cepheid.errors import StoreError
from cepheid.hosts.durable.stores.layout import HOST

_LISTED = re.compile(rf"^\d+; \d+ \d+ TABLE (?!DATA )(?P<schema>.+) {HOST} ", re.MULTILINE)
"""A line in the list of what is in a file: numbers, kind, schema, name and owner."""


def dump(url: str, schema: str, tables: Iterable[str], path: Path) -> None:
    """Writes the tables to a file, as they are at one moment, while others use them.

    Raises:
        StoreError: there is no pg_dump, or it fails.
    """
    named = (f'--table="{schema}"."{name}"' for name in sorted(tables))
    _run(url, "pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--file={path}", *named)


def load(path: Path, url: str) -> None:
    """Makes the tables of the file in a database that does not have them, all or none.

    Raises:
        StoreError: there is no pg_restore, or it fails.
    """
    _run(url, "pg_restore", "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges", str(path))


def schema_in(path: Path, url: str) -> str | None:
    """The schema of the host's tables in the file; None if it has none. The database itself is not asked.

    Raises:
        StoreError: there is no pg_restore, or it cannot read the file.
    """
    found = _LISTED.search(_run(url, "pg_restore", "--list", str(path), reaches_database=False))
    return None if found is None else found["schema"]


def _run(url: str, name: str, *arguments: str, reaches_database: bool = True) -> str:
    """What the program prints."""
    program = shutil.which(name)
    if program is None:
        raise StoreError(f"backups need the program {name}. On Debian: apt-get install postgresql-client")
    # Other users can read the arguments of a process, but not its environment.
    where = conninfo_to_dict(url)
    password = where.pop("password", None)
    secret = {} if password is None else {"PGPASSWORD": str(password)}
    database = [f"--dbname={make_conninfo('', **where)}"] if reaches_database else []
    command = [program, *database, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | secret, check=False)  # noqa: S603
    if done.returncode:
        raise StoreError(f"{name} failed: {done.stderr.strip()}")
    return done.stdout
