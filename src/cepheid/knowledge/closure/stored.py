"""Closures of large knowledge, stored on the machine: the same facts are closed once.

Brick, with 60,000 facts, is closed in 3 seconds and read back in a tenth of that (docs/performance.md). The name of a
file has the fingerprint of the knowledge and a digest of the sources that define what follows, so that nothing is ever
read that another version of the rules has found. A damaged file is written anew.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np

from cepheid.knowledge.caches import cache_folder
from cepheid.knowledge.closure.closure import Closure
from cepheid.knowledge.packing import read_facts, write_facts
from cepheid.knowledge.terms import Triple, text_of

LARGE = 5_000
"""From how many facts on closures are stored: fewer are closed in a quarter of a second, which is hardly slower than to
look for a file, read it and keep it up to date.
"""
MOST_FILES = 20
"""How many closures the folder has; the one that was not read for longest goes first."""
_SOURCES = ("closure.py", "facts.py", "limits.py", "lists.py", "rules.py", "stored.py", "../packing.py", "../terms.py")


def closure_of(facts: Sequence[Triple], fingerprint: Callable[[], str]) -> Closure:
    """The closure of the facts. If they are many, it is read from the user's cache folder, or written there.

    Args:
        facts: What is stated.
        fingerprint: A digest of the facts, called if they are many.
    """
    folder = cache_folder("knowledge") if len(facts) >= LARGE else None
    if folder is None:
        return _closed(facts)
    file = folder / f"{fingerprint()}-{_version()}.npz"
    found = _read(file, facts)
    if found is not None:
        return found
    with _alone(folder):
        found = _read(file, facts)  # another process may have written it in the meantime
        if found is None:
            found = _closed(facts)
            if found.contradiction is None:
                _write(file, found)
        return found


def _closed(facts: Sequence[Triple]) -> Closure:
    closure = Closure()
    closure.add(facts)
    return closure


@cache
def _version() -> str:
    """A digest of the sources that define what follows and how it is stored."""
    folder = Path(__file__).parent
    return sha256(b"\n".join((folder / name).read_bytes() for name in _SOURCES)).hexdigest()[:16]


def _read(file: Path, facts: Sequence[Triple]) -> Closure | None:
    """The closure in the file; None if there is no file or it is damaged."""
    try:
        with file.open("rb") as stored:
            texts, closed = read_facts(stored)
        closure = Closure()
        numbers = np.array(closure.terms.numbers(texts))
        closure.take_over(facts, zip(*numbers[closed].T.tolist(), strict=True))
        os.utime(file)
    except Exception:  # noqa: BLE001 - a damaged file may raise anything
        return None
    return closure


def _write(file: Path, closure: Closure) -> None:
    """Writes the closure into another file, which then takes the place of this one: so no process reads half of it."""
    texts = [text_of(closure.terms.term(number)) for number in range(len(closure.terms))]
    facts = np.array([*closure.facts], np.int32).reshape(-1, 3)
    with suppress(OSError), NamedTemporaryFile(dir=file.parent, suffix=".part", delete=False) as part:
        try:
            write_facts(part, texts, facts)
            part.close()
            Path(part.name).replace(file)
            _remove_old(file.parent)
        except BaseException:
            Path(part.name).unlink(missing_ok=True)
            raise


def _remove_old(folder: Path) -> None:
    """Removes the files that are too many, and what processes that were killed have left. Called under the lock."""
    for part in folder.glob("*.part"):
        part.unlink(missing_ok=True)
    files = sorted(folder.glob("*.npz"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files[MOST_FILES:]:
        file.unlink(missing_ok=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Holds a lock, so that of several processes, such as Spark's workers, one closes and the others read. The system
    frees it when a process ends.
    """
    with ExitStack() as stack:
        with suppress(OSError):  # on a full disk, or a file system without locks, each process closes
            lock = stack.enter_context((folder / "lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
