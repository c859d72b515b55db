"""Agents: created for branches, stored in editions, and limited to their manifests in every search and answer.

An agent only restricts: its users see the intersection of its branches and their own access.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypedDict, Unpack

from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.scope import Access, Grant, Viewer, lies_within, scope_rows
from dtrag.core.agent import MILLION, Agent, AgentEdition, Spending, SpendingToday, allowed_tools
from dtrag.core.chat import Message, Usage
from dtrag.core.documents import SearchMetrics, SearchResult, uuid_or_none
from dtrag.core.manifest import AgentManifest, manifest_from_category
from dtrag.core.statements import stated
from dtrag.core.taxonomy.review import OfferedAnswer
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.errors import Advice, BudgetSpent, Conflict, FilterBypass, InvalidInput, NotFound
from dtrag.governance.review import offered_answer
from dtrag.pipeline.execution import Pipeline
from dtrag.pipeline.run_context import Emit
from dtrag.pipeline.state import PipelineRequest, PipelineResponse
from dtrag.ports import AgentStore, Index, Recorder, unrecorded
from dtrag.retrieval.engine import HybridSearchEngine
from dtrag.settings import Settings

MAX_LIMIT = 1_000
SPENT = stated(
    "budget_spent", "The agent's budget for today is used up: no language model was called, the answer is quoted."
)
HITL = stated("agent_review", "The confidence is below the agent's threshold: the answer is in the review queue.")
HITL_FULL = stated(
    "review_queue_full",
    "The confidence is below the agent's threshold, but the review queue is full: check the sources.",
)


class ReviewQueue(Protocol):
    """Receives answers that need a review; returns whether they are in the queue."""

    async def offer_answer(
        self, offered: OfferedAnswer, viewer: Viewer | None, *, agent_id: uuid.UUID, grant: Grant
    ) -> bool: ...


class AgentSearchOptions(TypedDict, total=False):
    """Options of an agent's search; the numbers of candidates are those of its manifest."""

    mode: str
    correlation_id: str | None
    explain: bool
    explain_documents: Sequence[str]
    highlight: bool


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of an agent's model calls per day: tokens, and won."""

    tokens: int
    krw: float


def budget(settings: Settings) -> Budget:
    """The default budget, from the settings."""
    return Budget(settings.agent_tokens_per_day, float(settings.agent_krw_per_day))


def used_up(used: Spending, budget: Budget) -> str | None:
    """The limit that is used up, for users; None when there is none."""
    if used.tokens >= budget.tokens:
        return f"{budget.tokens:,} tokens"
    return f"{budget.krw:,g} won" if used.krw >= budget.krw else None


