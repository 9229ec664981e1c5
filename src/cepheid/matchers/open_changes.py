"""What has changed among the open partial matches of a live matcher, for hosts that store them as rows."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa


class OpenChanges(NamedTuple):
    """The open partial matches of some keys, in place of all that these keys had before."""

    keys: list[str]
    """The digests of the keys that had some before, as in the rows' column `key_id`."""
    rows: pa.Table
    """Rows of `stored_open_schema`."""
