"""The requests of visitors of the twin worlds, on every route of the service; those of `/cbr` are in `case_memory`.

To add a route: write a coroutine that takes a `Visit`, and decorate it with the routes that it requests. A route that
tells nothing about documents, categories or callers can be entered in `EXEMPT` (registry.py) instead. A test fails for
a route that is in neither.
"""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import quote

from dtrag.core.document_listing import SORTS
from dtrag.evaluation.twins import askers, case_memory
from dtrag.evaluation.twins.library import OWN_WORDS, SHARED, UPLOADED
from dtrag.evaluation.twins.registry import EXEMPT, SCENARIOS, routes_tried, scenario
from dtrag.evaluation.twins.regulation_books import CITING_TEXT, DAYS, EVERYDAY, NAMES, REFERENCES
from dtrag.evaluation.twins.visits import Received, Route, Visit

__all__ = ["EXEMPT", "SCENARIOS", "askers", "case_memory", "routes_tried"]

TEXT = "text/plain"
_BOUNDARY = "dtrag-twin-worlds"


def _form(*parts: tuple[str, str | None, str]) -> tuple[bytes, str]:
    """A form of (field, file name or None, text), and its content type."""
    pieces = []
    for field, file, text in parts:
        name = f'name="{field}"' + (f'; filename="{file}"' if file is not None else "")
        pieces.append(f"--{_BOUNDARY}\r\nContent-Disposition: form-data; {name}\r\n\r\n{text}\r\n")
    return f"{''.join(pieces)}--{_BOUNDARY}--\r\n".encode(), f"multipart/form-data; boundary={_BOUNDARY}"


def _filters(visit: Visit) -> dict[str, Any] | None:
    """Filters of every kind, on foreign branches and on the visitor's own."""
    word = visit.words
    key = visit.chance.choice(("taxonomy_paths", "allowed_category_paths", "canonical_in"))
    return visit.chance.choice(
        (
            *[None] * 9,
            {key: [word.own_path()]},
            {key: [word.own_path()[:1]]},
            {key: [word.hidden_path()]},
            {key: [word.own_path(), word.hidden_path()]},
            {"content_types": ["text/markdown"]},
            {"content_types": ["application/json"]},
            {"date_from": "2000-01-01", "date_to": "2100-01-01"},
            {word.word(): 1},
            {"metadata": {word.word(): 1}},
            {key: [[word.word(), "x;y"]]},
        )
    )


def _search(visit: Visit) -> dict[str, Any]:
    body: dict[str, Any] = {
        "query": visit.words.query(),
        "mode": visit.chance.choice(("hybrid", "hybrid", "lexical", "strict", "vector")),
        "top_k": visit.chance.choice((1, 5, 10, 40)),
        "explain": visit.chance.random() < 0.3,
    }
    if visit.chance.random() < 0.2:
        body["explain_documents"] = [visit.world.known["hidden document"], str(uuid.UUID(int=7))]
    if visit.chance.random() < 0.3:
        body["as_of"] = visit.chance.choice(DAYS)
    filters = _filters(visit)
    return body if filters is None else body | {"filters": filters}


@scenario(("POST", "/search"))
async def searching(visit: Visit) -> None:
    """Words of every kind, in every mode; and documents that mention others by their titles."""
    for _ in range(4):
        await visit.send("POST", "/search", _search(visit))
    for _ in range(2):
        query = f"See also the charter {visit.words.word()}"
        await visit.send("POST", "/search", {"query": query, "mode": "hybrid", "top_k": 40})


@scenario(("POST", "/search"))
async def searching_twice(visit: Visit) -> None:
    """The same search twice: the cache makes no difference."""
    body = _search(visit)
    await visit.send("POST", "/search", body)
    await visit.send("POST", "/search", body)


@scenario(("POST", "/search/batch"))
async def batch(visit: Visit) -> None:
    """Several searches in one request, some of them refused."""
    await visit.send("POST", "/search/batch", {"searches": [_search(visit) for _ in range(3)]})


