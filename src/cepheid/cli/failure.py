"""Failures of commands: one exit code for each reaction of a caller, and messages instead of tracebacks."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import IntEnum
from functools import partial
from importlib.util import find_spec
from typing import Any

import typer

from cepheid.errors import (
    ConditionError,
    EventError,
    KnowledgeError,
    LimitExceeded,
    PatternError,
    Problem,
    SchemaError,
    SkipError,
    SnapshotError,
    SourceError,
    StoreError,
    line_and_column,
)
from cepheid.hosts.spark.java import JavaMissing


class ExitCode(IntEnum):
    """What the exit code of `cepheid` means."""

    OK = 0
    PROBLEMS = 1
    USAGE = 2
    FILES = 3
    UNAVAILABLE = 4


EXIT_CODES = (
    "Exit codes: 0 done; 1 the pattern, the knowledge or the events have problems; 2 the command line is wrong; 3 a "
    "file or a store cannot be read or written; 4 something is missing or failed on this machine (Spark, Java, a fault "
    "of Cepheid)."
)


_PYTHON = re.compile(
    r"""\A(key|time|event_id|changes|sequence|columns|measures|outputs|nulls|as_of|time_zone|lateness
        |time_resolution|time_format
        |trace|standbys|promote|since|old|keep|to|after|secret|timeout|attempts|pause|allow|retain)(?=
        :\ |\ needs\ )                                                                # the argument that is wrong
    | (?<=\ with\ )(time|nulls|on_limit)=(?:…|["'](drop)["'])                          # advice to pass an argument
    | (?<=\ for\ one\ key\ \()(max_partial_matches|max_matches_per_event)(?=\))       # the limit that was exceeded
    """,
    re.VERBOSE,
)
"""Arguments in our messages, recognized by the words around them: SQL and events that a message quotes may contain the
same names.
"""


_ADVICE = {
    ", as in time=('start', 'end')": " by --start and --end",
    ": name the column of ids with event_id=…": ": name the column of ids with --event-id",
    "limits: intervals have no max_partial_matches": "--max-partial-matches: intervals have no such limit",
    "give a value for each, as in trace({'column': value})": "repeat the option for each, as in --trace column=value",
    ", which counts them in the report": ", which counts them",
    "leave them out with bad_rows='skip'": "leave them out with --bad-rows skip",
    ". Files end in .ttl, .nt, .rdf, .owl, or give format=": ": files end in .ttl, .nt, .rdf or .owl",
    ": old='drain' or old='drop'": ": --old drain or --old drop",
    "open or run it with allow ": "run it with --allow ",
    "with secret='env:NAME'": "by --secret env:NAME",
    ", or give sequence=cepheid.ROW_ORDER if": ", or give --row-order if",
    "or give time_resolution='us', which": "or give --time-resolution us, which",
    "Declare it with keep=…": "Declare it with --keep",
    ". Leave out show_keys": ". Leave out --show-keys",
    "with MatchesOf as input": "with --matches-of",
    "Say which it is: .taxonomy('kind').": "Name it by --type, or in the taxonomy of the file.",
}
"""Advice in messages → the advice for the command line."""


class FileProblem(Exception):
    """A file cannot be read or written as requested; the message names it and says what to do."""


class Unavailable(Exception):
    """Something that the command needs is missing on this machine; the message says how to get it."""


@contextmanager
def failures_reported(*, as_json: bool, as_typed: Callable[[str], str] = str) -> Iterator[None]:
    """Turns errors that users can fix into messages and an exit code. Other errors are not caught. `as_typed` puts the
    options that the user typed into messages about arguments.
    """
    failed = partial(_fail, as_json=as_json, as_typed=as_typed)
    try:
        yield
        sys.stdout.flush()
    except PatternError as error:
        failed(error.problems, ExitCode.PROBLEMS)
    except SchemaError as error:
        failed([Problem(fault) for fault in str(error).splitlines()], ExitCode.PROBLEMS)
    except (EventError, ConditionError, SkipError, LimitExceeded, KnowledgeError) as error:
        failed([Problem(str(error))], ExitCode.PROBLEMS)
    except (FileProblem, StoreError, SourceError, SnapshotError) as error:
        failed([Problem(str(error))], ExitCode.FILES)
    except BrokenPipeError:
        # The reader has closed the pipe (`cepheid detect … | head`); Python must not flush into it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(ExitCode.OK) from None
    except OSError as error:
        if error.filename is None:
            raise
        failed([Problem(f"{error.filename}: {(error.strerror or 'failed').lower()}")], ExitCode.FILES)
    except (Unavailable, JavaMissing) as error:
        failed([Problem(str(error))], ExitCode.UNAVAILABLE)


def require_installed(what: str, *packages: str, extra: str) -> None:
    """Raises Unavailable if packages of an extra are missing; the message has the command that installs them."""
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise Unavailable(
            f"{what} needs {', '.join(missing)}, which {verb} not installed: pip install 'cepheid[{extra}]'"
        )


def print_json(result: dict[str, Any]) -> None:
    """Prints the one JSON object that `--json` promises on standard output."""
    sys.stdout.write(json.dumps(result, ensure_ascii=False) + "\n")


_CALLS = re.compile(r"\b(within|within_previous|max_gap|until|next|consecutive|longest|taxonomy)\(…?\)")
"""Calls of the fluent interface whose keys in a pattern file have the same name."""


_ROW = re.compile(
    r"""
    row[ ]([\d,]*\d)
    (
        (?:
            [ ]\(
            (?:
                '(?:[^'\\]|\\.)*'
                |"(?:[^"\\]|\\.)*"
                |[^()'"]*
            )
            \)
        )?
    )
    """,
    re.VERBOSE,
)
"""A row of a table, and the id that it may have in brackets: a text in quotes, or a number. It is one of a file here:
readers count those from 1.
"""
_ROWS = re.compile(rf"({_ROW.pattern}(?:,[ ]{_ROW.pattern})*(?:,[ ]…)?),[ ]counted[ ]from[ ]0", re.VERBOSE)


def in_options(message: str) -> str:
    """The message, with the names of Python's arguments replaced by options of the command line, and calls by the keys
    of pattern files. Rows are counted from 1.
    """
    message = _ROWS.sub(lambda rows: _ROW.sub(_from_one, rows[1]), _CALLS.sub(r"\1", message))
    for in_python, in_a_shell in _ADVICE.items():
        message = message.replace(in_python, in_a_shell)
    return _PYTHON.sub(_option, message)


def _from_one(row: re.Match[str]) -> str:
    return f"row {int(row[1].replace(',', '')) + 1:,}{row[2]}"


def _option(argument: re.Match[str]) -> str:
    faulty, advised, value, passed = argument.groups()
    option = f"--{faulty or advised or passed}".replace("_", "-").replace("measures", "measure")
    return f"{option} {value}" if value else option


def problem_as_json(problem: Problem) -> dict[str, Any]:
    """A problem as JSON: message, where, line and column (from 1), hint; a missing one is null."""
    place = (
        line_and_column(problem.text, problem.span[0]) if problem.text is not None and problem.span else (None, None)
    )
    return {
        "message": problem.message,
        "where": problem.where,
        "line": place[0],
        "column": place[1],
        "hint": problem.hint,
    }


def _fail(problems: Sequence[Problem], code: ExitCode, *, as_json: bool, as_typed: Callable[[str], str]) -> None:
    if code is ExitCode.PROBLEMS:  # messages with other codes name options already
        problems = [
            replace(
                problem,
                message=in_options(as_typed(problem.message)),
                hint=problem.hint and in_options(problem.hint),
            )
            for problem in problems
        ]
    if as_json:
        print_json(
            {"ok": False, "exit_code": int(code), "problems": [problem_as_json(problem) for problem in problems]}
        )
    else:
        for problem in problems:
            sys.stderr.write(f"{problem}\n")
    raise typer.Exit(code)
