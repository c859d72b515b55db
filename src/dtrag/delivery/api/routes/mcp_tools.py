"""The tools of the MCP server: a table of what each takes, returns and calls, which are the routes of the service.

Arguments are the bodies of those routes, and results are their responses, so that all protocols return the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from fastapi import Request
from pydantic import BaseModel, Field, TypeAdapter

from dtrag.core.access.api_key import Caller, Need
from dtrag.core.documents import Answer, SearchResult
from dtrag.core.provisions import ShownProvision
from dtrag.core.verification import Verification
from dtrag.delivery.api.audited import add_subjects
from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.permissions import caller_of
from dtrag.delivery.api.routes import agents, cbr, documents, regulations, taxonomy
from dtrag.delivery.api.routes import search as questions
from dtrag.delivery.api.routing import AskRequest, AsOf, SearchRequest, StrictBody, Text
from dtrag.governance.taxonomy import ACTIVE
from dtrag.retrieval.request import MAX_ID, MAX_QUERY

Call = Callable[[Request, Any], Awaitable[object]]
C = TypeVar("C", bound=Call)


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool. `arguments` and `result` are types with a JSON schema; the result is a JSON object."""

    name: str
    title: str
    description: str
    need: Need
    arguments: type[BaseModel]
    result: TypeAdapter[Any]
    call: Call

    def parsed(self, arguments: Mapping[str, Any] | None) -> BaseModel:
        """The arguments. Raises pydantic's `ValidationError`."""
        return self.arguments.model_validate(arguments or {})

    async def run(self, request: Request, arguments: BaseModel) -> dict[str, Any]:
        """The result as JSON. Raises `DtragError`."""
        result: dict[str, Any] = self.result.dump_python(await self.call(request, arguments), mode="json")
        return result


TOOLS: dict[str, McpTool] = {}
"""The tools of `/mcp`."""
AGENT_TOOLS: dict[str, McpTool] = {}
"""Those that an agent's server has in their place: the agent's own search and answers."""


def tools_for(caller: Caller, *, agent: bool) -> dict[str, McpTool]:
    """The tools that the caller may use, by name."""
    return {name: tool for name, tool in (TOOLS | AGENT_TOOLS if agent else TOOLS).items() if caller.may(tool.need)}


def _tool(title: str, need: Need = "browse", *, name: str = "", into: dict[str, McpTool] = TOOLS) -> Callable[[C], C]:
    """Register the decorated function: its docstring is the description, its annotations are the schemas."""

    def enter(call: C) -> C:
        hints, description = get_type_hints(call, include_extras=True), " ".join((call.__doc__ or "").split())
        key = name or call.__name__
        into[key] = McpTool(key, title, description, need, hints["body"], TypeAdapter(hints["return"]), call)
        return call

    return enter


class QueryArguments(StrictBody):
    """A search."""

    query: Text = Field(max_length=MAX_QUERY, description="Words or a question.")


class FoundPassage(BaseModel):
    """A passage to fetch."""

    id: str = Field(description="Id of the passage, for fetch.")
    title: str = Field(description="Title of its document.")
    url: str = Field(description="Source address of its document.")


class FoundPassages(BaseModel):
    """The passages, best first."""

    results: list[FoundPassage] = Field(description="The passages.")

    @classmethod
    def of(cls, results: Sequence[SearchResult]) -> FoundPassages:
        """The passages of a search."""
        return cls(results=[FoundPassage(id=each.chunk_id, title=each.title, url=each.source_url) for each in results])


class FetchArguments(StrictBody):
    """What to fetch."""

    id: Text = Field(max_length=MAX_ID, description="An id from search, or the id of a document.")


class FetchedText(BaseModel):
    """A passage or a document."""

    id: str = Field(description="The requested id.")
    title: str = Field(description="Title of the document.")
    text: str = Field(description="The text, verbatim.")
    url: str = Field(description="Source address of the document.")
    metadata: dict[str, str] = Field(
        description="document_id, category, and the start and end of the text in code points of the document's text."
    )


class ArticleArguments(StrictBody):
    """A provision."""

    reference: Text = Field(
        max_length=regulations.MAX_REFERENCE,
        description="Name or code of a regulation, and an article, appendix or 부칙.",
        examples=["학칙 제21조"],
    )
    as_of: AsOf = None


class NoArguments(StrictBody):
    """Nothing."""


@_tool("Search the documents")
async def search(request: Request, body: QueryArguments) -> FoundPassages:
    """Find the passages of the organisation's documents that fit a question, best first. Read them with fetch."""
    return FoundPassages.of((await questions.search(request, SearchRequest(query=body.query))).results)


@_tool("Search the documents", name="search", into=AGENT_TOOLS)
async def search_of_agent(request: Request, body: QueryArguments) -> FoundPassages:
    """Find the passages of the agent's documents that fit a question, best first. Read them with fetch."""
    narrowed = agents.AgentSearch.model_validate({"query": body.query})
    return FoundPassages.of((await agents.search(request, request.path_params["agent_id"], narrowed)).results)


@_tool("Read a passage or a document")
async def fetch(request: Request, body: FetchArguments) -> FetchedText:
    """Read the text of a passage that search has found, or of a whole document. Quote it verbatim."""
    document_id, is_passage, _ = body.id.partition(":")
    add_subjects(request, [document_id[: documents.SHOWN_ID]])
    app, access = app_of(request), caller_of(request).access
    if is_passage:
        passage = await app.passage(body.id, scope=access)
        text, start, category = passage.text, passage.start, passage.taxonomy_path
        title, url = passage.title, passage.source_url
    else:
        document, text = await app.document(body.id, scope=access)
        start, category = 0, list(document.taxonomy_path)
        title, url = document.title, document.source_url
    span = {"start": str(start), "end": str(start + len(text))}
    metadata = {"document_id": document_id, "category": "/".join(category), **span}
    return FetchedText(id=body.id, title=title, text=text, url=url, metadata=metadata)


@_tool("Answer a question")
async def ask(request: Request, body: AskRequest) -> Answer:
    """Answer a question with quotations from the documents and their citations, or report that they do not answer.

    No language model writes the answer.
    """
    return await questions.answer_question(request, body, models=False)


@_tool("Answer a question", "ask", name="ask", into=AGENT_TOOLS)
async def ask_agent(request: Request, body: agents.AgentQuestion) -> agents.AgentAskResponse:
    """Answer a question from the agent's documents with citations, or report that they do not answer."""
    return await agents.answer_question(request, request.path_params["agent_id"], body)


@_tool("Read a provision")
async def get_article(request: Request, body: ArticleArguments) -> ShownProvision:
    """Read one article, appendix or addendum of a Korean regulation with its whole text and its citations."""
    return await regulations.show(request, body.reference, body.as_of)


@_tool("List the categories")
async def list_categories(request: Request, body: NoArguments) -> taxonomy.TreeShape:
    """List the categories of the documents that you may see, with the number of documents in each."""
    return await taxonomy.tree(request, ACTIVE)


@_tool("Verify citations")
async def verify_citations(request: Request, body: regulations.VerificationBody) -> Verification:
    """Check whether the articles of regulations that a text cites exist and say what the text quotes."""
    return await regulations.verify(request, body)


@_tool("Suggest earlier cases", "read")
async def suggest_cases(request: Request, body: cbr.SuggestBody) -> cbr.SuggestResponse:
    """Find earlier questions that are similar, with what was answered then."""
    return await cbr.suggest(request, body)
