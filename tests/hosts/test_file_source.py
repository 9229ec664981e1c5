"""Files that a host cannot take are named with what is wrong, in our words."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from cepheid import EventError
from cepheid.errors import SourceError
from cepheid.hosts.sources.files import FileSource

COLUMNS = pa.schema({"user": pa.string(), "price": pa.int64()})


def test_a_damaged_parquet_file(tmp_path: Path) -> None:
    """A file that is none of Parquet is named, without the words of the reader."""
    (tmp_path / "1.parquet").write_bytes(b"PAR")
    with pytest.raises(SourceError) as error:
        FileSource(tmp_path, COLUMNS).after(None)
    message = f"{tmp_path / '1.parquet'} cannot be read as Parquet: it is damaged, or another kind of file"
    assert str(error.value) == message


def test_columns_of_other_types(tmp_path: Path) -> None:
    """Each column whose values do not fit is named with both types; one whose values do is taken."""
    table = pa.table({"user": [1, 2], "price": [0.5, 1.0]})
    pa.parquet.write_table(table, tmp_path / "1.parquet")
    with pytest.raises(EventError) as error:
        FileSource(tmp_path, COLUMNS).after(None)
    advice = "Write them in its types"
    what = "has columns whose values do not fit the input: 'price' is of type double and not int64"
    assert str(error.value) == f"{tmp_path / '1.parquet'} {what}. {advice}"
    pa.parquet.write_table(table.slice(1), tmp_path / "1.parquet")
    feed = FileSource(tmp_path, COLUMNS).after(None)
    assert feed is not None
    assert feed.events.to_pylist() == [{"user": "2", "price": 1}]
