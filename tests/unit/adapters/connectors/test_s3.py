"""Buckets: many objects, objects that change, and which service is asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dtrag.adapters.connectors import s3
from dtrag.adapters.connectors.s3 import S3Source
from dtrag.errors import InvalidInput, MissingExtra, SourceUnavailable
from tests.sources import endpoint_allowed, s3_client, s3_environment, s3_service


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_service() as address:
        yield address


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> tuple[Any, str]:
    for name, value in s3_environment(endpoint).items():
        monkeypatch.setenv(name, value)
    client, name = s3_client(), f"bucket-{abs(hash(request.node.name)):x}"
    client.create_bucket(Bucket=name)
    return client, name


async def test_more_objects_than_one_page_holds(bucket: tuple[Any, str], endpoint: str) -> None:
    client, name = bucket
    for number in range(1_050):
        client.put_object(Bucket=name, Key=f"laws/{number:04}.md", Body=b"x")
    for beside in ("laws/", "laws2/x.md", "laws.md", "laws/sub/"):
        client.put_object(Bucket=name, Key=beside, Body=b"")
    connector = S3Source(f"s3://{name}/laws/", endpoint_allowed(endpoint))
    items = await connector.items()
    await connector.close()
    assert [item.path for item in items] == [f"{number:04}.md" for number in range(1_050)]
    assert items[7].uri == f"s3://{name}/laws/0007.md"
    assert connector.address == f"s3://{name}/laws"


async def test_an_object_that_changed_or_is_gone_after_the_listing_is_not_taken(
    bucket: tuple[Any, str], endpoint: str, tmp_path: Path
) -> None:
    client, name = bucket
    client.put_object(Bucket=name, Key="a.md", Body=b"one")
    connector = S3Source(f"s3://{name}", endpoint_allowed(endpoint))
    (item,) = await connector.items()
    client.put_object(Bucket=name, Key="a.md", Body=b"two")
    with pytest.raises(SourceUnavailable, match="changed since"):
        await connector.fetch(item, tmp_path / "out.md")
    client.delete_object(Bucket=name, Key="a.md")
    with pytest.raises(SourceUnavailable, match="NoSuchKey"):
        await connector.fetch(item, tmp_path / "out.md")
    assert await connector.items() == []
    await connector.close()


async def test_an_object_that_is_too_large_is_not_taken(
    bucket: tuple[Any, str], endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, name = bucket
    monkeypatch.setattr(s3, "MAX_BYTES", 1 << 20)
    client.put_object(Bucket=name, Key="a.md", Body=b"a" * ((1 << 20) + 1))
    connector = S3Source(f"s3://{name}", endpoint_allowed(endpoint))
    (item,) = await connector.items()
    with pytest.raises(SourceUnavailable, match="larger than 1 MiB"):
        await connector.fetch(item, tmp_path / "out.md")
    assert not (tmp_path / "out.md").exists()
    await connector.close()


async def test_equal_etags_that_are_not_digests_of_the_content_are_not_equal_marks() -> None:
    connector = S3Source("s3://bucket")
    first, second, same = (
        connector._item({"Key": key, "ETag": etag, "Size": 3})
        for key, etag in (("a.md", '"6789-17"'), ("b.md", '"6789-17"'), ("c.md", f'"{"a" * 32}-2"'))
    )
    assert first.mark != second.mark
    assert connector._item({"Key": "/etc/a.md", "ETag": '"x"', "Size": 3}).path == "etc/a.md"
    assert same.mark == f"{'a' * 32}-2:3"


async def test_a_service_that_the_policy_forbids_or_that_is_gone(
    bucket: tuple[Any, str], endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, name = bucket
    forbidden = S3Source(f"s3://{name}")
    with pytest.raises(SourceUnavailable, match="egress_allow"):
        await forbidden.items()
    await forbidden.close()

    async def private(host: str, port: int) -> list[str]:
        return ["10.0.0.1"]

    with monkeypatch.context() as patched:
        patched.setenv("AWS_ENDPOINT_URL", "http://s3.invalid")
        hidden = S3Source(f"s3://{name}", resolve=private)
        with pytest.raises(SourceUnavailable, match="not public"):
            await hidden.items()
        await hidden.close()
    missing = S3Source("s3://no-such-bucket", endpoint_allowed(endpoint))
    with pytest.raises(SourceUnavailable, match="NoSuchBucket"):
        await missing.items()
    await missing.close()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    silent = S3Source(f"s3://{name}", frozenset({("127.0.0.1", 9)}))
    with pytest.raises(SourceUnavailable, match="connect"):
        await silent.items()
    await silent.close()


async def test_credentials_that_are_missing_are_an_error(
    bucket: tuple[Any, str], endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    connector = S3Source(f"s3://{bucket[1]}", endpoint_allowed(endpoint))
    with pytest.raises(SourceUnavailable, match="credentials"):
        await connector.items()
    await connector.close()


@pytest.mark.parametrize("address", ["s3://", "s3:///prefix", "s3://key:secret@bucket/x", "s3://a b/x"])
def test_addresses_that_are_refused(address: str) -> None:
    with pytest.raises(InvalidInput):
        S3Source(address)


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="dtrag\\[s3\\]"):
        S3Source("s3://bucket")
