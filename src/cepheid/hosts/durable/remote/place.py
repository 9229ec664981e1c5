"""Where the socket of a host is."""

from __future__ import annotations

import os
import stat
import tempfile
from hashlib import blake2b
from pathlib import Path
from urllib.parse import urlsplit

from cepheid.errors import StoreError
from cepheid.hosts.durable.open_store import path_of

_LONGEST = 100
"""The path of a Unix socket has at most 107 bytes on Linux and 103 on macOS."""


def socket_of(url: str) -> Path:
    """The socket of the host with the store at `url`: in the folder `<store>.host` beside the file of the store, or in
    the folder `host` of a store that is a folder. A database of a server has no such place, and the path may be too
    long for a socket; then it is in the user's runtime folder, under a digest.
    """
    path = path_of(url)
    if path is None:
        parts = urlsplit(url)
        where = parts.netloc.rpartition("@")[2]
        return _in_runtime_folder(f"{parts.scheme}://{where}{parts.path}?{parts.query}")
    is_folder = url.startswith("file:")
    folder = path / "host" if is_folder else path.absolute().with_name(f"{path.name}.host")
    socket = folder / "socket"
    return socket if len(os.fsencode(socket)) <= _LONGEST else _in_runtime_folder(str(path.absolute()))


def _in_runtime_folder(name: str) -> Path:
    return _runtime_folder() / blake2b(name.encode(), digest_size=12).hexdigest() / "socket"


def _runtime_folder() -> Path:
    """The user's folder for sockets, as the XDG Base Directory Specification names it, or else one in /tmp."""
    user = os.getuid()
    for folder in (os.environ.get("XDG_RUNTIME_DIR"), f"/run/user/{user}"):
        if folder and Path(folder).is_dir():
            return Path(folder) / "cepheid"
    return Path(tempfile.gettempdir()) / f"cepheid-{user}"


def make_private(folder: Path) -> None:
    """Makes the folder, which only the user may enter.

    Raises:
        StoreError: it is there, and is another user's, or not a folder.
    """
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        raise StoreError(f"{folder} is needed for the host's socket, and is not a folder: move it away") from None
    check_owner(folder)
    folder.chmod(0o700)


def check_owner(folder: Path) -> None:
    """Checks that the folder of a socket is the user's own. Everybody may make folders in /tmp, and could answer there
    in place of the host. Root may use the hosts of all users.

    Raises:
        StoreError: it is another user's, or not a folder.
    """
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or os.getuid() not in (0, status.st_uid):
        raise StoreError(f"{folder} is for the host's socket, and is another user's or not a folder: remove it")
