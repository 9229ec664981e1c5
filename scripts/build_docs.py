"""Rewrites the generated parts of README.md and docs/: the text between `<!-- generated: NAME -->` and `<!-- end -->`.

A test compares each part with the output of this program. The part of the demo, which runs on Spark for half a minute,
has a test of its own.

python scripts/build_docs.py "command line"    # only these parts
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Callable, Collection
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any, get_args

import typer
from rich.console import Console
from typer.core import TyperArgument, TyperGroup, TyperOption

from cepheid.cli.app import app
from cepheid.cli.failure import EXIT_CODES
from cepheid.compile.stages.diagram import automaton_mermaid
from cepheid.demo.pattern import LATE_CHAIN
from cepheid.distribution.rates.comparison import by_message_table, rates_table
from cepheid.families import FAMILIES
from cepheid.hosts.duckdb.function_reference import function_reference
from cepheid.lang.documents import pattern_schema
from cepheid.plan.lifted import OutputName

ROOT = Path(__file__).parents[1]
WIDTH = 96
_PART = re.compile(r"(<!-- generated: (?P<name>[a-z ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(sorted(GENERATED))}; by default all")
    parts = parser.parse_args().parts or [*GENERATED]
    if unknown := {*parts} - {*GENERATED}:
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}; known are {', '.join(sorted(GENERATED))}")
    (ROOT / "docs" / "reference" / "functions.md").write_text(function_reference(), "utf-8")
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        before = page.read_text("utf-8")
        after = filled(before, parts)
        if after != before:
            page.write_text(after, "utf-8")
            print(f"{page.relative_to(ROOT)} is written anew")
    if _demo.cache_info().currsize:
        _, png = _demo()
        picture = ROOT / "docs" / "images" / "chain.png"
        picture.parent.mkdir(exist_ok=True)
        picture.write_bytes(png)


def filled(text: str, parts: Collection[str]) -> str:
    """The page, with its generated parts of these names rewritten."""

    def fill(part: re.Match[str]) -> str:
        return f"{part[1]}{GENERATED[part['name']]()}{part[3]}" if part["name"] in parts else part[0]

    return _PART.sub(fill, text)


def _command_line() -> str:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return _commands(group)


def _commands(group: TyperGroup, before: str = "") -> str:
    """The commands of a group by name, each group among them with its own commands after it."""
    return "".join(_command(f"{before}{name}", command) for name, command in sorted(group.commands.items()))


def _command(name: str, command: Any) -> str:
    if isinstance(command, TyperGroup):
        return f"## cepheid {name}\n\n{command.help}\n\n{_commands(command, f'{name} ')}"
    arguments = " ".join(
        f"{p.name.upper()}{'…' * (p.nargs < 0)}" for p in command.params if isinstance(p, TyperArgument)
    )
    rows = "".join(f"| {_called(p)} | {p.help} | {_default(p)} |\n" for p in command.params if not p.hidden)
    synopsis = f"cepheid {name} [options] {arguments}".rstrip()
    return (
        f"## cepheid {name}\n\n```text\n{synopsis}\n```\n\n{command.help.strip()}\n\n"
        f"| argument | meaning | default |\n|---|---|---|\n{rows}\n"
    )


def _called(parameter: TyperArgument | TyperOption) -> str:
    if isinstance(parameter, TyperArgument):
        return f"`{str(parameter.name).upper()}`"
    if parameter.is_flag:
        return f"`{parameter.opts[0]}`"
    if isinstance(parameter.default, str) and (values := get_args(parameter.type_descriptor.annotation)):
        return " or ".join(f"`{parameter.opts[0]} {value}`" for value in values)
    return f"`{parameter.opts[0]} {parameter.metavar or parameter.opts[0][2:].upper()}`"


def _default(parameter: TyperArgument | TyperOption) -> str:
    if parameter.required:
        return "required"
    if parameter.default in (None, False):
        return ""
    return f"`{parameter.default}`"


def _exit_codes() -> str:
    codes = re.findall(r"(\d) (.*?)(?:;|\.$)", EXIT_CODES)
    return "| code | meaning |\n|---|---|\n" + "".join(f"| {code} | {meaning} |\n" for code, meaning in codes) + "\n"


def _json_schema() -> str:
    return f"```json\n{json.dumps(pattern_schema(), indent=2, ensure_ascii=False)}\n```\n"


@cache
def _demo() -> tuple[str, bytes]:
    """The text that the demo prints, and its picture as PNG."""
    from cepheid.cli.demos.demo import run_demo

    printed = StringIO()
    with tempfile.TemporaryDirectory() as folder:
        run_demo(Path(folder) / "out", Console(file=printed, width=WIDTH))
        text = printed.getvalue().replace(folder + "/", "")
        return text, (Path(folder) / "out" / "chain.png").read_bytes()


def _demo_output() -> str:
    text = "\n".join(line.rstrip() for line in _demo()[0].splitlines())
    return f"```text\n{text}\n```\n"


def _automaton() -> str:
    return f"```mermaid\n{automaton_mermaid(LATE_CHAIN)}\n```\n"


def _demo_pattern() -> str:
    """The demo's pattern, from the file that defines it."""
    source = (ROOT / "src" / "cepheid" / "demo" / "pattern.py").read_text("utf-8")
    definition = re.search(r"^LATE_CHAIN = (\(\n.*?^\))", source, re.MULTILINE | re.DOTALL)
    assert definition is not None
    return f"```python\nfrom cepheid import Pattern, Skip, detect\n\nlate_chain = {definition[1]}\n```\n"


