"""Hostile requests: attempts to read what is outside the caller's branches."""

from __future__ import annotations

import random
import unicodedata
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dtrag.core.answers.reasons import words_of
from dtrag.core.cases.case import SimilarityMethod
from dtrag.evaluation.canaries import COMMON, TOKEN, Garden, Hidden, Identity, token

MODES = ("lexical", "lexical", "hybrid", "strict", "vector")


Arguments = dict[str, Any]
"""Keyword arguments of the called method."""


@dataclass(frozen=True, slots=True)
class HostileRequest:
    """One request: the called method (`kind`), its arguments, and texts that the response may repeat (`echo`).

    `twin` is the same request about a nonexistent object: its response must be equal.
    `warm`: the owner of everything sends the same request first, so that caches are filled.
    """

    path: str
    kind: str
    arguments: Arguments = field(default_factory=dict)
    echo: tuple[str, ...] = ()
    twin: Arguments | None = None
    warm: bool = False


def disguised(word: str, chance: random.Random) -> str:
    """The word in another spelling of the same letters."""
    forms: tuple[Callable[[str], str], ...] = (
        str,
        str.upper,
        str.title,
        lambda text: "".join(chr(ord(letter) + 0xFEE0) for letter in text),
        lambda text: unicodedata.normalize("NFD", text),
        "\u200b".join,
        lambda text: f'"{text}"',
        lambda text: f"{text[:7]}* {text}",
        lambda text: f"{text}' or '1'='1",
    )
    return chance.choice(forms)(word)


def next_request(garden: Garden, chance: random.Random, identity: Identity) -> HostileRequest:
    """The next request of the caller."""
    makers = tuple(_MAKERS)
    make = chance.choices(makers, weights=[_MAKERS[maker] for maker in makers])[0]
    return make(garden, chance, identity, garden.foreign(identity, chance))


def _searched(path: str, query: str, chance: random.Random, **more: Any) -> HostileRequest:
    arguments = {"query": query, "top_k": chance.choice((3, 10, 10, 50)), "mode": chance.choice(MODES)} | more
    return HostileRequest(path, "search", arguments, (query,))


def _word(garden: Garden, chance: random.Random, identity: Identity, foreign: Hidden) -> HostileRequest:
    return _searched("search: foreign word", disguised(chance.choice(foreign.words), chance), chance)


def _twins(garden: Garden, chance: random.Random, identity: Identity, foreign: Hidden) -> HostileRequest:
    if not TOKEN.fullmatch(foreign.words[0]):  # a word that may stand elsewhere, too
        return _word(garden, chance, identity, foreign)
    mode = chance.choice(("lexical", "strict"))
    own = " ".join(chance.choices(COMMON, k=chance.randint(0, 2)))
    pair = [f"{own} {word}".strip() for word in (chance.choice(foreign.words), token(chance))]
    explain = chance.random() < 0.3
    sent = [{"query": query, "top_k": 10, "mode": mode, "explain": explain} for query in pair]
    return HostileRequest("search: foreign word against no word", "search", sent[0], tuple(pair), twin=sent[1])


def _sentence(garden: Garden, chance: random.Random, identity: Identity, foreign: Hidden) -> HostileRequest:
    return _searched("search: foreign sentence", foreign.text[:200], chance, mode=chance.choice(("lexical", "hybrid")))


def _common(garden: Garden, chance: random.Random, identity: Identity, foreign: Hidden) -> HostileRequest:
    query = " ".join(chance.choices(COMMON, k=2))
    return _searched("search: common words", query, chance, bm25_candidates=chance.choice((50, 300)))


def _warmed(garden: Garden, chance: random.Random, identity: Identity, foreign: Hidden) -> HostileRequest:
    query = f"{chance.choice(COMMON)} {chance.choice(foreign.words)}"
    arguments = {"query": query, "top_k": 10, "mode": "lexical"}
    return HostileRequest("search: cache warmed by the owner", "search", arguments, (query,), warm=True)


def _filtered(garden: Garden, chance: random.Random, identity: Identity, foreign: Hidden) -> HostileRequest:
    names = list(garden.taxonomy.path(foreign.node_id))
    if not names:  # a document without a category has no branch to filter by
        return _facts(garden, chance, identity, foreign)
    own = list(chance.choice(identity.paths).names)
    paths = chance.choice(
        (
            [names],
            [names[:1]],
            [own, names],
            [[name.upper() for name in names]],
            [[unicodedata.normalize("NFD", name) for name in names]],
            [["".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in name) for name in names]],
            [[names[0][:2]]],
            [[*own, "..", *names]],
            [],
        )
    )
    key = chance.choice(("taxonomy_paths", "allowed_category_paths", "canonical_in"))
    return _searched("search: foreign branches as filters", chance.choice(COMMON), chance, filters={key: paths})


