"""What has changed among the open partial matches of live matchers, for hosts that store them as rows."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from cepheid.compile.arrays import Ints


class OpenChanges(NamedTuple):
    """The open partial matches of some keys of each of some matchers, in place of all that these keys had before."""

    keys: list[list[str]]
    """For each matcher, the digests of the keys that had some before, as in the rows' column `key_id`."""
    rows: pa.Table
    """Rows of `stored_open_schema`, those of one matcher after those of another."""
    counts: Ints
    """How many rows each matcher has."""