@scenario(("POST", "/search/neural"))
async def neural(visit: Visit) -> None:
    """Past cases by words of every kind."""
    await visit.send("POST", "/search/neural", {"query": visit.words.question(), "limit": 5})


@scenario(("POST", "/ask"))
async def asking(visit: Visit) -> None:
    """Questions about words of every kind."""
    for _ in range(2):
        body: dict[str, Any] = {"question": visit.words.question()}
        filters = _filters(visit)
        await visit.send("POST", "/ask", body if filters is None else body | {"filters": filters})


@scenario(
    ("GET", "/regulations"),
    ("GET", "/regulations/show"),
    ("GET", "/regulations/outline"),
    ("GET", "/regulations/citations"),
    ("GET", "/regulations/diff"),
    ("GET", "/regulations/stale"),
    ("POST", "/regulations/search"),
    ("POST", "/regulations/verify"),
)
async def regulations(visit: Visit) -> None:
    """Regulations of the visitor's branches, which cite hidden ones; one world hides a regulation of the same name."""
    await visit.send("GET", "/regulations", query=visit.chance.choice(("", "?limit=1", "?limit=1&offset=1")))
    for reference in visit.chance.sample(REFERENCES, 5):
        await visit.send("GET", "/regulations/show", query=f"?reference={quote(reference)}")
    for name in NAMES:
        await visit.send("GET", "/regulations/outline", query=f"?regulation={quote(name)}")
    await visit.send("GET", "/regulations/citations")
    await visit.send("GET", "/regulations/citations", query="?kind=missing")
    await visit.send("GET", "/regulations/citations", query=f"?regulation={quote(visit.chance.choice(NAMES))}")
    name = quote(visit.chance.choice(NAMES))
    await visit.send("GET", "/regulations/diff", query=f"?regulation={name}&before=2019-01-01&after=2026-01-01")
    for day in (visit.chance.choice(DAYS), DAYS[-1]):
        await visit.send("GET", "/regulations/stale", query=f"?as_of={day}")
    for regulation in (None, visit.chance.choice(NAMES)):
        text = CITING_TEXT + ", ".join(visit.chance.sample(REFERENCES, 5))
        await visit.send("POST", "/regulations/verify", {"text": text, "regulation": regulation})
    for query in (visit.chance.choice(EVERYDAY), visit.words.query()):
        await visit.send("POST", "/regulations/search", {"query": query, "top_k": visit.chance.choice((None, 3, 40))})


@scenario(("GET", "/lexicon"), ("POST", "/lexicon"), ("DELETE", "/lexicon/{number}"))
async def lexicon(visit: Visit) -> None:
    """The entries of all callers; only unscoped administrators may read or change them."""
    await visit.send("GET", "/lexicon")
    spoken, official = OWN_WORDS[0]
    await visit.send("POST", "/lexicon", {"entries": [{"spoken": spoken, "official": [*official, "휴학"]}]})
    await visit.send("DELETE", "/lexicon/{number}", number=str(len(OWN_WORDS)))


@scenario(("POST", "/search"), ("POST", "/ask"), ("POST", "/chat/run"), ("POST", "/v1/chat/completions"))
async def everyday_words(visit: Visit) -> None:
    """Questions that only the regulation pack can answer, whose lexicon, ranking and citations stay in the scope."""
    for mode in ("hybrid", "lexical"):
        body = {"query": visit.chance.choice(EVERYDAY), "mode": mode, "top_k": 20, "explain": True}
        await visit.send("POST", "/search", body)
    question = visit.chance.choice(EVERYDAY)
    await visit.send("POST", "/ask", {"question": question})
    await visit.send("POST", "/chat/run", {"message": question})
    messages = [{"role": "user", "content": question}]
    await visit.send("POST", "/v1/chat/completions", {"model": "dtrag", "messages": messages})


