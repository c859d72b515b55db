"""A world with graded and open branches whose model, embedder, web search and MCP server record what they are sent.

Every text of a graded branch (titles, names of categories, headers of tables, passages) has a word with `qz`, which no
open text and no question has: a recorded request with such a word is a leak.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import urllib.parse
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dtrag.app import App, open_app
from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.agent import Agent
from dtrag.core.chat import Message
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.delivery.api.chat_turn import ChatTurn, answer_turn
from dtrag.settings import Settings, set_feature_flag
from tests.mcp_setup import Behaviour
from tests.model_server import Messages, ModelServer
from tests.web_server import WebServer, always, answer, web_server

LEAK = re.compile(r"qz\w+", re.I)
THINGS = ("pump", "boiler", "turbine", "antenna", "shelter")
STATIONS = 4
GRADED: Mapping[str, str] = {"Qzarmy": "S", "Qzarmy/Qzplans": "C", "Qzarmy/Qzmeals": "", "Mixed/Qzinner": "C"}
"""Graded branches with their own grades; the others are open."""
BRANCHES = ("News", "Guides", "Mixed", *GRADED)
FLAGS = ("meta_planner", "mcp_tools", "debate_mode", "cbr_enabled")
LOOKUP = {
    "name": "lookup",
    "description": "Looks something up.",
    "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
}


def _document(branch: str, thing: str, number: int) -> str:
    secret = "" if branch in {"News", "Guides", "Mixed"} else f" qz{thing}{number}"
    return (
        f"# The {thing}{secret} manual\n\n"
        f"The {thing} of station {number} runs at {10 + number} bar{secret}. The keeper{secret} of the {thing} checks "
        f"it every {number + 2} days.\n\n"
        f"| Part{secret} | Limit{secret} |\n|---|---|\n| valve of the {thing} | {number} mm{secret} |\n"
    )


def _reply(messages: Messages) -> str:
    """Each kind of prompt is answered so that what was sent would be sent on."""
    system, user = str(messages[0]["content"]), str(messages[-1]["content"])
    if system.startswith("You decide which tools"):
        inputs = {"query": user.rpartition("Question")[2][:300]}
        return json.dumps({"tools": [{"name": name, "input": inputs} for name in ("web_search", "records.lookup")]})
    if system.startswith("You rewrite"):
        return user.rpartition("The last question: ")[2] + " " + " ".join(user.split()[:20])
    if system.startswith("You judge"):
        return '{"passages": [1], "answer": "whole"}'
    if system.startswith("You imagine"):
        return '{"questions": ["What do I do with the old machine?"]}'
    if found := re.search(r"The \w+ of station \d+ runs at \d+ bar", user):
        number = user[: found.start()].rpartition("Passage [")[2].partition("]")[0]
        return f"{found.group()} [{number}]."
    return "NO_ANSWER"


@dataclass
class GradedWorld:
    """The app with its servers. `asked` counts what was done, `leaks` finds what was sent of graded texts."""

    app: App
    model: ModelServer
    web: WebServer
    mcp: Behaviour
    agents: list[Agent]
    callers: list[Caller]
    asked: Counter[str] = field(default_factory=Counter)

    @property
    def recorded(self) -> dict[str, list[str]]:
        """Everything that was sent, by destination."""
        return {
            "model": [json.dumps(body, ensure_ascii=False) for body in self.model.requests if "messages" in body],
            "embedder": [json.dumps(body, ensure_ascii=False) for body in self.model.requests if "input" in body],
            "web search": [urllib.parse.unquote_plus(request.path) for request in self.web.requests],
            "mcp": [json.dumps(arguments, ensure_ascii=False) for _, _, arguments in self.mcp.calls()],
        }

    def leaks(self) -> dict[str, list[str]]:
        """The graded words in what was sent, by destination."""
        found = {name: LEAK.findall("\n".join(sent)) for name, sent in self.recorded.items()}
        return {name: sorted(set(words)) for name, words in found.items() if words}

    async def rounds(self, seeds: range, at_once: int = 4) -> None:
        """Ask the questions of these seeds."""
        queue = iter(seeds)

        async def work() -> None:
            for seed in queue:
                await self.ask(seed)

        await asyncio.gather(*(work() for _ in range(at_once)))

    async def ask(self, seed: int) -> None:
        """A question, or a conversation of up to three, of a caller or an agent that `seed` draws."""
        draw = random.Random(seed)
        caller = draw.choice(self.callers)
        agent = draw.choice([None, *self.agents]) if caller is LOCAL else None
        by_client: list[Message] = []
        for _ in range(draw.choice((1, 1, 2, 3))):
            question = _question(draw, first=not by_client)
            turn = await self._turn(caller, agent, question, f"talk-{seed}", by_client if seed % 3 == 0 else None)
            response = await answer_turn(self.app, turn)
            self.asked["questions"] += 1
            self.asked["agents"] += agent is not None
            self.asked["graded answers"] += LEAK.search(response.answer) is not None
            self.asked["answers of the model"] += response.model is not None
            self.asked["withheld"] += any("were not sent" in str(note) for note in response.notes)
            by_client += [Message("user", question), Message("assistant", response.answer)]

    async def _turn(
        self, caller: Caller, agent: Agent | None, question: str, conversation: str, by_client: list[Message] | None
    ) -> ChatTurn:
        """With the stored history of the conversation, or with that which the client sends."""
        if by_client is not None:
            return ChatTurn(question=question, caller=caller, agent=agent, history=tuple(by_client))
        access = caller.access if agent is None else self.app.agents.access(agent, caller)
        earlier = await self.app.conversations.last(conversation, caller, scope=access)
        return ChatTurn(
            question=question,
            caller=caller,
            agent=agent,
            history=[message for turn in earlier for message in turn.messages()],
            history_documents=tuple(str(key) for turn in earlier for key in turn.shown_documents()),
            conversation_id=conversation,
        )


def _question(draw: random.Random, *, first: bool) -> str:
    thing, number = draw.choice(THINGS), draw.randrange(STATIONS)
    if not first and draw.random() < 0.7:
        return draw.choice(
            ("And who checks it?", "And at station 2?", "How many days is that?", "What about its valve?")
        )
    return draw.choice(
        (
            f"At how many bar does the {thing} of station {number} run?",
            f"Who checks the {thing} and how often?",
            f"What is the limit of the valve of the {thing}?",
            f"Search the web for news about the {thing} of station {number}.",
            f"{thing} keeper",
            f"펌프와 {thing} 점검 주기는?",
        )
    )


@asynccontextmanager
async def graded_world(make: Callable[..., Settings], folder: Path, **settings: Any) -> AsyncIterator[GradedWorld]:
    """The world, with a tree whose branches are graded before documents come. `make` gives settings of a database."""
    mcp = Behaviour(folder, "records", tools=[LOOKUP])
    servers = folder / "servers.toml"
    servers.write_text(mcp.table(), "utf-8")
    found = b'{"results": [{"title": "Pumps", "url": "https://one.example/", "content": "Pumps run."}]}'
    for name in FLAGS:
        set_feature_flag(name, True)
    with ModelServer(_reply) as model:
        async with web_server(always(answer(body=found))) as web:
            chosen = make(
                **{
                    "llm": "openai:test",
                    "llm_base_url": model.url,
                    "embedder": "openai",
                    "embed_base_url": model.url,
                    "web_search_url": web.address,
                    "egress_allow": f"127.0.0.1:{web.port}",
                    "mcp_servers": servers,
                    "classify": "off",
                    "debate": "auto",
                    **settings,
                }
            )
            async with open_app(chosen) as app:
                yield await _filled(GradedWorld(app, model, web, mcp, [], [LOCAL]), folder)
    for name in FLAGS:
        set_feature_flag(name, None)


async def _filled(world: GradedWorld, folder: Path) -> GradedWorld:
    app = world.app
    await app._writer.ensure_paths([CategoryPath.parse(branch) for branch in BRANCHES])
    rows = [{"op": "grade", "path": path, "grade": grade} for path, grade in GRADED.items() if grade]
    await app.taxonomy.activate((await app.taxonomy.propose(rows)).version)
    for place in (*BRANCHES, "unplaced"):
        below = folder / place.replace("/", "-")
        below.mkdir()
        for number in range(STATIONS):
            for thing in THINGS:
                (below / f"{thing}{number}.md").write_text(_document(place, thing, number), "utf-8")
        await app.ingest([below], None if place == "unplaced" else place)
    if app.model is not None:
        await app.imagination.run(most=20)
    await app.mcp.approve("records.lookup")
    for paths in ([["News"]], [["Qzarmy"], ["News"]], [["Mixed"], ["Guides"]], [["Qzarmy", "Qzplans"]]):
        options = {"mcp_tools": ["web_search", "records.lookup"], "custom_features": {"debate": True}}
        world.agents.append(await app.agents.create("1.0.0", paths, options, name=f"agent {len(world.agents)}"))
    for branches in (["News", "Mixed"], ["Qzarmy", "Guides"]):
        created = await app.keys.create("-".join(branches), branches)
        world.callers.append(created.key.caller())
    return world
