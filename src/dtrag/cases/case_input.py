"""Checks of what callers send about cases; the values that they return can be stored."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dtrag.core.access.scope import Scope
from dtrag.core.cases import requests
from dtrag.core.cases.case import RESERVED_METADATA
from dtrag.core.documents import SearchResult
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
from dtrag.core.text.analysis import clean
from dtrag.core.text.patterns import CHUNK_ID
from dtrag.errors import Forbidden, IncompleteRequest, InvalidInput

MAX_PASSAGES = 50
MAX_METADATA_DEPTH = 8
MAX_INTEGER = 2**63
_CASE_ID = re.compile(r"[\w.:@-]+")


def identifier(text: str) -> str:
    """The id of a case or an interaction. Raises `IncompleteRequest` for a blank one."""
    if not text.strip():
        raise IncompleteRequest("The id is blank. `dtrag cbr list` shows the ids of cases.")
    return clean(text).strip()


def new_case_id(text: str) -> str:
    """An id that a caller chose for a new case. Raises `IncompleteRequest` and `InvalidInput`."""
    case_id = identifier(text)
    if len(case_id) > requests.MAX_ID or not _CASE_ID.fullmatch(case_id):
        raise InvalidInput(
            f"case_id has at most {requests.MAX_ID} characters: letters, digits and . _ : @ - are allowed."
        )
    return case_id


def question(text: str) -> str:
    """The question of a case. Raises `IncompleteRequest` for a blank one, `InvalidInput` for a long one."""
    _refuse_blank("query", text)
    return requests.question(text)


def content(text: str) -> str:
    """What is shown of a case. Raises as `question`."""
    _refuse_blank("content", text)
    return requests.content(text)


def _refuse_blank(name: str, text: str) -> None:
    if not clean(text).strip():
        raise IncompleteRequest(f"{name} is blank. Give it a text; to leave it unchanged, leave it out.")


def quality(value: float) -> float:
    """A quality, rounded to six places. Raises `InvalidInput` outside of [0, 1]."""
    return round(requests.share("quality_score", value), 6)


def metadata(value: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata that JSON can represent, without reserved keys. Raises `InvalidInput`."""
    if not isinstance(value, Mapping):
        raise InvalidInput("metadata is a JSON object, such as {'source': 'help desk'}.")
    plain: dict[str, Any] = _plain(value, 0)
    if reserved := sorted(RESERVED_METADATA & plain.keys()):
        raise InvalidInput(f"metadata cannot have the key {reserved[0]!r}: the case memory uses it. Rename the key.")
    if len(json.dumps(plain, ensure_ascii=False)) > requests.MAX_METADATA_JSON:
        raise InvalidInput(f"metadata has at most {requests.MAX_METADATA_JSON:,} characters as JSON.")
    return plain


def _plain(value: Any, depth: int) -> Any:
    if depth > MAX_METADATA_DEPTH:
        raise InvalidInput(f"metadata is nested at most {MAX_METADATA_DEPTH} levels deep.")
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in value]
    if value is None or isinstance(value, bool) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, int) and abs(value) < MAX_INTEGER:
        return value
    raise InvalidInput("metadata may hold texts, numbers, booleans, lists and objects only.")


def chunk_ids(values: Sequence[str]) -> list[str]:
    """The ids of cited passages without duplicates. Raises `InvalidInput`."""
    ids = list(dict.fromkeys(clean(value).strip() for value in values))
    if len(ids) > MAX_PASSAGES:
        raise InvalidInput(f"A case cites at most {MAX_PASSAGES} passages.")
    for chunk_id in ids:
        if not CHUNK_ID.fullmatch(chunk_id):
            raise InvalidInput(f"There is no passage {chunk_id[:60]!r}. Use the chunk_id of a search result.")
    return ids


def category(value: Sequence[str] | str, taxonomy: Taxonomy, scope: Scope) -> tuple[tuple[str, ...], int | None]:
    """The path and its node. With the whole tree a path without a node is accepted.

    Raises `Forbidden` for one outside of the scope, whether it exists or not.
    """
    if not value:
        raise IncompleteRequest("category_path is empty. Give the path of a category, such as AI/ML.")
    path = CategoryPath.parse(value)
    node_id = taxonomy.find(path)
    if scope.nodes is not None and node_id not in scope.nodes:
        raise Forbidden(
            "Your key is restricted to a part of the tree, and there is no such category in it. Choose one of "
            "yours; `dtrag taxonomy tree` shows them."
        )
    return (taxonomy.path(node_id) if node_id is not None else path.names), node_id


def shared_category(passages: Sequence[SearchResult], taxonomy: Taxonomy) -> tuple[tuple[str, ...], int | None]:
    """The deepest category that all the passages share, and its node; () and None where they share none."""
    columns = zip(*(passage.taxonomy_path for passage in passages), strict=False)
    path = tuple(names[0] for names in itertools.takewhile(lambda names: len(set(names)) == 1, columns))
    return (path, taxonomy.find(CategoryPath.parse(path))) if path else ((), None)
