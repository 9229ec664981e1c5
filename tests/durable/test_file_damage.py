"""Damage to a host in files: whatever differs from what was written is an error that names the file, and nothing is
written; or all that was acknowledged is there.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.durable.file_host import FEEDS, Shown, expected, feed_rest, opened, shown
from tests.searching import share

from cepheid.errors import SnapshotError, StoreError
from cepheid.host import restore_host
from cepheid.hosts.durable.stores.files import records
from cepheid.hosts.durable.stores.files.records import line_of

LONG = 1 << 20
"""Bytes: a log that is not replaced by a snapshot."""
NOBODY = 65534
"""The user without any right, on Linux."""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Shown]:
    """A store after all feeds but the last: with rows in files, a snapshot and a log; and what its host showed."""
    folder = tmp_path_factory.mktemp("stored") / "store"
    with closing(opened(folder)) as host:
        for _ in feed_rest(host, len(FEEDS) - 3):
            pass
    with closing(opened(folder, log_size=LONG)) as host:
        for _ in feed_rest(host, len(FEEDS) - 1):
            pass
        found = shown(host)
    assert [*folder.glob("rows/matches*")]
    assert newest(folder, "log").read_bytes().count(b"CPHR") >= 2
    return folder, found


@pytest.fixture
def folder(stored: tuple[Path, Shown], tmp_path: Path) -> Path:
    """A copy of the store."""
    return Path(shutil.copytree(stored[0], tmp_path / "store"))


def newest(folder: Path, kind: str) -> Path:
    return max(folder.glob(f"{kind}-*"))


def contents(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def check_whole(folder: Path, found: Shown) -> None:
    """The store has all that was acknowledged, and goes on."""
    with closing(opened(folder)) as host:
        assert shown(host) == found
        for _ in feed_rest(host):
            pass
        assert host.sql("SELECT match_id FROM matches_pairs ORDER BY match_id").column(0).to_pylist() == expected()


def check_refused(folder: Path, message: str, kind: type[Exception] = SnapshotError) -> None:
    """The store is refused with this message, and left as it is."""
    before = contents(folder)
    with pytest.raises(kind, match=message):
        opened(folder)
    assert contents(folder) == before


def damaged(path: Path, how: str) -> str:
    return re.escape(f"{path} {how}") + ".*: make the store anew from a backup, with `cepheid host restore`"


def flip(path: Path, at: int, bit: int = 0) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << bit
    path.write_bytes(content)


def cut_out(path: Path, at: int, size: int) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:at] + content[at + size :])


HOWS: dict[str, tuple[Callable[[Path], None], str]] = {
    "middle": (lambda path: flip(path, path.stat().st_size // 2), "is damaged at byte "),
    "last byte": (lambda path: flip(path, path.stat().st_size - 1), "is damaged at byte "),
    "first line": (lambda path: flip(path, 30), "is damaged in its first line"),
    "bytes missing": (lambda path: cut_out(path, path.stat().st_size // 2, 7), "is damaged at byte "),
    "half": (lambda path: os.truncate(path, path.stat().st_size // 2), "is damaged at byte "),
    "empty": (lambda path: os.truncate(path, 0), "is damaged in its first line"),
    "missing": (Path.unlink, "is missing"),
}


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("kind", ["log", "snapshot"])
def test_damaged(folder: Path, kind: str, how: str) -> None:
    """A log or snapshot that is not as it was written is named."""
    damage, message = HOWS[how]
    path = newest(folder, kind)
    damage(path)
    check_refused(folder, damaged(path, message))


@pytest.mark.parametrize("how", ["middle", "last byte", "first line", "empty", "missing"])
def test_damaged_head(folder: Path, how: str) -> None:
    """The file that makes the folder a store is named."""
    path = folder / "store.json"
    HOWS[how][0](path)
    check_refused(folder, damaged(path, "is missing" if how == "missing" else "is damaged in its first line"))


def test_without_a_head_a_snapshot_is_no_new_store(folder: Path) -> None:
    """A snapshot is never removed because the file beside it is missing, also if the log after it is still empty."""
    with closing(opened(folder)) as host:
        host.backup(folder.parent / "backup")
    backup = folder.parent / "backup"
    (backup / "store.json").unlink()
    check_refused(backup, damaged(backup / "store.json", "is missing"))
    with pytest.raises(StoreError, match=r"backup is no backup of a host, as .*: this folder has no store\.json"):
        restore_host(backup, f"file://{folder.parent}/restored")
    assert not (folder.parent / "restored").exists()


def test_renamed(folder: Path) -> None:
    """A file under the name of another one is named."""
    log, snapshot = newest(folder, "log"), newest(folder, "snapshot")
    shutil.copy(log, snapshot)
    check_refused(folder, damaged(snapshot, "is another file that was renamed"))
    shutil.copy(log, folder / "store.json")
    (folder / "store.json").write_bytes(log.read_bytes().partition(b"\n")[0] + b"\n")
    check_refused(folder, damaged(folder / "store.json", "is another file that was renamed"))


@pytest.mark.parametrize("how", ["bytes missing", "missing"])
def test_damaged_rows(folder: Path, how: str) -> None:
    """A file of rows that is not as it was written is named."""
    damage, message = HOWS[how]
    path = newest(folder, "rows/matches_pairs")
    damage(path)
    check_refused(folder, damaged(path, message.removesuffix(" at byte ")))


def test_damaged_row(folder: Path) -> None:
    """Damage within a file of rows is found before its rows are shown, and before they are copied to a backup."""
    path, backup = newest(folder, "rows/matches_pairs"), folder.parent / "backup"
    message = damaged(path, "is damaged, and has rows of table matches_pairs")
    with closing(opened(folder, log_size=LONG)) as host:
        HOWS["middle"][0](path)
        with pytest.raises(SnapshotError, match=message):
            host.backup(backup)
    assert not backup.exists()
    with pytest.raises(SnapshotError, match=message):
        opened(folder, log_size=LONG)


@pytest.mark.parametrize("rest", [b"C", b"CPHR", b"CPHR" * 20, b"\0" * 5000])
def test_torn_tail(folder: Path, stored: tuple[Path, Shown], rest: bytes) -> None:
    """What a commit that was never acknowledged has left is cut."""
    log = newest(folder, "log")
    size = log.stat().st_size
    with log.open("ab") as file:
        file.write(rest)
    opened(folder, log_size=LONG).close()
    assert rest * 2 not in log.read_bytes()[size:]
    assert log.read_bytes()[size : size + 4] in (b"", b"CPHR")
    check_whole(folder, stored[1])


def test_torn_commit(folder: Path, stored: tuple[Path, Shown]) -> None:
    """Half of a commit is cut: `acknowledged` says only what was acknowledged before."""
    acknowledged, log = (folder / "acknowledged").read_bytes(), newest(folder, "log")
    size = log.stat().st_size
    with closing(opened(folder, log_size=LONG)) as host:
        assert [*feed_rest(host)]
    (folder / "acknowledged").write_bytes(acknowledged)
    os.truncate(log, (size + log.stat().st_size) // 2)
    check_whole(folder, stored[1])


def test_without_acknowledged(folder: Path, stored: tuple[Path, Shown]) -> None:
    """The note of what was acknowledged is not needed, and may be damaged."""
    (folder / "acknowledged").write_bytes(b"nothing")
    check_whole(folder, stored[1])


@share(50)
@given(data=st.data())
def test_any_byte(stored: tuple[Path, Shown], data: st.DataObject) -> None:
    """A bit flipped anywhere in any file is an error that names the file; or all that was acknowledged is there."""
    original, found = stored
    names = sorted(path.relative_to(original) for path in original.rglob("*") if path.is_file() and path.stat().st_size)
    name = data.draw(st.sampled_from(names))
    at = data.draw(st.integers(0, (original / name).stat().st_size - 1))
    bit = data.draw(st.integers(0, 7))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(shutil.copytree(original, Path(temporary) / "store"))
        flip(folder / name, at, bit)
        try:
            check_whole(folder, found)
        except (SnapshotError, StoreError) as error:
            assert str(folder / name) in str(error)  # noqa: PT017 - both are right


def test_newer_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store of a newer version is refused."""
    folder = tmp_path / "store"
    monkeypatch.setattr(records, "FORMAT", 2)
    opened(folder).close()
    monkeypatch.undo()
    message = r"a newer version of Cepheid wrote .*/store\.json: it has format 2, and this .* up to 1\. Upgrade Cepheid"
    check_refused(folder, message, StoreError)


