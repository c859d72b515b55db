"""Stores for the contract suites: in PostgreSQL, on one database that each test finds empty, and in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.server.server import EmbeddedServer
from dtrag.adapters.sqlite.cases import SqliteCases
from dtrag.assembly import open_stores
from dtrag.core.text.analysis import Analyzer
from dtrag.ports import Stores
from dtrag.settings import Settings
from dtrag.testing.memory.stores import memory_stores
from tests.store import Databases

EMPTY = """
delete from documents;
delete from lexical_segments;
delete from lexical_corrections;
delete from posting_pages;
delete from sources;
delete from index_settings;
delete from vector_spaces;
delete from review_queue;
delete from agents;
delete from api_keys;
delete from classification_signals;
delete from classification_placements;
delete from conversations;
delete from traces;
delete from cbr_cases;
delete from cbr_logs;
delete from cbr_changes;
insert into cbr_revision values ('cases', 0) on conflict (name) do update set revision = 0;
delete from answer_feedback;
delete from evaluations;
delete from experiences;
delete from exploration;
delete from approved_tools;
delete from taxonomy_moves;
delete from taxonomy_activations;
delete from taxonomy_tree;
delete from taxonomy_versions;
delete from taxonomy_nodes;
insert into taxonomy_nodes values (0, now()), (1, now());
insert into taxonomy_versions (version, active, created_at) values ('1.0.0', true, '2025-01-01');
insert into taxonomy_activations (activation, version, kind, activated_by, activated_at)
    values (1, '1.0.0', 'start', '', '2025-01-01');
insert into index_settings values ('generation', '0'), ('vectors', '0');
"""
"""As after the migrations, but for the audit log, whose lines cannot be deleted. Truncating takes ten times as long."""


@pytest_asyncio.fixture(scope="session")
async def contract_database(embedded: EmbeddedServer, template: str) -> AsyncIterator[Database]:
    """A database of the contract suites' own."""
    databases = Databases(embedded.address, template)
    async with connect(databases.settings()) as database:
        yield database
    databases.drop()


@pytest_asyncio.fixture
async def postgres_stores(contract_database: Database) -> Stores:
    """The stores of an empty PostgreSQL database."""
    database = contract_database
    async with database.connection("owner") as connection:
        await connection.execute(EMPTY)
    return open_stores(Settings(), database, Analyzer())


@pytest_asyncio.fixture
async def sqlite_stores(tmp_path: Path) -> AsyncIterator[Stores]:
    """The stores of an empty in-memory database, with cases in an SQLite file."""
    stores = memory_stores()
    cases = SqliteCases(tmp_path, stores.sight.visible)
    yield replace(stores, cases=cases)
    await cases.close()


@pytest.fixture
def in_memory_stores() -> Stores:
    """The stores of an empty in-memory database."""
    return memory_stores()
