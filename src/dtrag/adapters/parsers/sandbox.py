"""What the parser process takes away from itself before it opens a file: memory, files, programs, the network.

Resource limits and `PR_SET_NO_NEW_PRIVS` are the kernel's; the audit hook stops what Python code can be tricked into
(a parser that follows a link, an entity that names a file). It cannot be removed again.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

REFUSED = frozenset(
    {
        "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "pty.spawn",
        "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod",
        "os.chown", "os.utime", "os.setxattr", "os.removexattr", "os.putenv", "os.kill", "os.killpg",
        "signal.pthread_kill", "ctypes.dlopen", "syslog.openlog", "pickle.find_class", "sqlite3.connect",
        "webbrowser.open", "shutil.rmtree", "shutil.copyfile", "shutil.move", "tempfile.mkstemp", "tempfile.mkdtemp",
        "urllib.Request",
    }
)  # fmt: skip
REFUSED_FAMILIES = ("socket.", "ftplib.", "http.client.", "imaplib.", "poplib.", "smtplib.", "telnetlib.", "nntplib.")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_UNKNOWN_BASELINE = 512 << 20


def restrict(memory_mb: int) -> None:
    """Give up everything that parsing does not need, for good. `memory_mb` comes on top of what is mapped now."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; our parent decides what happens
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, 0)  # regular files only: the pipes are not concerned
    _lower(resource.RLIMIT_NOFILE, 64)
    _lower(resource.RLIMIT_AS, _mapped_bytes() + (memory_mb << 20))
    sys.addaudithook(_refuse)


def allow_cpu(seconds: int) -> None:
    """Let the process use this many more seconds of processor time; then the kernel ends it with SIGXCPU."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime) + 1 + seconds
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, hard))


def _lower(what: int, value: int) -> None:
    hard = resource.getrlimit(what)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    with contextlib.suppress(ValueError, OSError):  # macOS knows RLIMIT_AS but refuses to set it
        resource.setrlimit(what, (value, value))


def _mapped_bytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return _UNKNOWN_BASELINE
    return pages * resource.getpagesize()


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        _, mode, flags = arguments
        if (isinstance(mode, str) and set(mode) & set("wax+")) or (isinstance(flags, int) and flags & WRITING):
            raise PermissionError("the parser process may not write files")
    elif event in REFUSED or event.startswith(REFUSED_FAMILIES):
        raise PermissionError(f"the parser process may not do this: {event}")
