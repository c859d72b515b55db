"""The requests of visitors of the twin worlds, on every route of the service; those of `/cbr` are in `case_scenarios`.

To add a route: write a coroutine that takes a `Visit`, and decorate it with the routes that it requests. A route that
tells nothing about documents, categories or callers can be entered in `EXEMPT` instead. A test fails for a route that
is in neither.
"""

from __future__ import annotations

import unicodedata
import uuid
from typing import Any
from urllib.parse import quote

from dtrag.core.document_listing import SORTS
from dtrag.isolation.case_scenarios import WHOLE_TREE
from dtrag.isolation.library import OWN_WORDS, SHARED, UPLOADED
from dtrag.isolation.regulation_books import CITING_TEXT, DAYS, EVERYDAY, NAMES, REFERENCES
from dtrag.isolation.visits import SCENARIOS, SEARCH, Route, Visit, scenario

EXEMPT: dict[Route, str] = {
    "GET /livez": "Reports liveness without a key and reads nothing.",
    "GET /statements/{language}": "Returns a table of the program, the same for everybody.",
    "GET /sign-in": "Lists the identity providers of a file, the same for everybody.",
    "GET /sign-in/{provider}": "Leads to an identity provider and reads nothing of this collection.",
    "GET /sign-in/{provider}/callback": "Answers with a cookie, for a person whom an identity provider names.",
    "GET /sign-in/{provider}/sign-out": "Leads to an identity provider and reads nothing of this collection.",
    "POST /session": "Answers with the name, role and branches of the key in the body, which the sender holds.",
}
"""Routes that are not compared, with reasons."""
UNKNOWN = str(uuid.UUID(int=9))
"""The id of nothing."""
ASK: Route = "POST /ask"
CHAT: Route = "POST /chat/run"
COMPLETIONS: Route = "POST /v1/chat/completions"
RESPONSES: Route = "POST /v1/responses"
BUNDLE: Route = "POST /traces/{trace_id}/bundle"
REPLAY: Route = "POST /traces/{trace_id}/replay"
EMBEDDINGS: Route = "POST /v1/embeddings"
DOCUMENT: Route = "GET /documents/{document_id}"
DELETE_DOCUMENT: Route = "DELETE /documents/{document_id}"
_BOUNDARY = "dtrag-twin-worlds"


def routes_tried() -> frozenset[Route]:
    """The routes of all scenarios."""
    return frozenset(route for entry in SCENARIOS for route in entry.routes)


def _form(*parts: tuple[str, str | None, str]) -> tuple[bytes, str]:
    """A form of (field, file name or None, text), and its content type."""
    pieces = []
    for field, file, text in parts:
        name = f'name="{field}"' + (f'; filename="{file}"' if file is not None else "")
        pieces.append(f"--{_BOUNDARY}\r\nContent-Disposition: form-data; {name}\r\n\r\n{text}\r\n")
    return f"{''.join(pieces)}--{_BOUNDARY}--\r\n".encode(), f"multipart/form-data; boundary={_BOUNDARY}"


def _filters(visit: Visit) -> dict[str, Any]:
    """`filters` of every kind, on foreign branches in other spellings and on the visitor's own; or no such field."""
    word, own, hidden = visit.words, visit.words.own_path(), visit.words.hidden_path()
    paths: tuple[list[list[Any]], ...] = (
        [own],
        [own[:1]],
        [hidden],
        [own, hidden],
        [hidden[:1]],
        [[hidden[0][:2]]],
        [[word.disguised(name) for name in hidden]],
        [[name.upper() for name in hidden]],
        [[unicodedata.normalize("NFD", name) for name in hidden]],
        [[*own, "..", *hidden]],
        [[word.word(), "x;y"]],
        [[word.word(), None]],
        [],
    )
    key = visit.chance.choice(("taxonomy_paths", "allowed_category_paths", "canonical_in"))
    others: tuple[dict[str, Any], ...] = (
        {"content_types": ["text/markdown"]},
        {"content_types": ["application/json"]},
        {"date_from": "2000-01-01", "date_to": "2100-01-01"},
        {word.word(): 1},
        {"metadata": {word.word(): 1}},
        {"metadata": {"title": word.word()}, "content_types": ["application/json"]},
    )
    if visit.chance.random() < 0.4:
        return {}
    return {"filters": visit.chance.choice((*({key: each} for each in paths), *others))}