@scenario(("POST", "/classify"))
async def classifying(visit: Visit) -> None:
    """One word, several words, and a text: candidates and confidence come from the visitor's branches alone."""
    words = visit.words
    await visit.send("POST", "/classify", {"text": words.word()})
    await visit.send("POST", "/classify", {"text": words.query(), "title": words.word()})
    text = " ".join(words.query() for _ in range(6))
    await visit.send("POST", "/classify", {"text": text, "chunk_id": "c-1"})


@scenario(
    ("POST", "/chat/run"),
    ("GET", "/conversations"),
    ("GET", "/conversations/{conversation_id}"),
    ("DELETE", "/conversations/{conversation_id}"),
)
async def conversing(visit: Visit) -> None:
    """A question and a follow-up in one conversation; then the conversation itself, and an unknown one."""
    name = f"talk-{visit.chance.randrange(10**9)}"
    for question in (visit.words.question(), "And how long?"):
        body: dict[str, Any] = {"message": question, "conversation_id": name}
        if visit.chance.random() < 0.3:
            body["context"] = {"filters": _filters(visit), "top_k": 7}
        await visit.send("POST", "/chat/run", body)
    await visit.send("GET", "/conversations", query="?limit=3")
    await visit.send("GET", "/conversations/{conversation_id}", conversation_id=name)
    await visit.send("GET", "/conversations/{conversation_id}", conversation_id="administrators-talk")
    await visit.send("DELETE", "/conversations/{conversation_id}", conversation_id="administrators-talk")
    await visit.send("DELETE", "/conversations/{conversation_id}", conversation_id=name)


@scenario(("POST", "/chat/stream"))
async def streaming(visit: Visit) -> None:
    """The events of an answer, with a history that the client keeps."""
    history = [
        {"role": "user", "content": visit.words.question()},
        {"role": "assistant", "content": visit.words.query()},
    ]
    await visit.send(
        "POST", "/chat/stream", {"messages": [*history, {"role": "user", "content": visit.words.question()}]}
    )
    await visit.send("POST", "/chat/stream", {"message": visit.words.question(), "agent_id": _foreign_agent(visit)})


@scenario(("GET", "/v1/models"), ("GET", "/v1/models/{model}"), ("POST", "/v1/chat/completions"))
async def openai_protocol(visit: Visit) -> None:
    """The same answers for clients of the OpenAI protocol, whole and as a stream."""
    await visit.send("GET", "/v1/models")
    for model in ("dtrag", "agent:Leave desk", "agent:Board desk", f"agent:{_foreign_agent(visit)}", "gpt"):
        await visit.send("GET", "/v1/models/{model}", model=model.replace(" ", "%20"))
    messages = [{"role": "user", "content": visit.words.question()}]
    for model, stream in (("dtrag", False), ("dtrag", True), ("agent:Board desk", False)):
        await visit.send("POST", "/v1/chat/completions", {"model": model, "messages": messages, "stream": stream})


@scenario(("GET", "/traces"), ("GET", "/traces/{trace_id}"), ("POST", "/ask"))
async def tracing(visit: Visit) -> None:
    """Traces of answers; those of an administrator are not visible."""
    answered = await visit.send("POST", "/ask", {"question": visit.words.question()})
    await visit.send("GET", "/traces/{trace_id}", trace_id=str(answered.json.get("trace_id")))
    await visit.send("GET", "/traces/{trace_id}", trace_id=visit.world.known["administrator's trace"])
    for limit in (2, 1_000):
        await visit.send("GET", "/traces", query=f"?limit={limit}")


