"""The errors of a disk, with what to do about them."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cepheid.errors import StoreError

_NO_RIGHT = "Give this user the right to read and write it"
_NO_ROOM = "Make room on the disk, then repeat the step"
_ADVICE = {
    errno.EACCES: _NO_RIGHT,
    errno.EPERM: _NO_RIGHT,
    errno.EROFS: _NO_RIGHT,
    errno.ENOSPC: _NO_ROOM,
    errno.EDQUOT: _NO_ROOM,
    errno.EFBIG: _NO_ROOM,
    errno.ENOENT: "Put it back, or name another place",
    errno.ENOTDIR: "Name a folder",
}


def refused(what: str, error: OSError, path: Path | None = None) -> StoreError:
    """The error for what the disk refuses, as in `refused("the store s cannot be opened", error)`. `path`: the file
    concerned, if the error does not name it.
    """
    named = error.filename or path
    where = "" if named is None else f" ({named})"
    advice = _ADVICE.get(error.errno or 0, "Check the disk, then repeat the step")
    return StoreError(f"{what}: {error.strerror or error}{where}. {advice}")


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Raises StoreError for what the disk refuses within the block."""
    try:
        yield
    except OSError as error:
        raise refused(what, error) from error
