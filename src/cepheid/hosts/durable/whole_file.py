"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cepheid.errors import StoreError
from cepheid.hosts.durable.disk_errors import refused


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A new path in a folder of its own; what the block writes there is moved to `path` in the end, and is on the disk
    then.

    Raises:
        StoreError: there is something at `path` already, or it cannot be written.
    """
    if path.exists():
        raise StoreError(f"{path} is there already: remove it, or name another file")
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.absolute().parent))
    except OSError as error:
        raise refused(f"{path} cannot be written", error) from error
    try:
        yield folder / path.name
        sync(folder / path.name)
        (folder / path.name).rename(path)
        sync(path.absolute().parent)
    except OSError as error:
        raise refused(f"{path} cannot be written", error) from error
    finally:
        shutil.rmtree(folder)


def sync(path: Path) -> None:
    """Waits until the file or folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