def _facts(garden: Garden, chance: random.Random, identity: Identity, foreign: Hidden) -> HostileRequest:
    filters = chance.choice(
        (
            {"metadata": {"author": foreign.author}},
            {"content_types": ["application/json"]},
            {"date_from": "2000-01-01", "date_to": "2100-01-01"},
            {"metadata": {"author": foreign.author}, "content_types": ["application/json"]},
        )
    )
    return _searched("search: facts of foreign documents", chance.choice(COMMON), chance, filters=filters)


def _explained(garden: Garden, chance: random.Random, identity: Identity, foreign: Hidden) -> HostileRequest:
    unknown = str(uuid.UUID(int=chance.getrandbits(128), version=5))
    query = chance.choice(COMMON)
    sent = [
        {"query": query, "top_k": 5, "mode": "lexical", "explain_documents": [document_id]}
        for document_id in (foreign.document_id, unknown)
    ]
    return HostileRequest(
        "search: explain foreign documents", "search", sent[0], (foreign.document_id, unknown), twin=sent[1]
    )


def _mentioned(garden: Garden, chance: random.Random, identity: Identity, foreign: Hidden) -> HostileRequest:
    own = garden.own(identity, chance)
    query = own.text[-120:] if own is not None else foreign.title
    return _searched("search: mentions of foreign titles", query, chance, mode="hybrid", top_k=10)


def _question(garden: Garden, chance: random.Random, identity: Identity, foreign: Hidden) -> HostileRequest:
    word = chance.choice((chance.choice(foreign.words), " ".join(chance.choices(COMMON, k=3))))
    question = f"What is {disguised(word, chance)}?"
    return HostileRequest("ask", "ask", {"question": question}, (question, *_repeated_words(question)))


def _listed(garden: Garden, chance: random.Random, identity: Identity, foreign: Hidden) -> HostileRequest:
    paging = {"limit": chance.choice((1, 20, 100)), "offset": chance.choice((0, 0, 7, 500, 19_999))}
    return HostileRequest("documents: list", "documents", paging)


def _counted(garden: Garden, chance: random.Random, identity: Identity, foreign: Hidden) -> HostileRequest:
    return HostileRequest("documents: counts", "counts")


def _opened(garden: Garden, chance: random.Random, identity: Identity, foreign: Hidden) -> HostileRequest:
    unknown = str(uuid.UUID(int=chance.getrandbits(128), version=5))
    kind, path = chance.choice(
        (
            ("document", "documents: foreign id"),
            ("passages", "index: passages of a foreign id"),
            ("fetch", "index: fetch"),
        )
    )
    sent = [{"document_id": document_id} for document_id in (foreign.document_id, unknown)]
    return HostileRequest(path, kind, sent[0], (foreign.document_id, unknown), twin=sent[1])


def _suggested(garden: Garden, chance: random.Random, identity: Identity, foreign: Hidden) -> HostileRequest:
    if not garden.cases:
        return _word(garden, chance, identity, foreign)
    common = " ".join(chance.choices(COMMON, k=2))
    pair = [f"{common} {word}" for word in (chance.choice(foreign.words), token(chance))]
    options = {"k": chance.choice((1, 5, 50)), "method": chance.choice(tuple(SimilarityMethod)[:3])}
    sent = [{"query": query, **options} for query in pair]
    return HostileRequest("cases: suggestions for foreign words", "suggest", sent[0], tuple(pair), twin=sent[1])


def _cases_counted(garden: Garden, chance: random.Random, identity: Identity, foreign: Hidden) -> HostileRequest:
    if not garden.cases:
        return _counted(garden, chance, identity, foreign)
    return HostileRequest("cases: counts", "case counts")


def _refused(garden: Garden, chance: random.Random, identity: Identity, foreign: Hidden) -> HostileRequest:
    arguments: Arguments = chance.choice(
        (
            {"query": "x", "mode": foreign.title},
            {"query": "x", "filters": {foreign.author: 1}},
            {"query": "x", "filters": {"taxonomy_paths": [[foreign.title, None]]}},
            {"query": "x", "filters": {"metadata": {"title": foreign.title}}},
            {"query": "x", "top_k": 0},
        )
    )
    return HostileRequest("errors", "search", arguments, (foreign.title, foreign.author))