class Agents:
    """The agents of one app. A caller sees those whose branches are within the caller's own."""

    def __init__(
        self,
        store: AgentStore,
        index: Index,
        engine: HybridSearchEngine,
        pipeline: Pipeline,
        *,
        default: Callable[[], Budget],
        review: ReviewQueue,
        record: Recorder = unrecorded,
    ):
        self._store = store
        self._index = index
        self._engine = engine
        self._pipeline = pipeline
        self._default = default
        self._record = record
        self._review = review

    async def create(
        self,
        version: object,
        node_paths: object,
        options: object = None,
        *,
        name: object = None,
        caller: Caller = LOCAL,
    ) -> Agent:
        """Create an agent. Raises `InvalidInput`, and `FilterBypass` for a branch outside the caller's own.

        Paths are resolved in the version that the agent names, or in the active one if that does not exist yet. An
        unknown path is accepted; it grants nothing until a category has it.
        """
        manifest = manifest_from_category(version, node_paths, options, name=name)
        grant = await self._granted(manifest.taxonomy_version, manifest.allowed_category_paths, caller, "agents.create")
        now = datetime.datetime.now(datetime.UTC)
        agent = Agent(uuid.uuid4(), 1, manifest, grant, caller.name, now, now)
        await self._store.add(agent)
        await self._changed(caller, "agents.create", agent)
        return agent

    async def every(self, limit: int = 100, offset: int = 0, *, caller: Caller = LOCAL) -> tuple[list[Agent], int]:
        """A page of the agents that the caller may see, newest first, and their total number."""
        if not (1 <= limit <= MAX_LIMIT and offset >= 0):
            raise InvalidInput(f"limit must be from 1 to {MAX_LIMIT:,} and offset at least 0.")
        taxonomy = await self.taxonomy()
        agents = [] if caller.keyless else await self._store.every()
        visible = [agent for agent in agents if lies_within(agent.grant, caller.access, taxonomy)]
        return visible[offset : offset + limit], len(visible)

    async def get(self, agent_id: str, *, caller: Caller = LOCAL) -> Agent:
        """An agent. Raises `NotFound`, also when the caller may not see it."""
        key = uuid_or_none(agent_id)
        if key is None:
            raise _not_found(agent_id)
        taxonomy = await self.taxonomy()  # first: the same work for an invisible agent as for an unknown one
        agent = await self._store.get(key)
        if agent is None or not lies_within(agent.grant, caller.access, taxonomy):
            raise _not_found(agent_id)
        if caller.keyless or caller.agent_id not in {None, agent.agent_id}:  # a public key has one agent
            raise _not_found(agent_id)
        return agent

    async def named(self, name: str, *, caller: Caller = LOCAL) -> Agent:
        """The agent with this id, or with this name.

        Raises `NotFound`, also when the caller may not see it, and `InvalidInput` for a name that several have.
        """
        try:
            return await self.get(name, caller=caller)
        except NotFound:
            agents, _ = await self.every(MAX_LIMIT, caller=caller)
            same_name = [agent for agent in agents if agent.name == name]
            if not same_name:
                raise
        if len(same_name) > 1:
            raise InvalidInput("Several agents have this name: ask by id. GET /agents lists the ids.")
        return same_name[0]

    async def update(
        self,
        agent_id: str,
        version: object,
        node_paths: object,
        options: object = None,
        *,
        name: object = None,
        edition: int | None = None,
        caller: Caller = LOCAL,
    ) -> Agent:
        """Create a new edition of the agent; without a `name` it keeps its name, everything else is replaced.

        Raises `Conflict` when `edition` is not the current one, or after a concurrent change; otherwise as `create`.
        """
        before = await self.get(agent_id, caller=caller)
        if edition is not None and edition != before.edition:
            raise Conflict(f"The agent has edition {before.edition} by now, not {edition}. Look at it and try again.")
        manifest = manifest_from_category(version, node_paths, options, name=before.name if name is None else name)
        grant = await self._granted(manifest.taxonomy_version, manifest.allowed_category_paths, caller, "agents.update")
        now = datetime.datetime.now(datetime.UTC)
        agent = replace(before, edition=before.edition + 1, manifest=manifest, grant=grant, updated_at=now)
        if not await self._store.replace(agent, caller.name):
            raise Conflict("The agent was changed or deleted concurrently. Read it and try again.")
        await self._changed(caller, "agents.update", agent)
        return agent

    async def delete(self, agent_id: str, *, caller: Caller = LOCAL) -> None:
        """Delete an agent with its editions. Raises `NotFound`."""
        agent = await self.get(agent_id, caller=caller)
        if not await self._store.delete(agent.agent_id):
            raise _not_found(agent_id)
        await self._changed(caller, "agents.delete", agent)

    async def editions(self, agent_id: str, *, caller: Caller = LOCAL) -> list[AgentEdition]:
        """The editions of the agent whose branches are within the caller's own, newest first. Raises `NotFound`."""
        agent = await self.get(agent_id, caller=caller)
        taxonomy = await self.taxonomy()
        editions = await self._store.editions(agent.agent_id)
        return [edition for edition in editions if lies_within(edition.grant, caller.access, taxonomy)]

    async def search(
        self,
        agent: Agent,
        query: str,
        top_k: int | None = None,
        filters: Mapping[str, Any] | None = None,
        *,
        caller: Caller = LOCAL,
        **options: Unpack[AgentSearchOptions],
    ) -> tuple[list[SearchResult], SearchMetrics]:
        """The best passages within the agent's and the caller's scope, at most `final_topk`."""
        limits = agent.manifest.retrieval
        return await self._engine.search(
            query,
            min(limits.rerank.final_topk, limits.rerank.final_topk if top_k is None else top_k),
            filters,
            limits.bm25_topk,
            limits.vector_topk,
            scope=self.access(agent, caller),
            exact_candidates=True,
            **options,
        )

    async def ask(
        self,
        agent: Agent,
        question: str,
        filters: Mapping[str, Any] | None = None,
        *,
        emit: Emit | None = None,
        caller: Caller = LOCAL,
    ) -> PipelineResponse:
        """The agent's answer; as `execute`."""
        return await self.execute(agent, question, filters=filters, emit=emit, owner=caller.owner, caller=caller)

    async def execute(
        self,
        agent: Agent,
        request: PipelineRequest | str,
        *,
        filters: Mapping[str, Any] | None = None,
        history: Sequence[Message] = (),
        history_documents: Sequence[str] = (),
        emit: Emit | None = None,
        owner: str = "",
        caller: Caller = LOCAL,
    ) -> PipelineResponse:
        """The agent's answer; `hitl_required` where it needs a review.

        Answers below the agent's threshold are added to the review queue, with a note. When the budget is used up, the
        agent answers with quotations, which cost nothing, and adds a note.
        """
        limits = agent.manifest.retrieval
        response = await self._pipeline.execute(
            request,
            scope=self.access(agent, caller),
            filters=filters,
            history=history,
            history_documents=tuple(history_documents),
            emit=emit,
            owner=owner,
            retrieved=limits.rerank.final_topk,
            candidates=(limits.bm25_topk, limits.vector_topk),
            tools_allowed=tuple(agent.manifest.mcp_tools_allowlist),
            debate_allowed=agent.manifest.features.debate,
            forbidden=lambda: self._forbidden(agent),
            charge=lambda usage: self._charge(agent, usage),
        )
        called = response.usage.calls or any(str(SPENT) in note for note in response.notes)
        if not called and await self._forbidden(agent) is not None:
            response = replace(response, note_statements=(*response.note_statements, SPENT))
        if response.unfinished:  # a review would not help; asking again may
            return response
        threshold = agent.manifest.features.hitl_below_conf
        if response.confidence >= threshold:
            return response
        reason = stated(
            "review_below_agent",
            "The confidence {confidence} is below the agent's threshold {limit}.",
            confidence=f"{response.confidence:.2f}",
            limit=f"{threshold:.2f}",
        )
        as_of = request.options.get("as_of") if isinstance(request, PipelineRequest) else None
        queued = await self._review.offer_answer(
            offered_answer(response, (reason,), as_of, owner),
            self.access(agent, caller),
            agent_id=agent.agent_id,
            grant=agent.grant,
        )
        return replace(
            response, note_statements=(*response.note_statements, HITL if queued else HITL_FULL), hitl_required=True
        )

    def access(self, agent: Agent, caller: Caller) -> Access:
        """The intersection of the caller's access and the agent's branches."""
        return caller.access.within(agent.grant)

    def allowed_tools(self, agent: Agent, tools: Iterable[str]) -> tuple[str, ...]:
        """The tools among these that the agent may use."""
        return allowed_tools(agent, tools)

    def budget(self, agent: Agent) -> Budget:
        """The agent's limits per day: those of its manifest, else those of the settings."""
        own, default = agent.manifest.budgets, self._default()
        return Budget(
            tokens=default.tokens if own.tokens_per_day is None else own.tokens_per_day,
            krw=default.krw if own.krw_per_day is None else own.krw_per_day,
        )

    async def spending(self, agent: Agent) -> Spending:
        """What the agent has used today (UTC)."""
        return await self._store.spending(agent.agent_id, _today())

    async def spending_today(self, agent: Agent) -> SpendingToday:
        """What its models used today (UTC), beside its budget."""
        used, limit = await self.spending(agent), self.budget(agent)
        return SpendingToday(used.day, used.calls, used.tokens, used.krw, limit.tokens, limit.krw)

    async def charge(self, agent: Agent, calls: int, tokens: int, cost: float) -> Spending:
        """Add the usage of model calls (cost in won); returns the sum of the day, concurrent calls included.

        Raises `InvalidInput` for negative numbers, and `NotFound` when the agent was deleted.
        """
        if min(calls, tokens, cost) < 0:
            raise InvalidInput("Calls, tokens and cost are at least 0.")
        return await self._store.charge(agent.agent_id, _today(), calls, tokens, round(cost * MILLION))

    async def check_budget(self, agent: Agent) -> None:
        """Called before every model call. Raises `BudgetSpent` when tokens or money for today are used up."""
        budget = await self._spent(agent)
        if budget is not None:
            raise BudgetSpent(name=agent.name, budget=budget)

    async def taxonomy(self) -> Taxonomy:
        """The active version of the tree."""
        return (await self._index.snapshot()).taxonomy

    async def _spent(self, agent: Agent) -> str | None:
        """The limit that is used up, for users; None when there is none, and without `cost_guard`."""
        if not agent.manifest.features.cost_guard:
            return None
        return used_up(await self.spending(agent), self.budget(agent))

    async def _forbidden(self, agent: Agent) -> str | None:
        return None if await self._spent(agent) is None else str(SPENT)

    async def _charge(self, agent: Agent, usage: Usage) -> None:
        await self.charge(agent, usage.calls, usage.tokens, usage.cost)

    async def _granted(self, version: str, paths: Sequence[Any], caller: Caller, action: str) -> Grant:
        active = await self.taxonomy()
        tree = active if version == active.version else await self._store.tree(version) or active
        grant = Grant.of(paths, tree)
        if not lies_within(grant, caller.access, active):
            await self._record(
                caller.name,
                action,
                scope=scope_rows(caller.access),
                subjects=(),
                decision="denied",
                details={"reason": "the branches lie outside the scope"},
            )
            raise FilterBypass(reason="the agent would exceed your own scope.")
        return grant

    async def _changed(self, caller: Caller, action: str, agent: Agent) -> None:
        await self._record(
            caller.name,
            action,
            scope=scope_rows(caller.access),
            subjects=(str(agent.agent_id),),
            decision="done",
            details={"edition": agent.edition},
        )


def manifest_yaml(manifest: AgentManifest) -> str:
    """The manifest as YAML, with its keys in reading order."""
    import yaml

    text: str = yaml.safe_dump(manifest.as_dict(), allow_unicode=True, sort_keys=False)
    return text


def _today() -> datetime.date:
    return datetime.datetime.now(datetime.UTC).date()


def _not_found(agent_id: object) -> NotFound:
    name = str(agent_id)[:60]
    return NotFound(f"There is no agent {name!r} that you may see.", Advice.LIST_AGENTS)
