"""`make setup` installs from an index whose certificate only the machine trusts, with no flag and no variable."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TRUSTED = "/etc/ssl/certs/ca-certificates.crt"
NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount")
RECIPE = """probe:
\t@$(PIP_INSTALL) --no-deps --target by-pip --index-url $(INDEX) tiny
\t@$(UV_INSTALL) --no-deps --no-cache --target by-uv --index-url $(INDEX) tiny"""


def allowed() -> bool:
    """Whether this machine keeps its certificates there and lets a process of ours have other ones."""
    programs = all(map(shutil.which, ("unshare", "openssl", "mount")))
    mount = (*NAMESPACE, "mount", "--bind", "/etc/hostname", TRUSTED)
    return (
        programs and Path(TRUSTED).is_file() and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    )


def write_certificates(folder: Path) -> None:
    """`ca.pem`, and `server.pem` signed by it, for 127.0.0.1."""
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1", "ascii")
    for command in (
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=company",
        "req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=127.0.0.1",
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 -extfile names",
    ):
        subprocess.run(["openssl", *command.split()], cwd=folder, capture_output=True, check=True)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """The address of an index with one package, over HTTPS."""
    write_certificates(tmp_path)
    place = tmp_path / "index/tiny"
    place.mkdir(parents=True)
    with zipfile.ZipFile(place / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "")
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.0.dist-info/RECORD", "tiny.py,,\n")
    (place / "index.html").write_text('<!doctype html><a href="tiny-1.0-py3-none-any.whl">tiny</a>', "ascii")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "index")))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"https://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.skipif(not allowed(), reason="a process here may not have certificates of its own")
def test_pip_and_uv_trust_what_the_machine_trusts(index: str, tmp_path: Path) -> None:
    arguments = [f"--file={ROOT / 'Makefile'}", f"--eval={RECIPE}", "probe", f"INDEX={index}"]
    make = ["make", *arguments, f"BIN={Path(sys.executable).parent}", f"PYTHON={sys.executable}"]
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path), "PIP_RETRIES": "0"}
    refused = subprocess.run(make, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    trusting = [*NAMESPACE, "sh", "-c", f'mount --bind ca.pem {TRUSTED} && exec "$@"', "sh", *make]
    ran = subprocess.run(trusting, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "by-pip/tiny.py").is_file()
    assert (tmp_path / "by-uv/tiny.py").is_file()
