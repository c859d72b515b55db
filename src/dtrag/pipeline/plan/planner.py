"""Plans which tools a question needs, and the input of each.

A plan depends on the question and the tools, never on retrieved text, so that no document can cause a tool call. Rules
choose the calculator and the web search. A language model, if configured, may choose among all allowed tools; its plan
is validated against that list and each tool's schema, and the rules' plan is used if it fails.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Literal

from dtrag.core.statements import stated
from dtrag.errors import LanguageModelFailed, Overloaded
from dtrag.pipeline import model_calls
from dtrag.pipeline.plan.arithmetic import expression_of
from dtrag.pipeline.plan.prompt import MAX_TOKENS, InvalidPlan, choice_of, messages
from dtrag.pipeline.run import Run
from dtrag.pipeline.state import Plan
from dtrag.ports import ChatModel
from dtrag.tools.default import get_tool_registry
from dtrag.tools.policy import get_tool_whitelist, validate_tool
from dtrag.tools.registry import JsonObject, Tool, ToolRegistry

Complexity = Literal["simple", "medium", "complex"]

LONGEST_S = 10.0
"""Maximum seconds of a model for a plan, within the step's budget."""
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
"""Requests for something outside of the documents; it matches 3 of 8,692 questions of labelled sets, all of which are
about documents (bench/planning.py). Words such as 현재, "current" or "today" occur in many questions about rules and
history, so they are not used: a web search sends the question to an outside service."""
WEB_QUERY = 400
"""Characters of a question that are sent to a web search."""


def complexity_of(query: str) -> Complexity:
    """How complex a question is: `complex` for more than 15 words or a word for analysing or predicting, `medium` for a
    word for comparing, else `simple`."""
    folded = query.lower()
    if len(query.split()) > MANY_WORDS or any(word in folded for word in _COMPLEX):
        return "complex"
    return "medium" if any(word in folded for word in _MEDIUM) else "simple"


async def plan(query: str, run: Run, *, seconds: float) -> Plan:
    """The plan of one question, made in at most `seconds`. A failing model never raises here."""
    allowed = permitted(run)
    inputs, reasons = by_rules(query, allowed)
    complexity = complexity_of(query)
    reasoning = " ".join(reasons) or "The documents are searched; no rule asks for a tool."
    if run.model is None or not allowed:
        return _plan(inputs, complexity, reasoning)
    try:
        return await _by_model(query, run, run.model, allowed, min(seconds, LONGEST_S))
    except (LanguageModelFailed, Overloaded, InvalidPlan, TimeoutError) as error:
        reason = str(error) or f"it took longer than {min(seconds, LONGEST_S):g} s."
        failed = "The language model's plan could not be used, rules planned instead: {reason}"
        note = stated("plan_failed", failed, reason=reason)
        return _plan(inputs, complexity, reasoning, strategy="fallback", notes=(note,))


def permitted(run: Run) -> dict[str, Tool]:
    """The tools that may run, by name: registered, allowed for the caller, and on the administrator's list."""
    registry: ToolRegistry = run.tools if run.tools is not None else get_tool_registry()
    whitelist = get_tool_whitelist() if "tools_policy" in run.flags else None
    return {
        tool.name: tool
        for tool in registry.tools()
        if validate_tool(tool.name, run.tools_allowed) and validate_tool(tool.name, whitelist)
    }


def by_rules(query: str, allowed: Mapping[str, Tool]) -> tuple[dict[str, JsonObject], list[str]]:
    """Inputs by tool, and the reasons, for the calculator and the web search; inputs are valid by construction."""
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
        "inputs": {name: dict(values) for name, values in inputs.items()},
        "steps": ["retrieve", *inputs, "compose", "cite"],
        "strategy": strategy or ("direct" if complexity == "simple" else "multi_step"),
        "complexity": complexity,
        "reasoning": reasoning,
        "notes": list(notes),
    }
