"""Who may do what in PostgreSQL: what a user's query may call, and the roles around a host."""

from __future__ import annotations

import re
from typing import Any

import psycopg

from cepheid.errors import StoreError
from cepheid.hosts.durable.stores.database import quoted

_FUNCTION = re.compile(r":(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)")
_RELATION = re.compile(r":relid (\d+)")
"""Where the stored tree of a view names a function, and a table or another view."""
_FIRST_ADDED = 16_384
"""Objects with lower numbers come with PostgreSQL itself (`FirstNormalObjectId` in its sources)."""
_READS_BY_NAME = "^(table|schema|database)_to_xml"
"""Functions that are not volatile, and run queries over what their arguments name, which may be views."""


def check_calls(connection: psycopg.Connection[Any], sql: str) -> None:
    """Refuses a user's query that calls other functions than those that come with PostgreSQL and are not volatile. A
    transaction that may only read keeps no function from reading files, ending sessions, or changing the session's
    rights; and whoever made a function says himself whether it is volatile. What the views in the query call counts as
    well, and so do operators and casts, which are functions.

    The server itself reads the query, as that of a view that is never committed, because a name can be written in many
    ways, and a function may be called without parentheses.

    Raises:
        StoreError: it calls others, which are named.
        psycopg.Error: it is no query.
    """
    connection.execute("BEGIN")
    try:
        view = f"CREATE TEMPORARY VIEW cepheid_query AS SELECT 1 AS one FROM (\n{sql}\n) AS query"
        connection.execute(view.encode(), binary=True)  # in this protocol a text has one statement
        ((number,),) = connection.execute("SELECT 'pg_temp.cepheid_query'::regclass::oid").fetchall()
        refused = (
            "SELECT DISTINCT proname FROM pg_proc WHERE oid = ANY(%s) "
            "AND (provolatile = 'v' OR oid >= %s OR proname ~ %s) ORDER BY proname"
        )
        called = [*_called(connection, number)]
        names = [str(name) for (name,) in connection.execute(refused, (called, _FIRST_ADDED, _READS_BY_NAME))]
    finally:
        connection.rollback()
    if names:
        raise StoreError(
            f"PostgreSQL refuses the query: it calls {', '.join(names)}. A query may only call functions that come "
            "with PostgreSQL and are not volatile, also in its views and operators"
        )


def _called(connection: psycopg.Connection[Any], view: int) -> set[int]:
    """The numbers of the functions that a view calls, and those that the views in it call."""
    functions: set[int] = set()
    seen: set[int] = set()
    new = {view}
    while new:
        seen |= new
        rules = "SELECT ev_action::text FROM pg_rewrite WHERE ev_class = ANY(%s) AND ev_type = '1'"  # '1': of SELECT
        trees = [str(tree) for (tree,) in connection.execute(rules, ([*new],))]
        functions |= {int(number) for tree in trees for number in _FUNCTION.findall(tree)}
        new = {int(number) for tree in trees for number in _RELATION.findall(tree)} - seen
    return functions


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

-- The deployer opens the store while no host runs, and writes rows and new tables, but alters and drops none. A version
-- of a pattern with new columns for the owner's tables is deployed by the owner, or through the host that runs.
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