def _search(visit: Visit) -> dict[str, Any]:
    body: dict[str, Any] = {
        "query": visit.words.query(),
        "mode": visit.chance.choice(("hybrid", "hybrid", "lexical", "strict", "vector")),
        "top_k": visit.chance.choice((1, 5, 10, 40)),
        "explain": visit.chance.random() < 0.3,
    }
    if visit.chance.random() < 0.2:
        body["explain_documents"] = [visit.known("hidden document"), UNKNOWN]
    if visit.chance.random() < 0.3:
        body["as_of"] = visit.chance.choice(DAYS)
    return body | _filters(visit)


@scenario(SEARCH)
async def searching(visit: Visit) -> None:
    """Words of every kind, in every mode; documents that mention others by their titles; and what is refused."""
    for _ in range(4):
        await visit.send(SEARCH, _search(visit))
    for _ in range(2):
        query = f"See also the charter {visit.words.word()}"
        await visit.send(SEARCH, {"query": query, "mode": "hybrid", "top_k": 40})
    await visit.send(SEARCH, {"query": "x", "mode": visit.words.word(), "top_k": visit.chance.choice((0, 5))})
    for mode in ("strict", "lexical"):
        await visit.send(SEARCH, {"query": visit.chance.choice(visit.words.hidden), "mode": mode})


@scenario(SEARCH)
async def searching_twice(visit: Visit) -> None:
    """The same search twice, and one that the owner of everything has sent before: the cache makes no difference."""
    body, other = _search(visit), _search(visit)
    await visit.world.send(WHOLE_TREE, "POST", "/search", other)
    for sent in (body, body, other):
        await visit.send(SEARCH, sent)


@scenario("POST /search/batch")
async def batch(visit: Visit) -> None:
    """Several searches in one request, some of them refused."""
    await visit.send("POST /search/batch", {"searches": [_search(visit) for _ in range(3)]})


@scenario("POST /search/neural")
async def neural(visit: Visit) -> None:
    """Past cases by words of every kind."""
    await visit.send("POST /search/neural", {"query": visit.words.question(), "limit": 5})


@scenario(ASK)
async def asking(visit: Visit) -> None:
    """Questions about words of every kind."""
    for _ in range(2):
        await visit.send(ASK, {"question": visit.words.question()} | _filters(visit))


REGULATION_LISTS: tuple[Route, ...] = ("GET /regulations", "GET /regulations/citations")


@scenario(
    *REGULATION_LISTS,
    *(f"GET /regulations/{name}" for name in ("show", "outline", "text", "diff", "stale")),
    *("POST /regulations/search", "POST /regulations/verify"),
)
async def regulations(visit: Visit) -> None:
    """Regulations of the visitor's branches, which cite hidden ones; one world hides a regulation of the same name."""
    choose = visit.chance.choice
    await visit.get(*REGULATION_LISTS)
    await visit.send("GET /regulations", query=choose(("?limit=2", "?limit=1", "?limit=1&offset=1")))
    for reference in visit.chance.sample(REFERENCES, 5):
        await visit.send("GET /regulations/show", query=f"?reference={quote(reference)}")
    for name in NAMES:
        await visit.send("GET /regulations/outline", query=f"?regulation={quote(name)}")
        await visit.send("GET /regulations/text", query=f"?regulation={quote(name)}")
    for query in ("?kind=missing", f"?regulation={quote(choose(NAMES))}"):
        await visit.send("GET /regulations/citations", query=query)
    days = "before=2019-01-01&after=2026-01-01"
    await visit.send("GET /regulations/diff", query=f"?regulation={quote(choose(NAMES))}&{days}")
    for day in (choose(DAYS), DAYS[-1]):
        await visit.send("GET /regulations/stale", query=f"?as_of={day}")
    for regulation in (None, choose(NAMES)):
        text = CITING_TEXT + ", ".join(visit.chance.sample(REFERENCES, 5))
        await visit.send("POST /regulations/verify", {"text": text, "regulation": regulation})
    for query in (choose(EVERYDAY), visit.words.query()):
        await visit.send("POST /regulations/search", {"query": query, "top_k": choose((None, 3, 40))})


