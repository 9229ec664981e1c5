"""Opens the host of a command line: the one that runs, or else its store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from cepheid.cli.failure import FileProblem
from cepheid.cli.host.options import url_of

if TYPE_CHECKING:
    import pyarrow as pa

    from cepheid.hosts.durable.remote.messages import AnyHost


@contextmanager
def opened(store: str, *, makes: bool = False) -> Iterator[AnyHost]:
    """The host that another process runs on the store; if none runs, the store itself for the block. Only a command
    that `makes` stores makes one.

    Raises:
        FileProblem: there is no store.
        StoreError: it cannot be opened.
    """
    from cepheid.host import open_host
    from cepheid.hosts.durable.remote.client import connect

    url = url_of(store)
    host: AnyHost | None = connect(url)
    if host is None:
        if not makes:
            _check_is_there(url)
        host = open_host(url, allow=None)
    with closing(host):
        yield host


@contextmanager
def asked(store: str) -> Iterator[Callable[[str], pa.Table]]:
    """Answers queries over a store. A database that any process may read is not opened for writing, so a program may
    have it open.

    Raises:
        FileProblem, StoreError: as `opened`.
    """
    from cepheid.hosts.durable.open_store import reader_of
    from cepheid.hosts.durable.remote.client import connect

    url = url_of(store)
    if (host := connect(url)) is not None:
        with closing(host):
            yield host.sql
        return
    _check_is_there(url)
    if (reader := reader_of(url)) is not None:
        yield reader.query
        return
    with opened(store) as here:
        yield here.sql


def _check_is_there(url: str) -> None:
    from cepheid.hosts.durable.open_store import path_of

    path = path_of(url)
    if path is not None and not path.exists():
        raise FileProblem(f"there is no store {path}: make it with `cepheid host input`")
