"""The third step's work: which tools a question needs, and the input of each.

A plan is made of the question and of what the tools are, never of retrieved text: no document can have a tool called.
Rules choose the calculator and the web search. A language model, where one is configured, may choose among all tools
that are allowed; what it writes is checked against that list and each tool's schema, and where it fails the rules'
plan stands.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Literal

from dtrag.errors import LanguageModelFailed, Overloaded
from dtrag.pipeline import model_calls
from dtrag.pipeline.plan.arithmetic import expression_of
from dtrag.pipeline.plan.prompt import MAX_TOKENS, Refused, choice_of, messages
from dtrag.pipeline.run import Run
from dtrag.pipeline.state import Plan
from dtrag.ports import ChatModel
from dtrag.tools.default import get_tool_registry
from dtrag.tools.policy import get_tool_whitelist, validate_tool
from dtrag.tools.registry import JsonObject, Tool, ToolRegistry

Complexity = Literal["simple", "medium", "complex"]

LONGEST_S = 10.0
"""Seconds that a model gets for a plan, where the step has that much."""
MANY_WORDS = 15
_COMPLEX = ("분석", "예측", "analyze", "predict")
_MEDIUM = ("비교", "차이", "compare", "difference")
_WEB = re.compile(
    r"(?:웹|인터넷|구글|네이버|온라인)(?:에서|으로|에|로)?\s?(?:검색|찾|알아)|최신|오늘(?!날)"
    r"|(?:최근|요즘)\s?(?:뉴스|소식)|뉴스(?:를|에서|에)?\s?(?:검색|찾|알려|보여|나)"
    r"|\bweb search\b|\bgoogle (?:it|for)\b|\b(?:search|look) (?:\w+ ){0,3}(?:online|on google)\b"
    r"|\b(?:search|look|find) (?:\w+ ){0,4}(?:on |in )?the (?:web|internet)\b"
    r"|\b(?:recent|breaking|current) news\b|\bin the news\b|\bnews (?:about|on|of today)\b|\blatest\b|\btoday's\b",
    re.I,
)
"""Asks for what is outside of the documents: of 8,692 questions of labelled sets, all about documents, it takes 3 for
such (bench/planning.py). Words such as 현재, "current" or "today" are in many a question about rules and history and
are no sign of it; and what is searched for on the web leaves the house."""
WEB_QUERY = 400
"""Characters of a question that a web search is asked."""


def complexity_of(query: str) -> Complexity:
    """How much a question asks for: complex with more than 15 words or a word for analysing or predicting, medium with
    one for comparing, else simple."""
    folded = query.lower()
    if len(query.split()) > MANY_WORDS or any(word in folded for word in _COMPLEX):
        return "complex"
    return "medium" if any(word in folded for word in _MEDIUM) else "simple"


async def plan(query: str, run: Run, *, seconds: float) -> Plan:
    """The plan of one question, made in at most `seconds`. Never raises for what a model does.

    `tools` in the order to run them, `inputs` of each by name, `steps` of the answer by name, `strategy` (direct,
    multi_step, or fallback when the model's plan could not be used), `complexity`, `reasoning` and `notes` in words.
    """
    allowed = permitted(run)
    inputs, reasons = by_rules(query, allowed)
    complexity = complexity_of(query)
    reasoning = " ".join(reasons) or "The documents are searched; no rule asks for a tool."
    if run.model is None or not allowed:
        return _plan(inputs, complexity, reasoning)
    try:
        return await _by_model(query, run, run.model, allowed, min(seconds, LONGEST_S))
    except (LanguageModelFailed, Overloaded, Refused, TimeoutError) as error:
        why = str(error) or f"it took longer than {min(seconds, LONGEST_S):g} s."
        note = f"The language model's plan could not be used, rules planned instead: {why}"
        return _plan(inputs, complexity, reasoning, strategy="fallback", notes=(note,))


def permitted(run: Run) -> dict[str, Tool]:
    """The tools that may run at all, by name: registered, allowed for the caller, and on the administrator's list."""
    registry: ToolRegistry = run.tools if run.tools is not None else get_tool_registry()
    whitelist = get_tool_whitelist() if "tools_policy" in run.flags else None
    return {
        tool.name: tool
        for tool in registry.tools()
        if validate_tool(tool.name, run.tools_allowed) and validate_tool(tool.name, whitelist)
    }


def by_rules(query: str, allowed: Mapping[str, Tool]) -> tuple[dict[str, JsonObject], list[str]]:
    """Tool -> input, and why. Rules know the calculator and the web search; inputs fit these by construction."""
    inputs: dict[str, JsonObject] = {}
    reasons: list[str] = []
    expression = expression_of(query) if "calculator" in allowed else None
    if expression is not None:
        inputs["calculator"] = {"expression": expression}
        reasons.append("The question holds an arithmetic expression.")
    if "web_search" in allowed and _WEB.search(query):
        inputs["web_search"] = {"query": " ".join(query.split())[:WEB_QUERY]}
        reasons.append("The question asks for the web, news, or what is new.")
    return inputs, reasons


async def _by_model(query: str, run: Run, model: ChatModel, allowed: Mapping[str, Tool], seconds: float) -> Plan:
    async with asyncio.timeout(seconds):
        # Schemas are derived and compiled when they are first read, which takes some 0.1 s: not on the event loop.
        prompt = await asyncio.to_thread(messages, query, list(allowed.values()))
        reply = await model_calls.call(run, "plan", model, prompt, max_tokens=MAX_TOKENS, seconds=seconds)
    choice = await asyncio.to_thread(choice_of, reply.text, allowed)
    return _plan(choice.inputs, complexity_of(query), choice.reasoning, notes=choice.notes)


def _plan(
    inputs: Mapping[str, JsonObject],
    complexity: Complexity,
    reasoning: str,
    *,
    strategy: str | None = None,
    notes: tuple[str, ...] = (),
) -> Plan:
    return {
        "tools": list(inputs),
        "inputs": {name: dict(given) for name, given in inputs.items()},
        "steps": ["retrieve", *inputs, "compose", "cite"],
        "strategy": strategy or ("direct" if complexity == "simple" else "multi_step"),
        "complexity": complexity,
        "reasoning": reasoning,
        "notes": list(notes),
    }