@scenario("GET /lexicon", "POST /lexicon", "DELETE /lexicon/{number}")
async def lexicon(visit: Visit) -> None:
    """The entries of all callers; only unscoped administrators may read or change them."""
    await visit.get("GET /lexicon")
    spoken, official = OWN_WORDS[0]
    await visit.send("POST /lexicon", {"entries": [{"spoken": spoken, "official": [*official, "휴학"]}]})
    await visit.send("DELETE /lexicon/{number}", number=str(len(OWN_WORDS)))


@scenario(SEARCH, ASK, CHAT, COMPLETIONS)
async def everyday_words(visit: Visit) -> None:
    """Questions that only the regulation pack can answer, whose lexicon, ranking and citations stay in the scope."""
    for mode in ("hybrid", "lexical"):
        body = {"query": visit.chance.choice(EVERYDAY), "mode": mode, "top_k": 20, "explain": True}
        await visit.send(SEARCH, body)
    question = visit.chance.choice(EVERYDAY)
    await visit.send(ASK, {"question": question})
    await visit.send(CHAT, {"message": question})
    await visit.send(COMPLETIONS, {"model": "dtrag", "messages": [{"role": "user", "content": question}]})


@scenario("POST /classify")
async def classifying(visit: Visit) -> None:
    """One word, several words, and a text: candidates and confidence come from the visitor's branches alone."""
    words = visit.words
    await visit.send("POST /classify", {"text": words.word()})
    await visit.send("POST /classify", {"text": words.query(), "title": words.word()})
    text = " ".join(words.query() for _ in range(6))
    await visit.send("POST /classify", {"text": text, "chunk_id": "c-1"})


CONVERSATION = "/conversations/{conversation_id}"


@scenario(CHAT, "GET /conversations", f"GET {CONVERSATION}", f"PUT {CONVERSATION}", f"DELETE {CONVERSATION}")
async def conversing(visit: Visit) -> None:
    """A question and a follow-up in one conversation; then the conversation itself, and an unknown one."""
    name = f"talk-{visit.chance.randrange(10**9)}"
    for question in (visit.words.question(), "And how long?"):
        body: dict[str, Any] = {"message": question, "conversation_id": name}
        if visit.chance.random() < 0.3:
            body["context"] = _filters(visit) | {"top_k": 7}
        await visit.send(CHAT, body)
    for talk in (name, ADMINISTRATORS):
        await visit.send(f"PUT {CONVERSATION}", {"title": visit.words.word()}, conversation_id=talk)
    for query in ("?limit=3", f"?q={quote(visit.words.word())}"):
        await visit.send("GET /conversations", query=query)
    for method, talk in (("GET", name), ("GET", ADMINISTRATORS), ("DELETE", ADMINISTRATORS), ("DELETE", name)):
        await visit.send(f"{method} {CONVERSATION}", conversation_id=talk)


ADMINISTRATORS = "administrators-talk"
"""A conversation of one world, which is no visitor's."""


@scenario("POST /chat/stream")
async def streaming(visit: Visit) -> None:
    """The events of an answer, with a history that the client keeps."""
    texts = (("user", visit.words.question()), ("assistant", visit.words.query()), ("user", visit.words.question()))
    await visit.send("POST /chat/stream", {"messages": [{"role": role, "content": text} for role, text in texts]})
    await visit.send("POST /chat/stream", {"message": visit.words.question(), "agent_id": _foreign_agent(visit)})


