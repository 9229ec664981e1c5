"""A folder of pattern files: the patterns that a supervised query should have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

from cepheid.errors import PatternError, Problem
from cepheid.lang.documents import AnyPattern, located_in_document, pattern_from_text, pattern_to_document
from cepheid.lang.parameters import GivenValue

Content: TypeAlias = Mapping[Path, bytes]
"""What the files of the folder contain."""

_EXTENSIONS = (".yaml", ".yml", ".json")
_BETWEEN = re.compile(r"^---(?=\s|$)", re.MULTILINE)
"""The line between two YAML documents in one file."""
_NO_FILE = "no pattern file: a stream looks for one pattern at least. Pattern files end in .yaml, .yml or .json"


class FilePattern(NamedTuple):
    """A pattern, and where it was read."""

    pattern: AnyPattern
    source: str
    text: str
    """The text of its document, at the lines that it has in its file."""


def content_of(folder: Path) -> Content:
    """What the pattern files of the folder contain. Names that begin with a dot are left out, and so are files that are
    removed meanwhile.

    Raises:
        PatternError: the folder or a file of it cannot be read.
    """
    try:
        return dict(_files(folder))
    except OSError as error:
        raise PatternError(f"{folder}: the patterns cannot be read ({error.strerror})") from error


def patterns_of(
    content: Content, folder: Path, parameters: Mapping[str, GivenValue] | None = None
) -> dict[str, FilePattern]:
    """The patterns in the files, by name. A YAML file may have several documents, with a line --- between them.
    `parameters` are given to the patterns that use them.

    Raises:
        PatternError: a file holds no valid pattern, two patterns have one name, no pattern uses a parameter, or there
            is no pattern at all; lists all problems of all files.
    """
    problems, found = list[Problem](), dict[str, FilePattern]()
    values = dict(parameters or {})
    documents = [*_documents(content, problems)]
    for source, text in documents:
        try:
            used = {name: value for name, value in values.items() if _uses(text, name)}
            pattern = pattern_from_text(text, source=source).with_parameters(**used)
            pattern_to_document(pattern)  # the ledger has it
        except PatternError as error:
            problems += error.problems
            continue
        if (other := found.get(pattern.name)) is not None:
            message = f"{other.source} has a pattern {pattern.name!r}, too: give one of them another name"
            problems.append(Problem(message, source))
        found.setdefault(pattern.name, FilePattern(pattern, source, text))
    if not documents and not problems:
        problems.append(Problem(_NO_FILE, str(folder)))
    unused = [name for name in values if not any(_uses(text, name) for _, text in documents)]
    problems += [Problem(f"no pattern uses the parameter ${name}", str(folder)) for name in unused]
    if problems:
        raise PatternError(problems)
    return found


def located(problems: Iterable[Problem], files: Mapping[str, FilePattern]) -> list[Problem]:
    """The problems of several patterns, each with its place in the pattern's file."""
    return [_located(problem, files) for problem in problems]


def _located(problem: Problem, files: Mapping[str, FilePattern]) -> Problem:
    for name, file in files.items():
        prefix = str(Problem("").of_pattern(name).where)
        if problem.where == prefix or (problem.where or "").startswith(f"{prefix}, "):
            own = Problem(
                problem.message,
                (problem.where or "")[len(prefix) + 2 :] or None,
                problem.text,
                problem.span,
                problem.hint,
            )
            found = located_in_document(own, file.text, source=file.source)
            return Problem(own.message, f"{file.source}, {problem.where}", hint=own.hint) if found is own else found
    return problem


def _files(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in _EXTENSIONS and not path.name.startswith("."):
            try:
                yield path, path.read_bytes()
            except FileNotFoundError:
                continue


def _documents(content: Content, problems: list[Problem]) -> Iterator[tuple[str, str]]:
    """The name of the file and the text of each document. Lines before it are empty, so that its lines keep their
    numbers.
    """
    for path, data in content.items():
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            problems.append(Problem("a pattern file must be UTF-8 text, this one is not", f"{path}, line {line}"))
            continue
        if path.suffix.lower() == ".json":
            yield str(path), text
            continue
        ends = [*(found.start() for found in _BETWEEN.finditer(text)), len(text)]
        starts = [0, *(found.end() for found in _BETWEEN.finditer(text))]
        parts = [(start, text[start:end]) for start, end in zip(starts, ends, strict=True)]
        written = [(start, part) for start, part in parts if _has_content(part)]
        for start, part in written or parts[:1]:
            yield str(path), "\n" * text.count("\n", 0, start) + part


def _has_content(text: str) -> bool:
    return any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines())


def _uses(text: str, parameter: str) -> bool:
    return re.search(rf"\${re.escape(parameter)}\b", text) is not None
