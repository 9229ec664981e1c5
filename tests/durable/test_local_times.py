"""Events of a host whose times have no zone."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.durable.test_stores import count

import cepheid
from cepheid.errors import CepheidWarning
from cepheid.host import open_host


def test_hours_that_clocks_show_twice(url: str) -> None:
    """A host warns once for each input, as `detect` does, when the local time of a detection may mean two instants."""
    schema = pa.schema([("at", pa.timestamp("us")), ("x", pa.int64())])
    pattern = cepheid.Pattern.begin("a").not_followed_by("b").where("x = 3").within("1 hour")
    with open_host(url) as host:
        for name in ("first", "second"):
            host.input(name, schema, time="at", time_zone="Europe/Berlin")
            host.deploy(pattern.named(f"quiet_{name}"), input=name)
            for minute in (10, 30):
                at = [f"2026-10-25T01:{minute}", f"2026-10-25T01:{minute + 10}"]
                host.feed(pa.table({"at": pa.array(at).cast("timestamp[us]"), "x": [1, 1]}, schema), input=name)
            message = f"^input '{name}': in 1 row detected_at is in an hour that clocks in Europe/Berlin show twice"
            with pytest.warns(CepheidWarning, match=message):
                host.advance_time("2026-10-25T00:15:00Z", input=name)
            host.advance_time("2026-10-25T03:00:00Z", input=name)  # where a warning would be an error
            assert count(host, f"matches_quiet_{name}") == 4
