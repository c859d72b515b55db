"""Versions of the category tree on a real database: documents are found where the tree in force says."""

from __future__ import annotations

import asyncio
import struct
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from dtrag.adapters.postgres.taxonomy import PostgresTaxonomy
from dtrag.adapters.postgres.writer import PostgresWriter
from dtrag.app import App, open_app
from dtrag.core.operations import operations
from dtrag.core.scope import Access, Grant, Scope
from dtrag.core.taxonomy import UNCLASSIFIED, CategoryPath
from dtrag.errors import Conflict, InvalidInput, NotFound
from dtrag.settings import Settings
from tests.store import Store
from tests.toy import ToyEmbedder, indexed
