"""The path of the socket in the data folder through which the folder's owner uses a running service, over HTTP.

The socket is in a folder that only its owner can enter, and only its owner can open it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = "service"
SOCKET = "local.sock"
VERSION_HEADER = "X-Dtrag-Version"
SETTINGS_HEADER = "X-Dtrag-Settings"
"""With these headers a command asks whether the service would answer as its own process: JSON {name: digest}."""
# sockaddr_un holds 108 bytes on Linux and 104 elsewhere, the terminating zero included.
_PATH_BYTES = 107 if sys.platform.startswith("linux") else 103


@contextmanager
def socket_address(data_dir: Path) -> Iterator[str]:
    """A path to the data folder's socket that fits into a socket address, valid inside the block.

    Raises `OSError` when the folder of the socket does not exist, or the path is too long on a system without /proc.
    """
    folder = Path(os.path.abspath(data_dir)) / FOLDER  # noqa: PTH100 - `resolve` would follow the caller's links
    path = folder / SOCKET
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if len(os.fsencode(path)) <= _PATH_BYTES:
            yield str(path)
        elif Path("/proc/self/fd").is_dir():
            yield f"/proc/self/fd/{descriptor}/{SOCKET}"
        else:
            raise OSError(f"the path {path} is too long for a socket")
    finally:
        os.close(descriptor)