def over_http(garden: Garden, chance: random.Random, identity: Identity) -> HostileRequest:
    """The next request of the caller over HTTP: method, path and body."""
    foreign = garden.foreign(identity, chance)
    unknown = str(uuid.UUID(int=chance.getrandbits(128), version=5))
    word = disguised(chance.choice(foreign.words), chance)
    names = list(garden.taxonomy.path(foreign.node_id))
    body: Arguments = {"query": chance.choice((word, chance.choice(COMMON))), "mode": chance.choice(MODES)}
    read = [{"method": "GET", "path": f"/documents/{key}"} for key in (foreign.document_id, unknown)]
    delete = [{"method": "DELETE", "path": f"/documents/{key}"} for key in (foreign.document_id, unknown)]
    sent: tuple[tuple[str, Arguments, Arguments | None], ...] = (
        ("POST /search", {"method": "POST", "path": "/search", "body": body}, None),
        (
            "POST /search",
            {"method": "POST", "path": "/search", "body": body | {"filters": {"taxonomy_paths": [names]}}},
            None,
        ),
        (
            "POST /search",
            {"method": "POST", "path": "/search", "body": body | {"explain_documents": [foreign.document_id]}},
            None,
        ),
        ("POST /search/batch", {"method": "POST", "path": "/search/batch", "body": {"searches": [body, body]}}, None),
        ("POST /ask", {"method": "POST", "path": "/ask", "body": {"question": word}}, None),
        ("GET /documents", {"method": "GET", "path": f"/documents?limit=50&offset={chance.choice((0, 3, 999))}"}, None),
        ("GET /documents/{id}", read[0], read[1]),
        ("DELETE /documents/{id}", delete[0], delete[1]),
        ("GET /review", {"method": "GET", "path": "/review"}, None),
        ("GET /agents", {"method": "GET", "path": "/agents"}, None),
        ("GET /audit", {"method": "GET", "path": "/audit"}, None),
        ("GET /metrics", {"method": "GET", "path": "/metrics"}, None),
        *(_about_cases(garden, chance, foreign, unknown, word) if garden.cases else ()),
    )
    path, arguments, twin = chance.choice(sent)
    case_id = garden.cases.get(foreign.document_id, unknown)
    echo = (word, *_repeated_words(word), str(body["query"]), foreign.document_id, unknown, case_id)
    return HostileRequest(f"HTTP {path}", "http", arguments, echo, twin)


def _about_cases(
    garden: Garden, chance: random.Random, foreign: Hidden, unknown: str, word: str
) -> list[tuple[str, Arguments, Arguments | None]]:
    """Requests about the case of the foreign document, each with its twin about a nonexistent case."""
    case_id = garden.cases.get(foreign.document_id) or unknown
    changes: tuple[tuple[str, str, Arguments | None], ...] = (
        ("GET", "", None),
        ("PUT", "", {"content": "Changed."}),
        ("PUT", "/quality", {"quality_score": 1.0}),
        ("DELETE", "", None),
    )
    requests: list[tuple[str, Arguments, Arguments | None]] = []
    for method, end, body in changes:
        pair = [{"method": method, "path": f"/cbr/cases/{key}{end}", "body": body} for key in (case_id, unknown)]
        requests.append((f"{method} /cbr/cases/{{id}}{end}", pair[0], pair[1]))
    votes = [
        {"log_id": chance.choice((unknown, case_id)), "case_id": key, "feedback": "thumbs_down"}
        for key in (case_id, unknown)
    ]
    pair = [{"method": "POST", "path": "/cbr/feedback", "body": vote} for vote in votes]
    requests.append(("POST /cbr/feedback", pair[0], pair[1]))
    suggest: Arguments = {"query": word[:1_000], "k": chance.choice((5, 50))}
    names = list(garden.taxonomy.path(foreign.node_id))
    own = {"query": word[:1_000], "content": "See there.", "category_path": names}
    sent: list[tuple[str, str, Arguments | None]] = [
        ("POST", "/cbr/suggest", suggest),
        ("POST", "/cbr/suggest", suggest | {"category_path": names}),
        ("POST", "/cbr/case", own),
        *(("GET", path, None) for path in ("/cbr/cases?limit=1000", "/cbr/stats", "/cbr/logs", "/cbr/export")),
    ]
    for method, path, body in sent:
        requests += [(f"{method} {path.partition('?')[0]}", {"method": method, "path": path, "body": body}, None)]
    return requests


def _repeated_words(question: str) -> list[str]:
    """Words of a question that an abstention may repeat, as they do not occur in the caller's documents."""
    return words_of(question)


_Maker = Callable[[Garden, random.Random, Identity, Hidden], HostileRequest]
_MAKERS: dict[_Maker, int] = {
    _word: 20,
    _twins: 16,
    _sentence: 6,
    _common: 8,
    _warmed: 4,
    _filtered: 14,
    _facts: 6,
    _explained: 5,
    _mentioned: 4,
    _question: 3,
    _listed: 5,
    _counted: 3,
    _opened: 10,
    _suggested: 6,
    _cases_counted: 2,
    _refused: 4,
}
"""The weights with which they are chosen."""