def test_newer_ids(folder: Path) -> None:
    """A store with ids that this version cannot make is refused."""
    (folder / "store.json").write_bytes(line_of({"cepheid": "store", "ids": 9, "epoch": 1}))
    check_refused(folder, r"a newer version .*/store\.json: it has ids 9, and this version .* Upgrade", StoreError)


def test_foreign_folder(tmp_path: Path) -> None:
    """A folder with other files is refused, and so is one that only looks like a store."""
    (tmp_path / "notes").write_text("These are notes.")
    check_refused(tmp_path, r"has files that no host has made: notes\. Give the host a folder of its own", StoreError)
    (tmp_path / "notes").unlink()
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "mine").write_text("These are rows.")
    check_refused(tmp_path, damaged(tmp_path / "store.json", "is missing"))


def test_foreign_files(folder: Path, stored: tuple[Path, Shown]) -> None:
    """Files that others put into the folder of a store stay there."""
    others = [folder / "notes", folder / "notes.new", folder / "rows" / "notes"]
    for path in others:
        path.write_text("These are notes.")
    (folder / "rows" / "more").mkdir()
    check_whole(folder, stored[1])
    with closing(opened(folder)) as host:
        host.backup(folder.parent / "backup")
    assert all(path.exists() for path in others)
    assert not (folder.parent / "backup" / "notes").exists()