@scenario(("POST", "/chat/run"), ("POST", "/chat/feedback"), writes=True)
async def rating(visit: Visit) -> None:
    """Feedback on one's own answer, on an administrator's, and on one that does not exist.

    Answers that a visitor finds wrong wait in the review queue, which other visitors see.
    """
    answered = await visit.send("POST", "/chat/run", {"message": visit.words.question()})
    own = str(answered.json.get("metadata", {}).get("trace_id"))
    foreign = visit.world.known["administrator's trace"]
    for trace_id in (own, own, foreign, str(uuid.UUID(int=9))):
        thumbs = visit.chance.choice(("up", "down"))
        await visit.send("POST", "/chat/feedback", {"trace_id": trace_id, "thumbs": thumbs})
    await visit.send("POST", "/chat/feedback", {"trace_id": own, "rating": 3, "reason": visit.words.word()})


@scenario(("GET", "/documents"), ("GET", "/documents/{document_id}"), ("DELETE", "/documents/{document_id}"))
async def documents(visit: Visit) -> None:
    """Lists with counts, own documents, and foreign ones, which are answered like nonexistent ones."""
    offset = visit.chance.choice((0, 0, 5, 500))
    listed = await visit.send("GET", "/documents", query=f"?limit=6&offset={offset}")
    for row in listed.json.get("documents", [])[:2]:
        await visit.send("GET", "/documents/{document_id}", document_id=row["document_id"])
    branch = "/".join(visit.chance.choice((visit.words.own_path(), visit.words.hidden_path())))
    sort = visit.chance.choice(SORTS)
    for query in (f"q={quote(visit.words.word())}&sort={sort}", f"category={quote(branch)}&sort={sort}"):
        await visit.send("GET", "/documents", query=f"?limit=3&{query}")
    following = await visit.send("GET", "/documents", query=f"?limit=2&sort={sort}")
    await visit.send("GET", "/documents", query=f"?limit=2&sort={sort}&after={quote(following.json.get('next') or '')}")
    foreign = visit.chance.choice((visit.world.known["hidden document"], str(uuid.UUID(int=9)), "..%2f..%2fetc"))
    await visit.send("GET", "/documents/{document_id}", document_id=foreign)
    await visit.send("DELETE", "/documents/{document_id}", document_id=foreign)


SOURCE_ROUTES: tuple[Route, ...] = (
    ("GET", "/documents/{document_id}/text"),
    ("GET", "/documents/{document_id}/passages"),
    ("GET", "/documents/{document_id}/who"),
)


@scenario(("GET", "/documents"), *SOURCE_ROUTES)
async def sources(visit: Visit) -> None:
    """Parts of own documents and of foreign ones; who sees a document is not shown to visitors with a scope."""
    listed = await visit.send("GET", "/documents", query="?limit=3")
    own = [row["document_id"] for row in listed.json.get("documents", [])]
    for document_id in (*own, visit.world.known["hidden document"], str(uuid.UUID(int=9))):
        for method, path in SOURCE_ROUTES:
            await visit.send(method, path, document_id=document_id)
        await visit.send(*SOURCE_ROUTES[0], document_id=document_id, query="?start=5&end=40")


@scenario(
    ("POST", "/documents"),
    ("GET", "/documents/{document_id}"),
    ("POST", "/search"),
    ("POST", "/classify"),
    ("DELETE", "/documents/{document_id}"),
    writes=True,
)
async def uploading(visit: Visit) -> None:
    """Uploads into own and foreign branches, under file names that exist elsewhere."""
    own = "/".join(visit.chance.choice([path for path in SHARED if visit.visitor.sees(path)] or [("Nowhere", "yet")]))
    text = f"# Minutes {visit.words.word()}\n\nThe {visit.words.query()} of the meeting."
    stored: list[str] = []
    for category in (own, "", "/".join(visit.words.hidden_path()), f"{own}/New", own):
        fields = [("files", UPLOADED, text)] + ([("category", None, category)] if category else [])
        content, kind = _form(*fields)
        sent = await visit.send("POST", "/documents", content, content_type=kind)
        stored += [row["document_id"] for row in sent.json.get("documents", [])]
    listing = '{"id": "1", "title": "Row", "text": "A row of words.", "category_path": '
    rows = [f'{listing}["{name}"]}}\n' for name in (visit.words.hidden_path()[0], own.split("/", 1)[0])]
    content, kind = _form(("files", "rows.jsonl", "".join(rows)), ("category", None, own))
    sent = await visit.send("POST", "/documents", content, content_type=kind)
    stored += [row["document_id"] for row in sent.json.get("documents", [])]
    await visit.send("POST", "/search", {"query": "minutes meeting"})
    await visit.send("POST", "/classify", {"text": "minutes of the meeting"})
    for document_id in dict.fromkeys(stored):
        await visit.send("GET", "/documents/{document_id}", document_id=document_id)
        await visit.send("DELETE", "/documents/{document_id}", document_id=document_id)