@scenario("GET /v1/models", "GET /v1/models/{model}", COMPLETIONS, RESPONSES, EMBEDDINGS)
async def openai_protocol(visit: Visit) -> None:
    """The same answers for clients of the OpenAI protocol, whole and as a stream."""
    await visit.get("GET /v1/models")
    for model in ("dtrag", "agent:Leave desk", "agent:Board desk", f"agent:{_foreign_agent(visit)}", "gpt"):
        await visit.send("GET /v1/models/{model}", model=model.replace(" ", "%20"))
    messages = [{"role": "user", "content": visit.words.question()}]
    for model, stream in (("dtrag", False), ("dtrag", True), ("agent:Board desk", False)):
        await visit.send(COMPLETIONS, {"model": model, "messages": messages, "stream": stream})
        await visit.send(RESPONSES, {"model": model, "input": messages, "stream": stream})
    await visit.send(EMBEDDINGS, {"model": "dtrag", "input": [visit.words.query()]})


RETRIEVAL: Route = "POST /retrieval"


@scenario(RETRIEVAL)
async def external_knowledge(visit: Visit) -> None:
    """Own, foreign and unknown knowledge for Dify, with conditions that the database decides and others."""
    words, choose = visit.words, visit.chance.choice
    own, hidden = "/".join(words.own_path()), "/".join(words.hidden_path())
    conditions = (
        {"name": "category", "comparison_operator": "is", "value": own},
        {"name": "category", "comparison_operator": "in", "value": [own, hidden]},
        {"name": ["title", "category"], "comparison_operator": "not contains", "value": words.word()},
        {"name": "title", "comparison_operator": "not empty"},
        {"name": "as_of", "comparison_operator": choose(("before", "after")), "value": choose(DAYS)},
        {"name": words.word(), "comparison_operator": "is", "value": "x"},
    )
    agents = ("agent:Leave desk", "agent:Board desk", f"agent:{_foreign_agent(visit)}")
    for knowledge in ("all", "all", *agents, own, hidden, words.hidden_path()[0], words.word()):
        body: dict[str, Any] = {
            "knowledge_id": knowledge,
            "query": words.query(),
            "retrieval_setting": {"top_k": choose((1, 10)), "score_threshold": choose((0.0, 0.3))},
        }
        if visit.chance.random() < 0.6:
            operator, chosen = choose(("and", "or")), visit.chance.sample(conditions, 2)
            body["metadata_condition"] = {"logical_operator": operator, "conditions": chosen}
        await visit.send(RETRIEVAL, body)


MCP: tuple[Route, Route] = ("POST /mcp", "POST /mcp/agents/{agent_id}")


