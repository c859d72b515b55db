"""What every answer keeps to, and forms as bytes so that tests can write what no client library would."""

from __future__ import annotations

from typing import Any

import httpx2

BOUNDARY = "x1f0a9boundary"
FORM = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}


def assert_failure(response: httpx2.Response, *statuses: int) -> dict[str, Any]:
    """One of the statuses, with a body of the one shape."""
    assert response.status_code in statuses, response.text[:500]
    assert response.headers["content-type"] == "application/json"
    body: dict[str, Any] = response.json()
    detail = body["detail"]
    assert isinstance(detail, str)
    assert 5 < len(detail) < 600
    assert "\n" not in detail
    assert body["type"].isidentifier()
    assert body["request_id"] == response.headers["x-request-id"]
    return body


def form(*parts: tuple[str, bytes | None, bytes]) -> bytes:
    """A multipart body of (field, raw file name or None, content)."""
    written = b""
    for field, filename, content in parts:
        name = b"" if filename is None else b'; filename="' + filename + b'"'
        written += f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{field}"'.encode() + name
        written += b"\r\n\r\n" + content + b"\r\n"
    return written + f"--{BOUNDARY}--\r\n".encode()


def file_form(filename: bytes, content: bytes) -> bytes:
    """A form with one file."""
    return form(("files", filename, content))
