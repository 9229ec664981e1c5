"""The path on which Spark's workers find PySpark.

Spark puts PySpark's own archive first on it. Modules in an archive are compiled anew in each process, and each worker
reads the archive's list of files many times over. The same modules are often installed as folders, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def without_archives(path: Sequence[str]) -> list[str]:
    """The path without the archives of an installed PySpark whose modules are also found as folders on the path."""
    return [entry for entry in path if not _is_found_as_folder(Path(entry), path)]


def _is_found_as_folder(archive: Path, path: Sequence[str]) -> bool:
    """Whether it is `pyspark/python/lib/NAME-….zip` in a folder of the path that has a folder NAME, too."""
    if archive.suffix != ".zip" or archive.parent.parts[-3:] != ("pyspark", "python", "lib"):
        return False
    installed = archive.parents[3]
    return str(installed) in path and (installed / archive.stem.split("-")[0]).is_dir()