async def _mcp(visit: Visit, method: str, agent_id: str = "", **params: Any) -> Any:
    """The result of a message to a server of the Model Context Protocol."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    if agent_id:
        return (await visit.send(MCP[1], message, agent_id=agent_id)).get("result", {})
    return (await visit.send(MCP[0], message)).get("result", {})


@scenario(*MCP, writes=True)
async def tools_of_chat_programs(visit: Visit) -> None:
    """Every tool, the list of documents and hidden ids, of the whole scope and of agents; unsure answers are queued."""
    words, choose = visit.words, visit.chance.choice
    hidden = (visit.known("hidden document"), UNKNOWN)
    for agent_id in ("", visit.known("shared agent"), _foreign_agent(visit)):
        await _mcp(visit, "tools/list", agent_id)
        calls: list[tuple[str, dict[str, Any]]] = [
            ("ask", {"question": words.question()} | _filters(visit)),
            ("get_article", {"reference": choose(REFERENCES), "as_of": choose((None, *DAYS))}),
            ("list_categories", {}),
            ("verify_citations", {"text": CITING_TEXT + choose(REFERENCES)}),
            ("suggest_cases", {"query": words.question()}),
            *(("fetch", {"id": key + passage}) for key in hidden for passage in ("", ":0")),
        ]
        searched = await _mcp(visit, "tools/call", agent_id, name="search", arguments={"query": words.query()})
        rows = searched.get("structuredContent", {}).get("results", [])[:2]
        for name, arguments in [*calls, *(("fetch", {"id": row["id"]}) for row in rows)]:
            await _mcp(visit, "tools/call", agent_id, name=name, arguments=arguments)
        listed = await _mcp(visit, "resources/list", agent_id)
        for key in [
            *(row["uri"] for row in listed.get("resources", [])[:1]),
            *(f"dtrag://documents/{k}" for k in hidden),
        ]:
            await _mcp(visit, "resources/read", agent_id, uri=key)


@scenario("GET /traces", "GET /traces/{trace_id}", REPLAY, BUNDLE, ASK)
async def tracing(visit: Visit) -> None:
    """Traces of answers and their replays; those of an administrator are not visible."""
    question = visit.words.question()
    answered = await visit.send(ASK, {"question": question})
    for trace_id in (str(answered.get("trace_id")), visit.known("administrator's trace")):
        await visit.send("GET /traces/{trace_id}", trace_id=trace_id)
        for body in ({"question": question}, {}):
            await visit.send(REPLAY, body, trace_id=trace_id)
            await visit.send(BUNDLE, body, trace_id=trace_id)
    for limit in (2, 1_000):
        await visit.send("GET /traces", query=f"?limit={limit}")


@scenario(CHAT, "POST /chat/feedback", writes=True)
async def rating(visit: Visit) -> None:
    """Feedback on one's own answer, on an administrator's, and on one that does not exist.

    Answers that a visitor finds wrong wait in the review queue, which other visitors see.
    """
    answered = await visit.send(CHAT, {"message": visit.words.question()})
    own = str(answered.get("metadata", {}).get("trace_id"))
    for trace_id in (own, own, visit.known("administrator's trace"), UNKNOWN):
        await visit.send("POST /chat/feedback", {"trace_id": trace_id, "thumbs": visit.chance.choice(("up", "down"))})
    await visit.send("POST /chat/feedback", {"trace_id": own, "rating": 3, "reason": visit.words.word()})


@scenario("GET /documents", "GET /overview", DOCUMENT, DELETE_DOCUMENT)
async def documents(visit: Visit) -> None:
    """Lists with counts, own documents, and foreign ones, which are answered like nonexistent ones."""
    await visit.get("GET /overview")
    listed = await visit.send("GET /documents", query=f"?limit=6&offset={visit.chance.choice((0, 0, 5, 500))}")
    for row in listed.get("documents", [])[:2]:
        await visit.send(DOCUMENT, document_id=row["document_id"])
    branch = "/".join(visit.chance.choice((visit.words.own_path(), visit.words.hidden_path())))
    sort = visit.chance.choice(SORTS)
    for query in (f"q={quote(visit.words.word())}&sort={sort}", f"category={quote(branch)}&sort={sort}"):
        await visit.send("GET /documents", query=f"?limit=3&{query}")
    following = await visit.send("GET /documents", query=f"?limit=2&sort={sort}")
    await visit.send("GET /documents", query=f"?limit=2&sort={sort}&after={quote(following.get('next') or '')}")
    foreign = visit.chance.choice((visit.known("hidden document"), UNKNOWN, "..%2f..%2fetc"))
    for route in (DOCUMENT, DELETE_DOCUMENT):
        await visit.send(route, document_id=foreign)


SOURCE_ROUTES: tuple[Route, ...] = tuple(f"{DOCUMENT}/{part}" for part in ("text", "passages", "who"))


@scenario("GET /documents", *SOURCE_ROUTES)
async def sources(visit: Visit) -> None:
    """Parts of own documents and of foreign ones; who sees a document is not shown to visitors with a scope."""
    listed = await visit.send("GET /documents", query="?limit=3")
    own = [row["document_id"] for row in listed.get("documents", [])]
    for document_id in (*own, visit.known("hidden document"), UNKNOWN):
        for route in SOURCE_ROUTES:
            await visit.send(route, document_id=document_id)
        await visit.send(SOURCE_ROUTES[0], document_id=document_id, query="?start=5&end=40")


@scenario("POST /documents", DOCUMENT, SEARCH, "POST /classify", DELETE_DOCUMENT, writes=True)
async def uploading(visit: Visit) -> None:
    """Uploads into own and foreign branches, under file names that exist elsewhere."""
    own = "/".join(visit.chance.choice([path for path in SHARED if visit.visitor.sees(path)] or [("Nowhere", "yet")]))
    text = f"# Minutes {visit.words.word()}\n\nThe {visit.words.query()} of the meeting."
    categories = (own, "", "/".join(visit.words.hidden_path()), f"{own}/New", own)
    names = (visit.words.hidden_path()[0], own.split("/", 1)[0])
    row = '{"id": "1", "title": "Row", "text": "A row of words.", "category_path": '
    rows = "".join(f'{row}["{name}"]}}\n' for name in names)
    stored: list[str] = []
    for file, content, category in (*((UPLOADED, text, category) for category in categories), ("r.jsonl", rows, own)):
        body, kind = _form(("files", file, content), *([("category", None, category)] if category else []))
        sent = await visit.send("POST /documents", body, content_type=kind)
        stored += [row["document_id"] for row in sent.get("documents", [])]
    await visit.send(SEARCH, {"query": "minutes meeting"})
    await visit.send("POST /classify", {"text": "minutes of the meeting"})
    for document_id in dict.fromkeys(stored):
        for route in (DOCUMENT, DELETE_DOCUMENT):
            await visit.send(route, document_id=document_id)


JOBS: tuple[Route, ...] = ("GET /jobs/{job_id}", "POST /jobs/{job_id}/retry", "POST /jobs/{job_id}/cancel")


@scenario("POST /documents", "GET /jobs", *JOBS, writes=True)
async def queueing(visit: Visit) -> None:
    """Uploads that wait, into own and foreign branches, beside a hidden one that waits under the same name."""
    own = "/".join(visit.chance.choice([path for path in SHARED if visit.visitor.sees(path)] or [("Nowhere", "yet")]))
    stored = [visit.known("hidden job"), UNKNOWN]
    for category in (own, "", "/".join(visit.words.hidden_path()), f"{own}/New"):
        field = [("category", None, category)] if category else []
        body, kind = _form(("files", UPLOADED, "# Minutes\n\nA meeting."), *field)
        sent = await visit.send("POST /documents", body, query="?wait=false", content_type=kind)
        stored += [sent["job_id"]] if "job_id" in sent else []
    await visit.send("GET /jobs", query=visit.chance.choice(("", "?limit=2&offset=1", "?state=waiting&kind=ingest")))
    for job_id in stored:
        for route in JOBS:
            await visit.send(route, job_id=job_id)
    await visit.send("GET /jobs")


AGENT = "/agents/{agent_id}"
AGENT_ROUTES: tuple[Route, ...] = (
    f"GET {AGENT}",
    *(f"GET {AGENT}/{part}" for part in ("manifest", "editions", "spending", "reach")),
)
AGENT_CALLS: tuple[Route, ...] = (f"POST {AGENT}/search", f"POST {AGENT}/ask")


def _foreign_agent(visit: Visit) -> str:
    """An agent outside the scope, or none."""
    return visit.chance.choice((visit.known("hidden agent"), UNKNOWN))


@scenario("POST /agents/reach")
async def reach_of_branches(visit: Visit) -> None:
    """Counts of own branches, of foreign ones, and of both together."""
    own, hidden = visit.words.own_path(), visit.words.hidden_path()
    for paths in ([own], [hidden], [own, hidden], [hidden[:1]]):
        await visit.send("POST /agents/reach", {"node_paths": paths})


@scenario("GET /agents", COMPLETIONS, *AGENT_ROUTES, *AGENT_CALLS, writes=True)
async def agents(visit: Visit) -> None:
    """An agent that both worlds have, which had a hidden branch before; and a hidden one.

    Unsure answers of the shared agent wait in the review queue, which other visitors see.
    """
    for query in ("", "?limit=1&offset=1"):
        await visit.send("GET /agents", query=query)
    agent_id = visit.chance.choice((visit.known("shared agent"), _foreign_agent(visit)))
    for route in AGENT_ROUTES:
        await visit.send(route, agent_id=agent_id)
    await visit.send(f"GET {AGENT}/manifest", query="?format=yaml", agent_id=agent_id)
    await _call_agent(visit, agent_id)
    messages = [{"role": "user", "content": visit.words.question()}]
    await visit.send(COMPLETIONS, {"model": "agent:Leave desk", "messages": messages})


async def _call_agent(visit: Visit, agent_id: str) -> None:
    await visit.send(AGENT_CALLS[0], {"query": visit.words.query()} | _filters(visit), agent_id=agent_id)
    await visit.send(AGENT_CALLS[1], {"question": visit.words.question()}, agent_id=agent_id)


REVIEW_READS: tuple[Route, ...] = ("GET /review", "GET /review/{item_id}")
DECISIONS: tuple[Route, ...] = tuple(
    f"POST /review/{{item_id}}/{decision}" for decision in ("approve", "correct", "skip")
)
APPROVE, CORRECT, SKIP = DECISIONS


@scenario(
    *("POST /agents/from-category", f"PUT {AGENT}", f"DELETE {AGENT}"),
    *(*AGENT_ROUTES, *AGENT_CALLS, *REVIEW_READS, *DECISIONS),
    writes=True,
)
async def making_agents(visit: Visit) -> None:
    """An own agent whose uncertain answers wait in the review queue; agents of foreign branches are refused."""
    unsure = {"override_settings": {"features": {"hitl_below_conf": 0.9}}}
    body: dict[str, Any] = {"version": "1.0.0", "node_paths": [visit.words.own_path()], "options": unsure}
    foreign = {"version": "1.0.1", "node_paths": [visit.words.hidden_path()]}
    made = await visit.send("POST /agents/from-category", body)
    await visit.send("POST /agents/from-category", foreign)
    agent_id = str(made.get("agent_id", UNKNOWN))
    await _call_agent(visit, agent_id)
    for change in (body | {"version": "1.0.1"}, foreign):
        await visit.send(f"PUT {AGENT}", change, agent_id=agent_id)
    for route in AGENT_ROUTES:
        await visit.send(route, agent_id=agent_id)
    waiting = await visit.send("GET /review", query="?limit=50")
    items = [row["item_id"] for row in waiting.get("items", []) if row["agent_id"] == agent_id]
    for item_id in [*items, visit.known("hidden item")]:
        shown = await visit.send("GET /review/{item_id}", item_id=item_id)
        # A hidden passage for the answer, and then the first of those that the visitor is shown.
        shown_passages = [row["chunk_id"] for row in shown.get("proposal", {}).get("passages", [])][:1]
        await visit.send(CORRECT, {"path": visit.words.hidden_path()}, item_id=item_id)
        for passages in ([*shown_passages, f"{visit.known('hidden document')}:0"], shown_passages):
            await visit.send(CORRECT, {"passages": passages, "note": "the right ones"}, item_id=item_id)
        await visit.send("GET /review/{item_id}", item_id=item_id)
        await visit.send(SKIP, {"note": "seen"}, item_id=item_id)
        await visit.send(APPROVE, {}, item_id=item_id)
    for deleted in (agent_id, visit.known("hidden agent")):
        await visit.send(f"DELETE {AGENT}", agent_id=deleted)


@scenario(*REVIEW_READS, *DECISIONS)
async def reviewing(visit: Visit) -> None:
    """Waiting items, a decided one, hidden ones, and an unknown one."""
    await visit.get("GET /review")
    for name in ("decided item", "hidden item", "hidden answer"):
        await visit.send("GET /review/{item_id}", item_id=visit.known(name))
    hidden = {"passages": [f"{visit.known('hidden document')}:0"]}
    for name in ("hidden answer", "decided item"):
        await visit.send(CORRECT, hidden, item_id=visit.known(name))
    for item_id in (visit.known("hidden item"), UNKNOWN):
        await visit.send(APPROVE, {}, item_id=item_id)
        await visit.send(CORRECT, {"path": visit.words.hidden_path()}, item_id=item_id)
        await visit.send(SKIP, {}, item_id=item_id)


TREE: Route = "GET /taxonomy/{version}/tree"
TREE_AGAIN: Route = "GET /api/taxonomy/tree/{version}"
VERSION_ROUTES: dict[Route, Any] = {
    "GET /taxonomy/{version}/diff/{base}": None,
    "GET /taxonomy/{version}/preview": None,
    "POST /taxonomy/{version}/activate": {},
    "POST /taxonomy/{version}/rollback": {},
}
"""With bodies."""


@scenario(TREE, TREE_AGAIN, "GET /taxonomy", "POST /taxonomy", *VERSION_ROUTES)
async def category_tree(visit: Visit) -> None:
    """The visitor's part of the tree; versions and everything about the whole tree are not visible."""
    tree = await visit.send(TREE, version="active")
    for version in (str(tree.get("version", "active")).replace("+", "%2B"), "1.0.0", "1.0.1", "newest"):
        await visit.send(TREE, version=version)
    await visit.send(TREE_AGAIN, version=visit.chance.choice(("active", "1.0.1")))
    await visit.get("GET /taxonomy")
    for path in (visit.words.hidden_path(), ["Handbook", "Board"]):
        await visit.send("POST /taxonomy", {"operations": [{"op": "add", "path": path}]})
    version = visit.chance.choice(("1.0.0", "1.0.1", "7.0.0"))
    for route, body in VERSION_ROUTES.items():
        await visit.send(route, body, version=version, base="active")