def _foreign_agent(visit: Visit) -> str:
    """An agent outside the scope, or none."""
    return visit.chance.choice((visit.world.known["hidden agent"], str(uuid.UUID(int=5))))


AGENT_ROUTES: tuple[Route, ...] = (
    ("GET", "/agents/{agent_id}"),
    ("GET", "/agents/{agent_id}/manifest"),
    ("GET", "/agents/{agent_id}/editions"),
    ("GET", "/agents/{agent_id}/spending"),
    ("GET", "/agents/{agent_id}/reach"),
)
AGENT_CALLS: tuple[Route, ...] = (("POST", "/agents/{agent_id}/search"), ("POST", "/agents/{agent_id}/ask"))


@scenario(("POST", "/agents/reach"))
async def reach_of_branches(visit: Visit) -> None:
    """Counts of own branches, of foreign ones, and of both together."""
    own, hidden = visit.words.own_path(), visit.words.hidden_path()
    for paths in ([own], [hidden], [own, hidden], [hidden[:1]]):
        await visit.send("POST", "/agents/reach", {"node_paths": paths})


@scenario(("GET", "/agents"), ("POST", "/v1/chat/completions"), *AGENT_ROUTES, *AGENT_CALLS, writes=True)
async def agents(visit: Visit) -> None:
    """An agent that both worlds have, which had a hidden branch before; and a hidden one.

    Unsure answers of the shared agent wait in the review queue, which other visitors see.
    """
    await visit.send("GET", "/agents")
    await visit.send("GET", "/agents", query="?limit=1&offset=1")
    agent_id = visit.chance.choice((visit.world.known["shared agent"], _foreign_agent(visit)))
    for method, path in AGENT_ROUTES:
        await visit.send(method, path, agent_id=agent_id)
    await visit.send("GET", "/agents/{agent_id}/manifest", query="?format=yaml", agent_id=agent_id)
    await _call_agent(visit, agent_id)
    messages = [{"role": "user", "content": visit.words.question()}]
    await visit.send("POST", "/v1/chat/completions", {"model": "agent:Leave desk", "messages": messages})


async def _call_agent(visit: Visit, agent_id: str) -> None:
    search: dict[str, Any] = {"query": visit.words.query()}
    filters = _filters(visit)
    await visit.send(*AGENT_CALLS[0], search if filters is None else search | {"filters": filters}, agent_id=agent_id)
    await visit.send(*AGENT_CALLS[1], {"question": visit.words.question()}, agent_id=agent_id)


