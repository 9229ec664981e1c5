"""Shows rows of a host as other commands show matches, and says what a command has done."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cepheid.cli.failure import print_json

if TYPE_CHECKING:
    import pyarrow as pa


def show(
    rows: pa.Table, output: Path | None, *, as_json: bool, if_none: str = "", in_json: Collection[str] = ()
) -> None:
    """Prints a table on a terminal and JSON lines into a pipe, or one JSON object; or writes a file. `if_none` is said
    to people if there are no rows. Columns `in_json` may have nested values as JSON text.

    Raises:
        FileProblem: the file cannot be written, or its extension is not known.
    """
    from rich.console import Console

    from cepheid.cli.files import check_output, write_matches
    from cepheid.cli.rows import plain_rows, print_table, write_json_lines

    if output is not None:
        check_output(output, [])
        write_matches(rows, output)
    if as_json:
        shown = {"output": str(output)} if output else {"rows": list(plain_rows(rows, in_json))}
        print_json({"ok": True, "exit_code": 0, **shown})
    elif output is not None:
        return
    elif if_none and not rows.num_rows:
        sys.stderr.write(f"{if_none}\n")
    elif sys.stdout.isatty():
        print_table(rows, Console())
    else:
        write_json_lines(rows, sys.stdout, in_json)


def say(result: dict[str, Any], text: str, *, as_json: bool) -> None:
    """Prints what a command has done."""
    if as_json:
        print_json({"ok": True, "exit_code": 0, **result})
    else:
        sys.stdout.write(f"{text}\n")
