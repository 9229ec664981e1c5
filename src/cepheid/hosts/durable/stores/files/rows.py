"""The rows that users query, in a DuckDB database in memory, made anew from the files when a store is opened.

Rows that were found are written to the database in groups. They stay in memory only until the next snapshot; then they
are written to files that DuckDB reads. So memory is bounded, however much was found. Open partial matches follow from
the state of the matchers: they are listed when a query comes, for the keys that have changed since the last one. So no
feed pays for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid.hosts.durable.documents import deployment_from_json, input_from_json
from cepheid.hosts.durable.outbox import outbox_rows
from cepheid.hosts.durable.store import OUTBOX, OpenPart, RowTable, Sent
from cepheid.hosts.durable.stores.database import create_table, failing, literal, quoted
from cepheid.hosts.durable.stores.duckdb import DuckDbDatabase
from cepheid.hosts.durable.stores.files.contents import Contents, RowFile, StoredTable, numbers_from_json
from cepheid.hosts.durable.stores.files.disk import Disk, Sync
from cepheid.hosts.durable.stores.files.records import Blob, Change
from cepheid.hosts.durable.stores.files.row_files import RowFiles
from cepheid.hosts.durable.stores.layout import INPUTS, KEYS, OUTBOX_TABLE, PATTERNS, SCRIPTS, TABLES
from cepheid.hosts.durable.stores.listed import input_row, pattern_row
from cepheid.hosts.durable.stores.script_rows import save_scripts
from cepheid.hosts.shards.arrow_stream import UNPACKED

MOST_CHANGES, MOST_BYTES = 500, 1 << 20
"""What was found is written to the database at the latest when it is so much, so that no feed and no query has to wait
long for it.
"""
_OUTBOX = StoredTable(OUTBOX, None)


class RowTables:
    """The database. All methods but the functions that `reader` returns are called by one thread at a time."""

    def __init__(self, folder: Path, contents: Contents) -> None:
        """`folder` has the files of rows."""
        self._row_files = RowFiles(folder)
        self._database = DuckDbDatabase(None, folder)
        for name in (INPUTS, PATTERNS, SCRIPTS):
            create_table(self._database, name, TABLES[name], KEYS[name])
        self._types: dict[str, dict[str, str]] = {}
        self._ids: dict[str, str] = {}
        """The columns with the ids of rows."""
        self._applied = 0
        self._open: set[str] = set()
        """The tables of open partial matches."""
        self._filled: set[str] = set()
        """The tables with recent rows that are in no file yet."""
        self._gone: set[str] = set()
        """The tables some of whose rows in files were removed since the files were written."""
        self._floors: dict[str, int] = {}
        """Rows of files are removed if their number in the outbox, or their `detected_at` (microseconds), is less."""
        self._stale: set[str] = set()
        """The tables whose views must be made anew before they are read."""
        self._reading: set[object] = set()
        self._files: Mapping[str, Sequence[RowFile]] = {}
        contents.changed_inputs |= contents.inputs.keys()
        contents.changed_deployments |= contents.deployments.keys()

    def type_names(self, columns: pa.Schema) -> dict[str, str]:
        """The types of columns in the database."""
        return {field.name: self._database.type_name(field.type) for field in columns}

    def reader(self, most: int | None) -> Callable[[str], pa.Table]:
        """Answers one query over what is in the database now, with at most `most` bytes. May be called by any thread.

        Raises:
            SnapshotError: a file of rows is damaged.
        """
        for name in [*self._stale]:
            self._view(name)
        answer, reading = self._database.reader_now(INPUTS, most), object()
        self._reading.add(reading)

        def answered(sql: str) -> pa.Table:
            try:
                return answer(sql)
            finally:
                self._reading.discard(reading)

        return answered

    def close(self) -> None:
        self._database.close()

    # From the contents to the database

    def refresh(self, contents: Contents) -> None:
        """Brings the database to the contents, but for open partial matches."""
        with self.changing():
            self._follow(contents)
            self._write_listed(contents)

    def keep_up(self, contents: Contents) -> None:
        """Writes what was found since the last call to the database, if a `refresh` would take long otherwise."""
        changes = contents.tail[self._applied :]
        size = sum(one.content.size for one in changes if isinstance(one.content, Blob))
        if len(changes) > MOST_CHANGES or size > MOST_BYTES:
            with self.changing():
                self._follow(contents)

    def _follow(self, contents: Contents) -> None:
        """Makes the tables, and writes what was found and removed."""
        for name, table in {OUTBOX_TABLE: _OUTBOX, **contents.tables}.items():
            self._make(name, table)
        if self._files != contents.files:
            self._files = dict(contents.files)
            self._stale |= contents.files.keys()
        tail = sorted(contents.tail[self._applied :], key=_table_name)  # stable: in order for each table
        for name, changes in groupby(tail, _table_name):
            for kind, some in groupby(changes, lambda change: change.kind):
                self._apply(kind, name, [*some], contents)
        self._applied = len(contents.tail)

    @contextmanager
    def changing(self) -> Iterator[None]:
        with failing(self._database, "listed"):
            self._database.begin()
            try:
                yield
                self._database.commit()
            except BaseException:
                self._database.rollback()
                raise

    def _make(self, name: str, table: StoredTable) -> None:
        """Makes a table, or adds the columns that it lacks."""
        there = self._types.get(name)
        if there is not None and not set(table.columns.names) - there.keys():
            return
        types, recent = self.type_names(table.columns), quoted(_recent(name))
        if there is None:
            listed = ", ".join(f"{quoted(column)} {type_}" for column, type_ in types.items())
            self._database.execute(f"CREATE TABLE {recent} ({listed})")
            if table.id is not None:
                create_table(self._database, _gone(name), pa.schema([(table.id, pa.string())]), ())
                self._ids[name] = table.id
        else:
            for column in types.keys() - there:
                self._database.execute(f"ALTER TABLE {recent} ADD COLUMN {quoted(column)} {types[column]}")
        self._types[name] = {**(there or {}), **types}
        self._stale.add(name)

    def _view(self, name: str) -> str:
        """The view of all rows of a table, those in files and the recent ones, by its name as SQL.

        Raises:
            SnapshotError: a file is damaged.
        """
        if name not in self._stale:
            return quoted(name)
        self._row_files.verify(name, self._files.get(name, ()))
        types = self._types[name]
        parts = [f"SELECT {', '.join(map(quoted, types))} FROM {quoted(_recent(name))}"]
        for file in self._files.get(name, ()):
            listed = ", ".join(
                f"CAST({quoted(column)} AS {types[column]}) AS {quoted(column)}" for column in file.columns
            )
            path = literal(str(self._row_files.path(file)))
            parts.append(f"SELECT {listed} FROM read_parquet({path}) WHERE {self._remains(name)}")
        self._database.execute(f"CREATE OR REPLACE VIEW {quoted(name)} AS {' UNION ALL BY NAME '.join(parts)}")
        self._stale.discard(name)
        return quoted(name)

    def _remains(self, name: str) -> str:
        """The condition for the rows in files that were not removed since."""
        conditions = ["TRUE"]
        if name in self._gone:
            id_ = quoted(self._ids[name])
            conditions.append(f"{id_} NOT IN (SELECT {id_} FROM {quoted(_gone(name))})")
        if (floor := self._floors.get(name)) is not None:
            conditions.append(f"NOT {self._is_below(name, floor)}")
        return " AND ".join(conditions)

    def _is_below(self, name: str, floor: int) -> str:
        return f"number < {floor:d}" if name == OUTBOX_TABLE else f"detected_at < {self._database.time_literal(floor)}"

    def _write_listed(self, contents: Contents) -> None:
        """Writes the inputs and the patterns that have changed. Reading a pattern takes some milliseconds."""
        inputs, numbers = sorted(contents.changed_inputs), sorted(contents.changed_deployments)
        if inputs:
            self._database.delete_where_in(INPUTS, "name", inputs)
            self._insert_listed(INPUTS, [input_row(input_from_json(contents.inputs[name])) for name in inputs])
        if numbers:
            deployments = [deployment_from_json(contents.deployments[number]) for number in numbers]
            self._database.execute(f"DELETE FROM {PATTERNS} WHERE number IN ({', '.join(map(str, numbers))})")
            self._insert_listed(PATTERNS, [pattern_row(deployment) for deployment in deployments])
            for deployment in deployments:
                save_scripts(self._database, deployment)
        contents.changed_inputs.clear()
        contents.changed_deployments.clear()

    def _insert_listed(self, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
        columns = zip(*rows, strict=True)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, TABLES[name], strict=True)]
        self._database.insert(name, pa.Table.from_arrays(arrays, schema=TABLES[name]))

    def _apply(self, kind: str, name: str, changes: Sequence[Change], contents: Contents) -> None:
        recent = _recent(name)
        match kind:
            case "gone":
                self._remove(name, [id_ for change in changes for id_ in change.value["ids"]])
            case "older":
                self._raise_floor(name, max(change.value["time"] for change in changes))
            case "forget_sent":
                self._raise_floor(name, max(change.value["first"] for change in changes))
            case "latest":
                last = f"SELECT detected_at FROM {self._view(name)} ORDER BY 1 DESC LIMIT 1 OFFSET {{:d}}"
                offset = min(change.value["rows"] for change in changes) - 1
                for (time,) in self._database.rows(f"SELECT epoch_us(detected_at) FROM ({last.format(offset)})"):
                    self._raise_floor(name, time)
            case "outbox":
                self._filled.add(name)
                self._database.insert(recent, outbox_rows([_sent(change) for change in changes]))
            case _:
                self._filled.add(name)
                self._insert(name, changes, has_new_ids=contents.has_new_ids(name))

    def _insert(self, name: str, changes: Sequence[Change], *, has_new_ids: bool) -> None:
        """Adds rows; those whose id is there already are left out."""
        if has_new_ids:
            self._database.insert(
                _recent(name), pa.concat_tables(map(_rows, changes), promote_options="default").combine_chunks()
            )
            return
        self._view(name)
        for change in changes:
            self._database.insert_new(_recent(name), _rows(change), self._ids[name], known=name)

    def _remove(self, name: str, ids: Sequence[str]) -> None:
        """Removes rows by their ids."""
        self._database.delete_where_in(_recent(name), self._ids[name], ids)
        if self._files.get(name):
            self._database.insert(_gone(name), pa.table({self._ids[name]: pa.array(ids, pa.string())}))
            if name not in self._gone:
                self._gone.add(name)
                self._stale.add(name)

    def _raise_floor(self, name: str, floor: int) -> None:
        """Removes rows that are older."""
        self._database.execute(f"DELETE FROM {quoted(_recent(name))} WHERE {self._is_below(name, floor)}")
        if self._files.get(name):
            self._floors[name] = max(floor, self._floors.get(name, floor))
            self._stale.add(name)

    # Open partial matches

    def forget_open(self) -> None:
        """Removes all of them."""
        with self.changing():
            for name in self._open:
                self._database.execute(f"DELETE FROM {quoted(_recent(name))}")
        self._open = set()

    def replace_open(self, rows: pa.Table, parts: Sequence[OpenPart]) -> None:
        for table, version, keys, _ in parts:
            self._open.add(table.name)
            if keys:
                condition = f"version = {literal(version)}"
                self._database.delete_where_in(_recent(table.name), "key_id", keys, condition)
        self._database.insert_parts(rows, [(_recent(part.table.name), part.rows) for part in parts if part.rows])

    def delete_expired(self, table: RowTable, version: str, until: int) -> None:
        condition = f"version = {literal(version)} AND wakeup <= {self._database.time_literal(until)}"
        self._database.execute(f"DELETE FROM {quoted(_recent(table.name))} WHERE {condition}")

    def clear(self, table: RowTable, version: str) -> None:
        self._database.execute(f"DELETE FROM {quoted(_recent(table.name))} WHERE version = {literal(version)}")

    # From the database to files

    def flush(self, contents: Contents, disk: Disk, number: int) -> dict[str, list[RowFile]]:
        """Writes all rows to files; returns what there is then. `flushed` follows, unless the store is opened anew.

        Raises:
            OSError: they cannot be written.
        """
        with self.changing():
            self._follow(contents)
        files = dict(contents.files)
        folder = self._row_files.folder
        if not folder.exists():
            disk.make_folder(folder)
        for name in sorted(self._filled | self._gone | self._floors.keys()):
            files[name] = self._written(name, files.get(name, []), disk, number)
        if files != contents.files:
            disk.sync_folder(folder, Sync.ROWS_NAMES)
        return files

    def flushed(self, contents: Contents, disk: Disk) -> None:
        """The files of rows are now those of the contents."""
        with self.changing():
            for name in self._filled:
                self._database.execute(f"DELETE FROM {quoted(_recent(name))}")
            for name in self._gone:
                self._database.execute(f"DELETE FROM {quoted(_gone(name))}")
            self._filled, self._gone, self._floors, self._applied = set(), set(), {}, 0
            self._follow(contents)
        if not self._reading:  # else they are removed after the next snapshot
            self._row_files.remove_others(contents.files, disk)

    def _written(self, name: str, files: Sequence[RowFile], disk: Disk, number: int) -> list[RowFile]:
        """The table's files after its recent rows were written to one of them; anew if rows of files were removed."""
        if name in self._gone or name in self._floors:
            rows = self._database.table(f"SELECT * FROM {self._view(name)}")
            return self._row_files.write(name, [], rows, disk, number)
        rows = self._database.table(f"SELECT * FROM {quoted(_recent(name))}")
        return self._row_files.write(name, files, rows, disk, number)


def _recent(name: str) -> str:
    """The table with the rows of a table that are in no file."""
    return f"recent_{name}"


def _gone(name: str) -> str:
    """The table with the ids of a table's rows that were removed since they were written to files."""
    return f"gone_{name}"


def _table_name(change: Change) -> str:
    return str(change.value["table"])


def _rows(change: Change) -> pa.Table:
    assert isinstance(change.content, Blob)
    return pa.ipc.open_stream(change.content.read(), options=UNPACKED).read_all()


def _sent(change: Change) -> Sent:
    rows, value = _rows(change), change.value
    return Sent(numbers_from_json(value, rows.num_rows), value["pattern"], value["version"], rows)
