"""A page of the documentation as fenced blocks, and how each block is run.

The words after the three backticks say how a block is run:

    python          run; all blocks of a page share their names, in order
    python spark    the same, only with a Spark session (the name `spark`)
    python kafka    the same, only with a Kafka broker (the name `broker`)
    python sqlite   the same, only where the page's own stores are used
    python raises   the same, and it must raise an exception: its class and message are the output
    text            directly after a python block: what that block printed
    console         lines that begin with `$ ` are commands of the command line, the others are their output
    console spark   the same, only with Spark; commands that start Spark run in a process of their own, and only
                    their standard output is shown
    yaml            a pattern; `yaml late.yaml` also writes it to that file
    json            parsed as JSON
    sh              for the reader's own machine: only the names in it are checked

Blocks run in a temporary folder, with warnings as errors.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from cepheid import pattern_from_text
from cepheid.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_SQLITE = re.compile(r"sqlite:///[\w.]+")
_SECONDS = re.compile(r"\d+\.\d+ s\b")


@dataclass(frozen=True)
class Block:
    """A fenced block: its kind, the words after the kind, its text and the number of its first line."""

    kind: str
    words: tuple[str, ...]
    text: str
    line: int
    output: str | None = None
    """The text block directly after it."""


def blocks_of(page: Path) -> list[Block]:
    """The blocks in order; a text block that is the output of the previous block is stored there."""
    content = page.read_text("utf-8")
    blocks: list[Block] = []
    end = 0
    for fence in _FENCE.finditer(content):
        kind, *words = fence["info"].split() or ["text"]
        directly = blocks and not content[end : fence.start()].strip()
        end = fence.end()
        if kind == "text" and directly and blocks[-1].kind == "python" and blocks[-1].output is None:
            before = blocks[-1]
            blocks[-1] = Block(before.kind, before.words, before.text, before.line, fence["text"])
        else:
            line = content.count("\n", 0, fence.start()) + 2
            blocks.append(Block(kind, tuple(words), fence["text"], line))
    return blocks


def run_page(
    page: Path, folder: Path, *, spark: Any = None, broker: str | None = None, store: str | None = None
) -> dict[str, Any]:
    """Runs the blocks of a page in `folder` and returns the names that they define. `store` is the URL of a store in
    place of the page's SQLite database.

    Raises:
        AssertionError: the output of a block differs from the page.
    """
    given = {name: value for name, value in (("spark", spark), ("broker", broker)) if value is not None}
    lacking = {"spark": spark is None, "kafka": broker is None, "sqlite": store is not None}
    names: dict[str, Any] = {"__name__": "page", **given}
    with contextlib.chdir(folder):
        for block in blocks_of(page):
            where = f"{page.relative_to(ROOT)}, line {block.line}"
            if any(lacking.get(word) for word in block.words):
                continue
            given_store = block if store is None else replace(block, text=_SQLITE.sub(store, block.text))
            if (run := _RUNNERS.get(block.kind)) is not None:
                run(given_store, names, where)
    return names


def _python(block: Block, names: dict[str, Any], where: str) -> None:
    # Use the line numbers of the page, so that a traceback shows the position in it.
    tree = ast.increment_lineno(ast.parse(block.text), block.line - 1)
    printed = io.StringIO()
    raised = None
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            exec(compile(tree, where, "exec"), names)  # noqa: S102 our own pages
        except Exception as error:
            if "raises" not in block.words:
                raise
            raised = error
    if "raises" in block.words:
        assert raised is not None, f"{where}: nothing was raised"
        printed.write(f"{type(raised).__name__}: {raised}\n")
    assert block.output is not None or not printed.getvalue(), (
        f"{where}: prints, but shows nothing:\n{printed.getvalue()}"
    )
    if block.output is not None:
        assert _plain(printed.getvalue()) == _plain(block.output), where


def _console(block: Block, _: dict[str, Any], where: str) -> None:
    exit_code = 0
    for command, expected in _commands(block.text):
        arguments = shlex.split(command.replace("\\\n", " "), comments=True)
        match arguments:
            case ["cepheid", "stream", *rest]:
                stream = [sys.executable, "-m", "cepheid", "stream", *rest]
                done = subprocess.run(stream, capture_output=True, text=True, timeout=300, check=False)
                exit_code, printed = done.returncode, done.stdout
            case ["cepheid", *rest]:
                answer = CliRunner().invoke(app, rest, prog_name="cepheid", catch_exceptions=False)
                exit_code, printed = answer.exit_code, answer.output
            case ["echo", "$?"]:
                printed = f"{exit_code}\n"
            case ["cat", name]:
                printed = Path(name).read_text("utf-8")
            case _:
                raise AssertionError(f"{where}: `console` blocks run cepheid, cat and echo $?, not {command!r}")
        assert _plain(printed) == _plain(expected), f"{where}: {command}"


def _commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command, with its continuation lines, and the text up to the next command."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command = re.match(r"(?:.*\\\n)*.*\n", part)
        assert command is not None
        yield command[0], part[command.end() :]


def _yaml(block: Block, _: dict[str, Any], where: str) -> None:
    pattern_from_text(block.text, source=where)
    for name in block.words:
        Path(name).write_text(block.text, "utf-8")


def _json(block: Block, _: dict[str, Any], where: str) -> None:
    assert json.loads(block.text) is not None, where


def _sh(block: Block, _: dict[str, Any], where: str) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    unknown = set(re.findall(r"^make ([a-z]+)", block.text, re.MULTILINE)) - targets
    assert not unknown, f"{where}: no such target in the Makefile: {unknown}"


def _plain(text: str) -> str:
    """The text without what pages do not promise: seconds, and spaces at the ends of lines."""
    return "\n".join(line.rstrip() for line in _SECONDS.sub("… s", text).strip("\n").splitlines())


_RUNNERS: dict[str, Callable[[Block, dict[str, Any], str], None]] = {
    "python": _python,
    "console": _console,
    "yaml": _yaml,
    "json": _json,
    "sh": _sh,
}