@scenario(
    ("POST", "/agents/from-category"),
    *AGENT_ROUTES,
    *AGENT_CALLS,
    ("PUT", "/agents/{agent_id}"),
    ("GET", "/review"),
    ("GET", "/review/{item_id}"),
    ("POST", "/review/{item_id}/approve"),
    ("POST", "/review/{item_id}/correct"),
    ("POST", "/review/{item_id}/skip"),
    ("DELETE", "/agents/{agent_id}"),
    writes=True,
)
async def making_agents(visit: Visit) -> None:
    """An own agent whose uncertain answers wait in the review queue; agents of foreign branches are refused."""
    unsure = {"override_settings": {"features": {"hitl_below_conf": 0.9}}}
    body: dict[str, Any] = {"version": "1.0.0", "node_paths": [visit.words.own_path()], "options": unsure}
    foreign = {"version": "1.0.1", "node_paths": [visit.words.hidden_path()]}
    made = await visit.send("POST", "/agents/from-category", body)
    await visit.send("POST", "/agents/from-category", foreign)
    agent_id = str(made.json.get("agent_id", uuid.UUID(int=3)))
    await _call_agent(visit, agent_id)
    for change in (body | {"version": "1.0.1"}, foreign):
        await visit.send("PUT", "/agents/{agent_id}", change, agent_id=agent_id)
    for method, path in AGENT_ROUTES:
        await visit.send(method, path, agent_id=agent_id)
    waiting = await visit.send("GET", "/review", query="?limit=50")
    items = [row["item_id"] for row in waiting.json.get("items", []) if row["agent_id"] == agent_id]
    for item_id in [*items, visit.world.known["hidden item"]]:
        shown = await visit.send("GET", "/review/{item_id}", item_id=item_id)
        await visit.send("POST", "/review/{item_id}/correct", {"path": visit.words.hidden_path()}, item_id=item_id)
        await _correct_answer(visit, item_id, shown)
        await visit.send("POST", "/review/{item_id}/skip", {"note": "seen"}, item_id=item_id)
        await visit.send("POST", "/review/{item_id}/approve", {}, item_id=item_id)
    for deleted in (agent_id, visit.world.known["hidden agent"]):
        await visit.send("DELETE", "/agents/{agent_id}", agent_id=deleted)


async def _correct_answer(visit: Visit, item_id: str, shown: Received) -> None:
    """Choose a hidden passage for the answer, and then the first of those that the visitor is shown."""
    hidden = f"{visit.world.known['hidden document']}:0"
    own = [row["chunk_id"] for row in shown.json.get("proposal", {}).get("passages", [])][:1]
    for passages in ([*own, hidden], own):
        body = {"passages": passages, "note": "the right ones"}
        await visit.send("POST", "/review/{item_id}/correct", body, item_id=item_id)
    await visit.send("GET", "/review/{item_id}", item_id=item_id)


@scenario(
    ("GET", "/review"),
    ("GET", "/review/{item_id}"),
    ("POST", "/review/{item_id}/approve"),
    ("POST", "/review/{item_id}/correct"),
    ("POST", "/review/{item_id}/skip"),
)
async def reviewing(visit: Visit) -> None:
    """Waiting items, a decided one, hidden ones, and an unknown one."""
    await visit.send("GET", "/review")
    for name in ("decided item", "hidden item", "hidden answer"):
        await visit.send("GET", "/review/{item_id}", item_id=visit.world.known[name])
    hidden = {"passages": [f"{visit.world.known['hidden document']}:0"]}
    for item_id in (visit.world.known["hidden answer"], visit.world.known["decided item"]):
        await visit.send("POST", "/review/{item_id}/correct", hidden, item_id=item_id)
    for item_id in (visit.world.known["hidden item"], str(uuid.UUID(int=11))):
        await visit.send("POST", "/review/{item_id}/approve", {}, item_id=item_id)
        await visit.send("POST", "/review/{item_id}/correct", {"path": visit.words.hidden_path()}, item_id=item_id)
        await visit.send("POST", "/review/{item_id}/skip", {}, item_id=item_id)