def _support() -> str:
    """A table of what each kind of pattern supports, made from FAMILIES."""
    lacking = dict.fromkeys(name for family in FAMILIES for name in family.lacks)
    rows = {f"`{name}`": [_reason(family.lacks.get(name)) for family in FAMILIES] for name in lacking}
    for output in get_args(OutputName):
        rows[f"`outputs`: `{output}`"] = [_yes(output in family.outputs) for family in FAMILIES]
    rows["open partial matches listed"] = [_yes(family.lists_open) for family in FAMILIES]
    titles = " | ".join(family.kind for family in FAMILIES)
    lines = "".join(f"| {name} | {' | '.join(cells)} |\n" for name, cells in rows.items())
    return f"| | {titles} |\n|{'---|' * (len(FAMILIES) + 1)}\n{lines}"


def _reason(lack: str | None) -> str:
    return "yes" if lack is None else f"no: {lack}"


def _tasks() -> str:
    """A row for each task: its question, which is the script's first line, and its lines of code."""
    rows = ["| task | lines |", "|---|---:|"]
    for script in sorted((ROOT / "tests" / "tasks" / "scripts").iterdir()):
        first, *rest = script.read_text("utf-8").splitlines()
        code = [line for line in rest if line.strip() and "tests.tasks.data" not in line]
        question = first.strip('"# ').rstrip(".")
        rows.append(f"| [{question}](../../{script.relative_to(ROOT)}) | {len(code)} |")
    return "\n".join(rows) + "\n"


def _yes(there: bool) -> str:  # noqa: FBT001
    return "yes" if there else "no"


def _rates() -> str:
    runs = _distribution()["rates"]
    return rates_table({name: {int(seed): figures for seed, figures in own.items()} for name, own in runs.items()})


def _by_message() -> str:
    return by_message_table(_distribution()["by_message"])


def _distribution() -> dict[str, Any]:
    """What `make distribution` measured."""
    stored: dict[str, Any] = json.loads((ROOT / "docs" / "data" / "distribution.json").read_text("utf-8"))
    return stored


GENERATED: dict[str, Callable[[], str]] = {
    "command line": _command_line,
    "exit codes": _exit_codes,
    "json schema": _json_schema,
    "automaton": _automaton,
    "demo pattern": _demo_pattern,
    "support": _support,
    "tasks": _tasks,
    "distribution rates": _rates,
    "distribution by message": _by_message,
    "demo": _demo_output,
}
"""The name of each part → the function that makes its text."""


if __name__ == "__main__":
    main()