FIGURES: tuple[Route, ...] = (
    *("GET /metrics/filter", "GET /metrics", "GET /audit", "GET /audit/verify", "GET /isolation", "GET /keys"),
    *("GET /settings", "GET /evaluations", "GET /health", "GET /readyz", "GET /docs", "GET /openapi.json"),
)
"""Figures of the whole service, its state, and the description of its routes."""
REFUSED: dict[Route, Any] = {
    "POST /isolation": {},
    "POST /backups": None,
    "POST /sources/sync": {},
    "POST /evaluations": {"dataset": "mine", "questions": [{"text": "What is new?", "answerable": False}]},
    "POST /keys": {"name": "mine", "role": "admin"},
    "POST /tools/{name}/approve": {"fingerprint": "0" * 64},
    "DELETE /tools/{name}/approve": None,
    "PUT /settings/{name}": {"value": "*", "accept_widening": True},
    "DELETE /settings/{name}": None,
}
"""Changes that only administrators of the whole tree may make, with bodies."""


@scenario(
    *("POST /filter/validate", "POST /filter/test", "DELETE /keys/{name}", "GET /evaluations/{run_id}"),
    *("GET /tools", "GET /session", "DELETE /session", *FIGURES, *REFUSED),
)
async def filters_and_figures(visit: Visit) -> None:
    """Filters tested on documents of the request, the own key, and what concerns the whole service."""
    paths = [visit.words.own_path(), visit.words.hidden_path()]
    for rows in (paths, [["x/y", None]]):
        await visit.send("POST /filter/validate", rows)
    trial = {"allowed_paths": paths[:1], "test_documents": [{"canonical_path": path} for path in paths]}
    await visit.send("POST /filter/test", trial)
    await visit.get(*FIGURES, "GET /tools", "GET /session")
    for route, body in REFUSED.items():
        await visit.send(route, body, name="calculator")
    for name in ("administrator", "board"):
        await visit.send("DELETE /keys/{name}", name=name)
    await visit.send("GET /evaluations/{run_id}", run_id=visit.known("hidden evaluation"))
    await visit.send("DELETE /session")