@scenario(
    ("GET", "/taxonomy/{version}/tree"),
    ("GET", "/api/taxonomy/tree/{version}"),
    ("GET", "/taxonomy"),
    ("POST", "/taxonomy"),
    ("GET", "/taxonomy/{version}/diff/{base}"),
    ("GET", "/taxonomy/{version}/preview"),
    ("POST", "/taxonomy/{version}/activate"),
    ("POST", "/taxonomy/{version}/rollback"),
)
async def category_tree(visit: Visit) -> None:
    """The visitor's part of the tree; versions and everything about the whole tree are not visible."""
    tree = await visit.send("GET", "/taxonomy/{version}/tree", version="active")
    shown = str(tree.json.get("version", "active")).replace("+", "%2B")
    for version in (shown, "1.0.0", "1.0.1", "newest"):
        await visit.send("GET", "/taxonomy/{version}/tree", version=version)
    await visit.send("GET", "/api/taxonomy/tree/{version}", version=visit.chance.choice(("active", "1.0.1")))
    version = visit.chance.choice(("1.0.0", "1.0.1", "7.0.0"))
    await visit.send("GET", "/taxonomy")
    for path in (visit.words.hidden_path(), ["Handbook", "Board"]):
        await visit.send("POST", "/taxonomy", {"operations": [{"op": "add", "path": path}]})
    await visit.send("GET", "/taxonomy/{version}/diff/{base}", version=version, base="active")
    await visit.send("GET", "/taxonomy/{version}/preview", version=version)
    await visit.send("POST", "/taxonomy/{version}/activate", {}, version=version)
    await visit.send("POST", "/taxonomy/{version}/rollback", {}, version=version)


@scenario(
    ("POST", "/filter/validate"),
    ("POST", "/filter/test"),
    ("GET", "/metrics/filter"),
    ("GET", "/metrics"),
    ("GET", "/audit"),
    ("GET", "/audit/verify"),
    ("GET", "/isolation"),
    ("POST", "/isolation"),
    ("GET", "/keys"),
    ("POST", "/keys"),
    ("DELETE", "/keys/{name}"),
    ("GET", "/settings"),
    ("GET", "/evaluations"),
    ("GET", "/evaluations/{run_id}"),
)
async def filters_and_figures(visit: Visit) -> None:
    """Filters tested on documents of the request; metrics, log and evaluations of the whole service are refused."""
    paths = [visit.words.own_path(), visit.words.hidden_path()]
    await visit.send("POST", "/filter/validate", paths)
    await visit.send("POST", "/filter/validate", [["x/y", None]])
    trial = {"allowed_paths": paths[:1], "test_documents": [{"canonical_path": path} for path in paths]}
    await visit.send("POST", "/filter/test", trial)
    for path in (
        "/metrics/filter",
        "/metrics",
        "/audit",
        "/audit/verify",
        "/isolation",
        "/keys",
        "/settings",
        "/evaluations",
    ):
        await visit.send("GET", path)
    await visit.send("POST", "/isolation", {})
    await visit.send("POST", "/keys", {"name": "mine", "role": "admin"})
    for name in ("administrator", "board"):
        await visit.send("DELETE", "/keys/{name}", name=name)
    await visit.send("GET", "/evaluations/{run_id}", run_id=visit.world.known["hidden evaluation"])


@scenario(("GET", "/tools"), ("POST", "/tools/{name}/approve"), ("DELETE", "/tools/{name}/approve"))
async def tools(visit: Visit) -> None:
    """The tools; only unscoped administrators may approve them."""
    await visit.send("GET", "/tools")
    await visit.send("POST", "/tools/{name}/approve", {"fingerprint": "0" * 64}, name="calculator")
    await visit.send("DELETE", "/tools/{name}/approve", name="calculator")


@scenario(("GET", "/session"), ("DELETE", "/session"))
async def who_is_calling(visit: Visit) -> None:
    """The visitor's own key and branches."""
    await visit.send("GET", "/session")
    await visit.send("DELETE", "/session")


@scenario(("GET", "/health"), ("GET", "/readyz"), ("GET", "/docs"), ("GET", "/openapi.json"))
async def about_the_service(visit: Visit) -> None:
    """The state of the service, and the description of its routes."""
    for path in ("/health", "/readyz", "/docs", "/openapi.json"):
        await visit.send("GET", path)
