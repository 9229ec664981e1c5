"""What the processor of a stream needs in workers: in the processor if it is short, otherwise in a file.

Spark broadcasts functions of more than a megabyte. A worker on the driver asks a stream's processor which state it
has, and this worker has no broadcasts: the query would fail with BROADCAST_VARIABLE_NOT_LOADED. Files of the session
reach all executors, also those that start later. Over Spark Connect nothing is broadcast, and the workers of streams do
not find the session's files; so there all is in the processor.
"""

from __future__ import annotations

import atexit
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

_LONG = 1 << 19
"""More bytes go as a file. It is half of what Spark takes, because names and schemas are in the function, too."""


class Sent(NamedTuple):
    """Bytes for workers."""

    content: bytes | None
    file: str = ""
    """The name of the file that has them, if they are not here."""

    def read(self) -> bytes:
        """The bytes, in a worker."""
        if self.content is not None:
            return self.content
        from pyspark.core.files import SparkFiles

        return Path(SparkFiles.get(self.file)).read_bytes()


def sent(session: SparkSession, content: bytes) -> Sent:
    """The bytes, for functions in this session."""
    if len(content) <= _LONG or is_remote():
        return Sent(content)
    name = f"cepheid-{blake2b(content, digest_size=16).hexdigest()}"
    path = _folder() / name
    if not path.exists():
        path.write_bytes(content)
    session.addArtifacts(str(path), file=True)
    return Sent(None, name)


@lru_cache(maxsize=1)
def _folder() -> Path:
    """A folder for the life of this process: Spark's executors fetch its files when they start."""
    folder = TemporaryDirectory(prefix="cepheid-sent-")
    atexit.register(folder.cleanup)
    return Path(folder.name)
