"""Who may do what in PostgreSQL: which functions a user's query may call, and the roles around a host."""

from __future__ import annotations

import re
from typing import Any

import psycopg

from cepheid.errors import StoreError
from cepheid.hosts.durable.stores.database import quoted

_FUNCTION = re.compile(r":(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)")
"""Where the stored tree of a view names a function."""


def check_functions(connection: psycopg.Connection[Any], sql: str) -> None:
    """Refuses a query that calls volatile functions: a transaction that may only read does not keep these from reading
    files, ending sessions or changing the session's rights. The server itself reads the query, as that of a view that
    is never committed, because a name can be written in many ways.

    Raises:
        StoreError: it calls some, which are named.
        psycopg.Error: it is no query.
    """
    if "(" not in sql:  # there is no call without
        return
    connection.execute("BEGIN")
    try:
        view = f"CREATE TEMPORARY VIEW cepheid_query AS SELECT 1 AS one FROM (\n{sql}\n) AS query"
        connection.execute(view.encode(), binary=True)  # in this protocol a text has one statement
        tree = "SELECT ev_action::text FROM pg_rewrite WHERE ev_class = 'pg_temp.cepheid_query'::regclass"
        found = {int(number) for (text,) in connection.execute(tree) for number in _FUNCTION.findall(text)}
        volatile = "SELECT proname FROM pg_proc WHERE oid = ANY(%s) AND provolatile = 'v' ORDER BY proname"
        names = [str(name) for (name,) in connection.execute(volatile, ([*found],))]
    finally:
        connection.rollback()
    if names:
        raise StoreError(
            f"PostgreSQL refuses the query: it calls {', '.join(names)}, and a query may call no volatile functions"
        )


def grants(schema: str) -> str:
    """SQL that makes a schema for a host, with three roles: one that owns it and runs the host, one that deploys, and
    one that reads. It may be run again.
    """
    owner, deployer, reader = (quoted(f"{schema}_{role}") for role in ("owner", "deployer", "reader"))
    made = "\n".join(_role(f"{schema}_{role}") for role in ("owner", "deployer", "reader"))
    within = f"IN SCHEMA {quoted(schema)}"
    return f"""\
-- The roles have no passwords yet: set them with \\password, or let pg_hba.conf know them otherwise.
{made}
CREATE SCHEMA IF NOT EXISTS {quoted(schema)} AUTHORIZATION {owner};
ALTER ROLE {owner} SET search_path = {quoted(schema)};
ALTER ROLE {deployer} SET search_path = {quoted(schema)};
ALTER ROLE {reader} SET search_path = {quoted(schema)};
REVOKE ALL ON SCHEMA {quoted(schema)} FROM PUBLIC;

-- The owner runs the host. What the deployer makes is the owner's, too.
GRANT {deployer} TO {owner};

-- The deployer opens the store while no host runs, and writes rows and new tables, but alters and drops none.
GRANT USAGE, CREATE ON SCHEMA {quoted(schema)} TO {deployer};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES {within} TO {deployer};
ALTER DEFAULT PRIVILEGES FOR ROLE {owner} {within} GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {deployer};

-- The reader only reads.
GRANT USAGE ON SCHEMA {quoted(schema)} TO {reader};
GRANT SELECT ON ALL TABLES {within} TO {reader};
ALTER DEFAULT PRIVILEGES FOR ROLE {owner} {within} GRANT SELECT ON TABLES TO {reader};
ALTER DEFAULT PRIVILEGES FOR ROLE {deployer} {within} GRANT SELECT ON TABLES TO {reader};
"""


def _role(name: str) -> str:
    """Makes the role if it is not there."""
    return f"DO $$ BEGIN CREATE ROLE {quoted(name)} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;"