def test_not_a_folder(tmp_path: Path) -> None:
    """A file in place of the folder, or of the folder around it, is refused."""
    path = tmp_path / "notes"
    path.write_text("These are notes.")
    with pytest.raises(StoreError, match=r"notes cannot be opened: Not a directory \(.*/notes\)\. Name a folder"):
        opened(path)
    with pytest.raises(StoreError, match=r"notes/store cannot be opened: there is no folder .*/notes"):
        opened(path / "store")
    assert path.read_text() == "These are notes."


@contextmanager
def without_rights() -> Iterator[None]:
    """The process may do what any user may, also if it is the administrator's."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


def test_read_only(stored: tuple[Path, Shown]) -> None:
    """A folder in which the user may not write is refused."""
    message = r"cannot be opened: Permission denied \(.*\)\. Give this user the right to read and write it"
    with tempfile.TemporaryDirectory(dir="/tmp") as temporary:
        Path(temporary).chmod(0o755)
        folder = Path(shutil.copytree(stored[0], Path(temporary) / "store"))
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        with without_rights():
            check_refused(folder, message, StoreError)
            with pytest.raises(StoreError, match=message):
                opened(folder / "new")
        folder.chmod(0o755)


def test_folder_that_disappears(folder: Path) -> None:
    """A host whose folder is gone, or is an empty one, refuses steps, makes no other store, and goes on once the folder
    is back.
    """
    away = folder.parent / "away"
    with closing(opened(folder)) as host:
        folder.rename(away)
        for _ in range(2):
            with pytest.raises(StoreError, match=r"store\.json"):
                [*feed_rest(host)]
        folder.mkdir()
        with pytest.raises(StoreError, match=r"store\.json was removed while a host had the store open: put"):
            [*feed_rest(host)]
        assert not [*folder.iterdir()]
        folder.rmdir()
        away.rename(folder)
        for _ in feed_rest(host):
            pass
        assert host.sql("SELECT match_id FROM matches_pairs ORDER BY match_id").column(0).to_pylist() == expected()
