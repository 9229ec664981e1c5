"""A host as commands: in its own process, changed and read by others while it runs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Done
from typer.testing import CliRunner

from cepheid.cli.app import app
from cepheid.hosts.durable.remote.client import connect

PATTERN = {
    "name": "pairs",
    "stages": [{"begin": "a", "where": "what = 'a'"}, {"followed_by": "b", "where": "what = 'b'"}],
}
ROWS = "id,at,user,what\n"


def cepheid(*arguments: str) -> Done:
    """What a command gives, within this process, which saves the second that a process takes to start. Only `run` is a
    process of its own, as it takes over the signals.
    """
    if arguments[0] == "run":
        command = [sys.executable, "-m", "cepheid", "host", *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        return Done(ended.returncode, ended.stdout, ended.stderr)
    result = CliRunner().invoke(app, ["host", *arguments], prog_name="cepheid", catch_exceptions=False)
    return Done(result.exit_code, result.stdout, result.stderr)


def said(*arguments: str) -> str:
    done = cepheid(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(params=["file", "sqlite", "duckdb"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"{request.param}:///{tmp_path}/alerts"


@pytest.fixture
def pattern(tmp_path: Path) -> str:
    path = tmp_path / "pairs.json"
    path.write_text(json.dumps(PATTERN))
    return str(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "events"
    path.mkdir()
    (path / "1.csv").write_text(ROWS + "1,2024-03-04T10:00:00Z,u,a\n")
    return path


def declare(store: str) -> None:
    schema = "id BIGINT, at TIMESTAMP, user STRING, what STRING"
    said("input", store, "events", "--schema", schema, "--time", "at", "--sequence", "id")


SCHEMA = ("--schema", "id BIGINT, user STRING, what STRING")


@pytest.fixture(scope="module")
def arriving(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with the input `events`, whose times are those of arrival, advanced to noon of 2026-03-02."""
    store = f"sqlite:///{tmp_path_factory.mktemp('arriving')}/alerts.db"
    assert said("input", store, "events", *SCHEMA, "--arrival", "--sequence", "id") == "input events\n"
    assert said("advance", store, "2026-03-02T12:00:00Z") == "time is 2026-03-02T12:00:00Z\n"
    return store


def test_a_pattern_on_times_of_arrival(arriving: str, pattern: str) -> None:
    """`--arrival` is in place of `--time`: a pattern runs on such an input."""
    said("deploy", arriving, pattern, "--input", "events", "--key", "user")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("advance", "2026-03-02T11:00:00Z"), 1, "TIME: it cannot go back to 2026-03-02 11:00:00+00:00: events"),
        (("input", "e", *SCHEMA, "--arrival", "--lateness", "1 second"), 1, "--lateness: with --arrival no event"),
        (("input", "e", *SCHEMA, "--time", "user"), 1, "or DATE: give it such a type, in --schema or in the file"),
        (
            ("input", "events", "--schema", f"{SCHEMA[1]}, at TIMESTAMP", "--time", "at", "--sequence", "id"),
            1,
            "'what' string, 'at' timestamp[us, tz=UTC]; time of arrival, not 'at'. Only nulls and keep may change",
        ),
        (("input", "e", *SCHEMA), 2, "--time: name the column of the event time, or give --arrival"),
        (("input", "e", *SCHEMA, "--time", "id", "--arrival"), 2, "--time: name the column of the event time, or"),
        (
            ("input", "e", "--schema", "arrived_at TIMESTAMP", "--arrival"),
            1,
            (
                "--arrival: the column 'arrived_at' will have the times of arrival, but the events have such a column: "
                "rename it, or name it as their time by --time arrived_at\n"
            ),
        ),
    ],
)
def test_messages_about_times_of_arrival_name_options(
    arriving: str, arguments: tuple[str, ...], code: int, message: str
) -> None:
    """Time does not go back, and what does not fit `--arrival` is refused with the options."""
    command, *rest = arguments
    done = cepheid(command, arriving, *rest)
    shown = f"{' '.join(done.stderr.replace('│', ' ').split())}\n"
    assert (done.returncode, message in shown) == (code, True), done


@contextmanager
def started(store: str, *options: str) -> Iterator[None]:
    """A host without sources that answers within the block."""
    process = subprocess.Popen([sys.executable, "-m", "cepheid", "host", "run", store, *options])
    try:
        wait_for(process, store)
        yield
    finally:
        process.terminate()
        assert process.wait(60) == 0


