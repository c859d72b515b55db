"""Jobs over HTTP: an upload that is indexed later, and whose jobs a caller may see and change."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2

from dtrag.delivery.api.dependencies import Service
from tests.api.shape import FORM, assert_failure, file_form, form

NOTE = file_form(b"later.md", b"# Later\n\nThe periscope is polished on Fridays.\n")


async def ended(client: httpx2.AsyncClient, url: str) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while (body := (await client.get(url)).json())["state"] in {"waiting", "running"}:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    result: dict[str, Any] = body
    return result


async def test_an_upload_that_does_not_wait(client: httpx2.AsyncClient, service: Service) -> None:
    sent = await client.post("/documents?wait=false", content=NOTE, headers=FORM)
    assert sent.status_code == 202
    body = sent.json()
    assert body["status_url"] == f"/jobs/{body['job_id']}"
    job = await ended(client, body["status_url"])
    assert (job["state"], job["files"], job["reason"], job["done"], job["total"]) == ("done", ["later.md"], "", 1, 1)
    [document_id] = job["result"]["document_ids"]
    results = (await client.post("/search", json={"query": "periscope"})).json()["results"]
    assert results[0]["chunk_id"].startswith(document_id)
    listed = (await client.get("/jobs?state=done&kind=ingest")).json()
    assert body["job_id"] in {each["job_id"] for each in listed["jobs"]}
    assert not (await client.get("/jobs?kind=nothing")).json()["jobs"]
    assert_failure(await client.post(f"/jobs/{body['job_id']}/cancel"), 409)
    assert_failure(await client.post(f"/jobs/{body['job_id']}/retry"), 409)
    lines = (await client.get(f"/audit?subject={body['job_id']}")).json()["lines"]
    assert {"POST /documents", "job ingest"} <= {line["action"] for line in lines}
    await client.delete(f"/documents/{document_id}")


async def test_two_files_of_one_name_are_refused(client: httpx2.AsyncClient) -> None:
    twice = form(("files", b"a.md", b"# A\n\nOne.\n"), ("files", b"a.md", b"# A\n\nTwo.\n"))
    body = assert_failure(await client.post("/documents?wait=false", content=twice, headers=FORM), 422)
    assert "same name" in body["detail"]
    assert_failure(await client.post("/documents?wait=maybe", content=NOTE, headers=FORM), 422)
