"""`/mcp`: the service as a server of the Model Context Protocol, and every agent as a server of its own.

The library answers each message on its own, for the caller of the request: there are no sessions, so that any process
of the service can answer, and nothing is shared between callers.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from fastapi import APIRouter, Request, Response
from pydantic import ValidationError
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from dtrag import __version__, logs
from dtrag.core.access.confinement import confined
from dtrag.delivery.api.audited import add_subjects
from dtrag.delivery.api.dependencies import app_of, service_of
from dtrag.delivery.api.errors import detail_of, invalid_sentence, sentence
from dtrag.delivery.api.permissions import ASK, BROWSE, caller_of
from dtrag.delivery.api.routes import documents
from dtrag.delivery.api.routes.mcp_tools import McpTool, tools_for
from dtrag.delivery.api.routing import JsonObject, JsonRoute
from dtrag.errors import DtragError, InvalidInput, MissingExtra, NotFound

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.server.lowlevel import Server

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
router = APIRouter(route_class=JsonRoute, include_in_schema=False)  # the protocol has descriptions of its own
DOCUMENT = "dtrag://documents/"
"""The URI of a document is this and its id."""
PAGE = 100
"""Documents of one page of `resources/list`."""
INSTRUCTIONS = (
    "The documents of an organisation, as far as your key may see them. `ask` answers a question with quotations; "
    "`search` and then `fetch` read the passages themselves. Cite what you use with title and url."
)


@router.post("/mcp", dependencies=BROWSE)
async def serve(request: Request, body: JsonObject) -> Response:
    """The answer to a message of the Model Context Protocol."""
    await _load_library()
    return _Exchange(_server(request), body)


@router.post("/mcp/agents/{agent_id}", dependencies=ASK)
async def serve_agent(request: Request, agent_id: str, body: JsonObject) -> Response:
    """The same of an agent's own server, which reaches the agent's documents only."""
    app, caller = app_of(request), caller_of(request)
    agent = await app.agents.get(agent_id, caller=caller)
    request.state.caller = replace(caller, access=app.agents.access(agent, caller))
    add_subjects(request, [str(agent.agent_id)])
    await _load_library()
    return _Exchange(_server(request, agent.name), body)


class _Exchange(Response):
    """The response of the library to one message."""

    def __init__(self, server: Server, message: JsonObject) -> None:
        super().__init__()
        self._server = server
        self._message = json.dumps(message).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        waiting: list[Message] = [{"type": "http.request", "body": self._message, "more_body": False}]

        async def replayed() -> Message:
            return waiting.pop() if waiting else await receive()

        manager = StreamableHTTPSessionManager(self._server, json_response=True, stateless=True)
        with confined(scope["state"]["caller"].access):
            async with manager.run():
                await manager.handle_request(scope, replayed, send)


@cache
def _import_library() -> None:
    try:
        import mcp.server.streamable_http_manager  # noqa: F401
    except ImportError as error:
        raise MissingExtra(feature="The server for MCP clients", extra="mcp") from error


async def _load_library() -> None:
    """Import the library in a thread before the first message: that takes a second. Raises `MissingExtra`."""
    if not _import_library.cache_info().currsize:
        await asyncio.to_thread(_import_library)


def _server(request: Request, agent: str | None = None) -> Server:
    """The server for one message of a caller, of an agent with that name or of the whole scope."""
    import mcp_types as types
    from mcp.server.caching import CacheableMethod, CacheHint
    from mcp.server.lowlevel import Server

    caller = caller_of(request)
    tools = tools_for(caller, agent=agent is not None)

    async def list_tools(context: object, params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in tools.values()])

    async def call_tool(context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        if (tool := tools.get(params.name)) is None:
            raise _invalid(request, InvalidInput("There is no such tool. tools/list lists those that you may use."))
        request.state.audited = {"tool": tool.name}
        return await _called(request, tool, params.arguments)

    async def list_documents(context: object, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        query = documents.ListQuery.model_validate({"limit": PAGE, "after": (params and params.cursor) or ""})
        listed = await _or_error(request, documents.documents(request, query))
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=DOCUMENT + each.document_id,
                    name=each.title or each.document_id,
                    description="/".join(each.taxonomy_path),
                    mime_type="text/plain",
                )
                for each in listed.documents
            ],
            next_cursor=listed.next,
        )

    async def read_document(context: object, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        document_id = params.uri.removeprefix(DOCUMENT)
        if document_id == params.uri:
            raise _invalid(request, NotFound(kind="document", name=params.uri[:60]))
        document = await _or_error(request, documents.document(request, document_id, text=True))
        text = types.TextResourceContents(uri=params.uri, mime_type="text/plain", text=document.text or "")
        return types.ReadResourceResult(contents=[text])

    async def list_templates(context: object, params: object) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            uri_template=f"{DOCUMENT}{{document_id}}", name="document", mime_type="text/plain"
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    reads = caller.may("browse")
    server = Server(
        "dtrag",
        version=__version__,
        title=agent or "dtrag",
        instructions=INSTRUCTIONS,
        cache_hints=dict.fromkeys(get_args(CacheableMethod), CacheHint(ttl_ms=0, scope="private")),
        get_tool_input_schema=lambda name: None,  # no argument is repeated in a header: nothing to compare per call
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_documents if reads else None,
        on_read_resource=read_document if reads else None,
        on_list_resource_templates=list_templates if reads else None,
    )
    server.middleware.clear()  # that of the library would send what requests are about to OpenTelemetry
    return server


@cache
def _described(tool: McpTool) -> types.Tool:
    import mcp_types as types

    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.arguments.model_json_schema(),
        output_schema=tool.result.json_schema(mode="serialization"),
        annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )


async def _called(request: Request, tool: McpTool, arguments: dict[str, Any] | None) -> types.CallToolResult:
    """The result of a tool; a refusal is a result, too, which a model can read and correct."""
    import mcp_types as types

    try:
        result = await tool.run(request, tool.parsed(arguments))
    except ValidationError as error:
        request.state.outcome = InvalidInput.http_status
        problem = sentence(invalid_sentence(error))
    except DtragError as error:
        request.state.outcome = error.http_status
        problem = sentence(detail_of(error).text)
    except Exception as error:  # noqa: BLE001 - the boundary: the library would send the text of the exception
        raise _failure(request, error) from None
    else:
        text = json.dumps(result, ensure_ascii=False)
        return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=result)
    return types.CallToolResult(content=[types.TextContent(text=problem)], is_error=True)


async def _or_error(request: Request, work: Awaitable[T]) -> T:
    """The result. Raises `MCPError` for a refusal or a bug."""
    try:
        return await work
    except DtragError as error:
        raise _invalid(request, error) from None
    except Exception as error:  # noqa: BLE001 - as in `_called`
        raise _failure(request, error) from None


def _invalid(request: Request, error: DtragError) -> Exception:
    from mcp.shared.exceptions import MCPError
    from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

    request.state.outcome = error.http_status
    code = INVALID_PARAMS if error.http_status < 500 else INTERNAL_ERROR
    return MCPError(code, sentence(detail_of(error).text), {"type": type(error).__name__})


def _failure(request: Request, error: Exception) -> Exception:
    from mcp.shared.exceptions import MCPError
    from mcp_types import INTERNAL_ERROR

    if isinstance(error, ClientDisconnect):
        return MCPError(INTERNAL_ERROR, "The client has disconnected.")
    service_of(request).telemetry.requests.unexpected()
    _LOG.error("a request failed unexpectedly", exc_info=error)
    request.state.outcome = 500
    return MCPError(INTERNAL_ERROR, f"Internal error; the request id is {logs.request_id.get()}.")
