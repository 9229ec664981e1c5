"""The documentation: its code runs and gives the shown output, its links are valid, and all public names are
documented.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer
from scripts.build_docs import GENERATED, filled
from tests.docs.page import PAGES, ROOT, blocks_of, run_page

import cepheid
from cepheid.cli.app import app
from cepheid.lang.documents import pattern_schema
from cepheid.lang.stages.pattern import SkipTo
from cepheid.matchers.counts import MatcherCounts
from cepheid.testing import assert_matches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
ON_KAFKA = [name for name in NAMES if any("kafka" in block.words for block in blocks_of(ROOT / name))]
ON_SPARK = [name for name in NAMES if any("spark" in block.words for block in blocks_of(ROOT / name))]
WITH_SPARK = "CI" in os.environ
KINDS = {"python", "text", "console", "yaml", "json", "sh", "mermaid", "sql"}
REFERENCE = "".join(page.read_text("utf-8") for page in sorted((ROOT / "docs" / "reference").glob("*.md")))


@pytest.mark.parametrize("name", [name for name in NAMES if not (WITH_SPARK and name in ON_SPARK)])
def test_a_page_runs(name: str, tmp_path: Path) -> None:
    """Each block runs, and its output is the one on the page. In CI pages with blocks for Spark run with these only;
    `make quick` runs them without.
    """
    run_page(ROOT / name, tmp_path)


@pytest.mark.spark
@pytest.mark.parametrize("name", sorted({*ON_SPARK} - {*ON_KAFKA}))
def test_a_page_runs_on_spark(name: str, tmp_path: Path, spark: SparkSession) -> None:
    """Pages with blocks for Spark also run these."""
    run_page(ROOT / name, tmp_path, spark=spark)


@pytest.mark.spark
@pytest.mark.parametrize("name", ON_KAFKA)
def test_a_page_runs_on_kafka(name: str, tmp_path: Path, spark: SparkSession, broker: str) -> None:
    """Pages with blocks for Kafka run with a real broker."""
    run_page(ROOT / name, tmp_path, spark=spark, broker=broker)


@pytest.mark.parametrize("name", NAMES)
def test_blocks_say_what_they_are(name: str) -> None:
    """Every block has a kind that is checked; others would become outdated unnoticed."""
    assert {block.kind for block in blocks_of(ROOT / name)} <= KINDS


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    """Each link to a file of the repository refers to an existing file and, after '#', to one of its headings."""
    assert not list(broken_links(ROOT / name))


@pytest.mark.parametrize("part", [part for part in GENERATED if part != "demo"])
def test_generated_parts_are_fresh(part: str) -> None:
    """`make docs` would change nothing."""
    pages = [page for page in PAGES if f"<!-- generated: {part} -->" in page.read_text("utf-8")]
    assert pages, f"no page has the generated part {part!r}"
    for page in pages:
        assert filled(page.read_text("utf-8"), [part]) == page.read_text("utf-8"), f"{page}: run make docs"


@pytest.mark.parametrize("name", cepheid.__all__)
def test_public_names_are_documented(name: str) -> None:
    """Each public name of the package is in the reference."""
    assert re.search(rf"`{name}\b", REFERENCE), name


@pytest.mark.parametrize("name", [name for name, _ in inspect.getmembers(cepheid.Pattern, callable) if name[0] != "_"])
def test_pattern_calls_are_documented(name: str) -> None:
    """Each call of the fluent interface is in its reference, with the name of each argument."""
    page = (ROOT / "docs" / "reference" / "pattern.md").read_text("utf-8")
    heading = re.search(rf"^#+ .*`(?:Pattern)?\.?{name}\((.*)\)`", page, re.MULTILINE)
    assert heading, name
    missing = set(inspect.signature(getattr(cepheid.Pattern, name)).parameters) - {"self"}
    assert not {parameter for parameter in missing if parameter not in heading[1]}, heading[0]


@pytest.mark.parametrize("name", [name for name, _ in inspect.getmembers(cepheid.Pattern, callable) if name[0] != "_"])
def test_pattern_calls_are_mapped_from_flinkcep(name: str) -> None:
    """The table lists FlinkCEP's call for each call, except for those that FlinkCEP does not have."""
    page = (ROOT / "docs" / "how_to" / "coming_from_flinkcep.md").read_text("utf-8")
    mapped = "".join(re.findall(r"^\|.*", page, re.MULTILINE))
    assert f"{name}(" in mapped or name in ("longest", "named", "max_gap", "begin_without"), name


@pytest.mark.parametrize("name", ["reference/pattern.md", "how_to/coming_from_flinkcep.md"])
def test_strategies_are_documented(name: str) -> None:
    """Each skip strategy is in the reference of patterns, and mapped from FlinkCEP's."""
    page = (ROOT / "docs" / name).read_text("utf-8")
    assert all(f"Skip.{strategy.value}(" in page for strategy in SkipTo)


def test_keys_of_pattern_files_are_documented() -> None:
    """Each key of a stage and of a pattern has its row."""
    page = (ROOT / "docs" / "reference" / "pattern_files.md").read_text("utf-8")
    rows = "".join(row.split("|")[1] for row in re.findall(r"^\|.*", page, re.MULTILINE))
    schema = pattern_schema()
    assert {*schema["properties"], *schema["$defs"]["stage"]["properties"]} <= set(re.findall(r"`(\w+)`", rows))


def test_arguments_of_detect_are_documented() -> None:
    """Each argument of detect has its row."""
    page = (ROOT / "docs" / "reference" / "detect.md").read_text("utf-8")
    assert all(f"| `{name}` |" in page for name in inspect.signature(cepheid.detect).parameters)


def test_arguments_of_the_assertion_are_documented() -> None:
    """Each argument of assert_matches has its row."""
    page = (ROOT / "docs" / "how_to" / "test_a_pattern.md").read_text("utf-8")
    assert all(f"| `{name}` |" in page for name in inspect.signature(assert_matches).parameters)


def test_arguments_of_a_matcher_are_documented() -> None:
    """Each argument, each method and each count of a matcher is on its page."""
    page = (ROOT / "docs" / "reference" / "matcher.md").read_text("utf-8")
    arguments = "".join(row.split("|")[1] for row in re.findall(r"^\|.*", page, re.MULTILINE))
    assert all(f"`{name}`" in arguments for name in inspect.signature(cepheid.Matcher).parameters)
    assert all(f"`{name}" in page for name, _ in inspect.getmembers(cepheid.Matcher) if name[0] != "_")
    new = {*MatcherCounts.__dataclass_fields__} - {*cepheid.EventCounts.__dataclass_fields__}
    assert all(f"`{name}`" in arguments for name in new)


def test_counts_are_documented() -> None:
    """Each count of a report has its row."""
    page = (ROOT / "docs" / "reference" / "detect.md").read_text("utf-8")
    assert all(f"| `{name}` |" in page for name in cepheid.EventCounts.__dataclass_fields__)


@pytest.mark.parametrize("command", sorted(typer.main.get_command(app).commands))  # type: ignore[attr-defined]
def test_commands_have_an_example(command: str) -> None:
    """Each command is used in an example on some page."""
    assert any(
        f"cepheid {command}" in block.text or f"make {command}" in block.text
        for page in PAGES
        for block in blocks_of(page)
    )


def broken_links(page: Path) -> Iterator[str]:
    prose = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if target.startswith(("https://", "http://")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors_of(file)):
            yield target


def anchors_of(page: Path) -> set[str]:
    """The anchors that GitHub makes for headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