@contextmanager
def running(store: str, folder: Path, end: signal.Signals, *options: str) -> Iterator[None]:
    """A host that answers within the block, and gets the signal after it."""
    command = [sys.executable, "-m", "cepheid", "host", "run", store, "--from", f"files://{folder}", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(process, store)
        yield
        process.send_signal(end)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == (0 if end == signal.SIGTERM else -end), errors
    finally:
        process.kill()
        process.wait()


def wait_for(process: subprocess.Popen[Any], store: str) -> None:
    """Waits until the process answers as the host of the store."""
    end = time.monotonic() + 60
    while (host := connect(store)) is None:
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.1)
    host.close()


def until(query: str, expected: str, store: str) -> None:
    """Asks until the answer has the text."""
    end = time.monotonic() + 60
    while expected not in (answer := cepheid("sql", store, query)).stdout:
        assert time.monotonic() < end, answer
        time.sleep(0.1)


def test_no_store() -> None:
    """A scheme that no store has is no folder, and a folder that is named as a database is hardly meant."""
    for url, begins in (("mysql:///alerts", "mysql"), ("s3://bucket/alerts", "s3")):
        done = cepheid("patterns", url)
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr.endswith(f"postgresql://; this one begins with {begins!r}\n")
    for path, store in (("alerts.db", "sqlite:///alerts.db"), ("/a/b.duckdb", "duckdb:////a/b.duckdb")):
        done = cepheid("patterns", path)
        assert (done.returncode, done.stderr) == (
            3,
            f"{path} would be a folder of files: write {store} for a database\n",
        )


def test_null_key(store: str, pattern: str, folder: Path) -> None:
    """An event without a key ends the run, with the command that has the option for it."""
    declare(store)
    said("deploy", store, pattern, "--input", "events", "--key", "user")
    (folder / "2.csv").write_text(ROWS + "2,2024-03-04T10:01:00Z,,b\n")
    done = cepheid("run", store, "--from", f"files://{folder}", "--once")
    assert done.returncode == 1
    assert "2.csv: events that cannot be ordered: 1 with a NULL in the key (user) in row 1." in done.stderr
    assert "or repeat `cepheid host input` with --nulls drop, which counts them" in done.stderr


def test_rate_of_other_columns(store: str) -> None:
    """The source of generated events says in SQL which columns it makes and which the input has."""
    declare(store)
    done = cepheid("run", store, "--from", "rate://1")
    has = "the input has id BIGINT, at TIMESTAMP, user STRING, what STRING"
    assert done.stderr == f"rate:// makes events with timestamp TIMESTAMP, value BIGINT; {has}\n"


def test_once(store: str, pattern: str, folder: Path) -> None:
    """Declared, deployed, fed from files, and read: each by a command of its own."""
    declare(store)
    said("deploy", store, pattern, "--input", "events", "--key", "user")
    said("run", store, "--from", f"files://{folder}", "--once")
    assert "waiting" in said("open", store, "pairs")
    late = "3,2024-03-04T10:00:30Z,u,b\n"
    (folder / "2.csv").write_text(f"{ROWS}2,2024-03-04T10:01:00Z,u,b\n")
    (folder / "3.csv").write_text(ROWS + late)
    done = cepheid("run", store, "--from", f"files://{folder}", "--once")
    assert (done.returncode, done.stderr) == (0, "late events that pattern 'pairs' has not taken: 1\n")
    assert "match_id" in said("matches", store, "pairs")
    assert "running" in said("patterns", store)


def test_while_it_runs(store: str, pattern: str, folder: Path) -> None:
    """Another process deploys, reads and retires while the host runs; killed, it goes on where it stopped."""
    declare(store)
    with running(store, folder, signal.SIGKILL):
        until("SELECT events FROM inputs", "1", store)
        said("deploy", store, pattern, "--input", "events", "--key", "user")
        (folder / "2.csv").write_text(ROWS + "2,2024-03-04T10:01:00Z,u,a\n")
        until("SELECT stage FROM open_pairs", "a", store)
    (folder / "3.csv").write_text(ROWS + "3,2024-03-04T10:02:00Z,u,b\n")
    with running(store, folder, signal.SIGTERM):
        until("SELECT count(*) AS n FROM matches_pairs", "1", store)
        said("retire", store, "pairs", "--how", "drop")
        until("SELECT status FROM patterns", "retired", store)


def test_backup(store: str, folder: Path, tmp_path: Path) -> None:
    """A running host is copied, and the copy becomes a store; nothing is overwritten."""
    declare(store)
    copy = f"{store}-copy"
    with running(store, folder, signal.SIGTERM):
        until("SELECT events FROM inputs", "1", store)
        said("backup", store, str(tmp_path / "backup"))
        again = cepheid("backup", store, str(tmp_path / "backup"))
        assert "is there already" in again.stderr
    said("restore", str(tmp_path / "backup"), copy)
    assert '"events": 1' in said("sql", copy, "SELECT events FROM inputs")
    assert "already" in cepheid("restore", str(tmp_path / "backup"), copy).stderr
