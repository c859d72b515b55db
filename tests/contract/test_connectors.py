"""What every connector holds to, over real sources: incremental, complete, exact, and safe for any name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from dtrag.core.documents import document_id
from dtrag.errors import SourceUnavailable
from dtrag.ports.connectors import Connector, SourceItem
from tests.sources import HARNESSES, Harness, harness, s3_environment, s3_service


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_service() as address:
        yield address


@pytest_asyncio.fixture(params=HARNESSES)
async def source(
    request: pytest.FixtureRequest, tmp_path: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Harness]:
    for name, value in s3_environment(endpoint).items():
        monkeypatch.setenv(name, value)
    async with harness(request.param, tmp_path, endpoint) as empty:
        yield empty


async def listed(source: Harness) -> dict[str, SourceItem]:
    """Path -> file, as a connector that was just made lists it."""
    connector = source.connector()
    items = await connector.items()
    await connector.close()
    assert len({item.uri for item in items}) == len(items)
    return {item.path: item for item in items}


def files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def content(connector: Connector, item: SourceItem, folder: Path) -> bytes:
    """What is fetched; nothing else may be written beside it."""
    target = folder / "out" / "000001.md"
    target.parent.mkdir(exist_ok=True)
    await connector.fetch(item, target)
    assert files_in(target.parent) == [target]
    data = target.read_bytes()
    target.unlink()
    return data


async def test_files_are_listed_once_in_a_stable_order_and_fetched_exactly(source: Harness, tmp_path: Path) -> None:
    files = {"b.md": b"# B\r\n\x00\xff", "a.md": b"# A\n", "d/c.md": b"c" * 300_000, "d/b.md": b"# B2\n"}
    for name, data in files.items():
        source.write(name, data)
    connector = source.connector()
    items = await connector.items()
    assert {item.path for item in items} == files.keys()
    assert [item.path for item in items] == [item.path for item in await connector.items()]
    again = source.connector()
    assert await again.items() == items
    for item in items:
        assert await content(connector, item, tmp_path) == files[item.path]
        assert await content(again, item, tmp_path) == files[item.path]
        assert item.rights is None
    assert connector.site == "" and await connector.members("") == ()
    await connector.close()
    await again.close()


async def test_a_mark_changes_with_the_content_and_only_then(source: Harness, tmp_path: Path) -> None:
    for name, data in {"a.md": b"one", "b.md": b"two", "same.md": b"two"}.items():
        source.write(name, data)
    before = await listed(source)
    assert await listed(source) == before
    assert all(item.mark for item in before.values())
    assert before["a.md"].mark != before["b.md"].mark
    source.write("a.md", b"six")
    after = await listed(source)
    assert after.keys() == before.keys()
    assert after["a.md"].mark not in {item.mark for item in before.values()}
    assert after["b.md"] == before["b.md"]
    connector = source.connector()
    await connector.items()
    assert await content(connector, after["a.md"], tmp_path) == b"six"
    await connector.close()


async def test_a_renamed_file_keeps_its_mark_where_the_source_can_tell(source: Harness) -> None:
    source.write("a.md", b"one")
    source.write("b.md", b"two")
    before = await listed(source)
    source.rename("a.md", "c.md")
    after = await listed(source)
    assert after.keys() == {"b.md", "c.md"}
    assert after["c.md"].uri != before["a.md"].uri
    assert (after["c.md"].mark == before["a.md"].mark) is source.keeps_marks


async def test_a_deleted_file_is_gone_from_the_next_listing(source: Harness) -> None:
    source.write("a.md", b"one")
    source.write("b.md", b"two")
    assert (await listed(source)).keys() == {"a.md", "b.md"}
    source.delete("a.md")
    assert (await listed(source)).keys() == {"b.md"}


async def test_a_lost_source_is_an_error_and_never_a_shorter_list(source: Harness, tmp_path: Path) -> None:
    source.write("a.md", b"one")
    connector = source.connector()
    items = await connector.items()
    source.lose()
    for each in (connector, source.connector()):
        with pytest.raises(SourceUnavailable) as caught:
            await each.items()
        assert each.address in str(caught.value)
        await each.close()
    if "git" not in items[0].uri:  # a clone still has the file
        with pytest.raises(SourceUnavailable):
            await content(connector, items[0], tmp_path)
        await connector.close()


async def test_every_name_is_safe_and_has_an_address_of_its_own(source: Harness, tmp_path: Path) -> None:
    for number, name in enumerate(source.names):
        source.write(name, f"content {number}".encode())
    connector = source.connector()
    items = await connector.items()
    assert {await content(connector, item, tmp_path) for item in items} == {
        f"content {number}".encode() for number in range(len(source.names))
    }
    assert len({document_id(item.uri) for item in items}) == len(source.names)
    base = connector.address.removeprefix("sitemap+").removesuffix("/sitemap.xml") + "/"
    for item in items:
        assert item.uri.startswith(base) and "#" not in item.uri and item.uri.isprintable() and " " not in item.uri
        assert item.path.isprintable() and not {".", "..", ""} & {*item.path.split("/")}
        assert item.path.endswith(".md")
    await connector.close()
    assert {file.name for file in files_in(tmp_path)} <= {"repository", "cache", "out"}
