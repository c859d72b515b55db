"""One agent of a debate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from dtrag.core.chat import Reply, Usage
from dtrag.errors import InvalidInput, LanguageModelFailed
from dtrag.pipeline import model_calls
from dtrag.pipeline.answer.generative import MAX_PASSAGE, NO_ANSWER
from dtrag.pipeline.debate.merge import cut
from dtrag.pipeline.debate.prompts import Role, agent_prompt
from dtrag.pipeline.run import Run, of_active_app
from dtrag.ports import ChatModel

MAX_TOKENS = 500
"""Tokens of an agent's answer."""
SECONDS = 10.0
"""Time limit of an answer outside of a debate, in seconds."""


@dataclass(frozen=True, slots=True)
class Argument:
    """The answer of an agent or of the synthesis; `cut`: it was too long and has been shortened."""

    text: str
    model: str
    usage: Usage = field(default_factory=Usage)
    cut: bool = False

    @property
    def abstains(self) -> bool:
        """Whether it states that the passages do not answer."""
        return self.text.strip("`*\"'. ").startswith(NO_ANSWER)


class DebateAgent:
    """An agent: `affirmative` gives the best supported answer, `critical` looks for what a quick answer misses.

    The default run is that of the open app, the default model that of the run: its `critic` for the critical agent.
    """

    def __init__(
        self, role: Role, model: ChatModel | None = None, run: Run | None = None, *, max_tokens: int = MAX_TOKENS
    ) -> None:
        if role not in get_args(Role):
            raise InvalidInput(f"Unknown role {role!r}; the roles are {' and '.join(get_args(Role))}.")
        self.role = role
        self.max_tokens = max_tokens
        self._run = of_active_app() if run is None else run
        own = self._run.critic if role == "critical" else None
        self._model = required(model or own or self._run.model)

    async def generate_answer(
        self,
        query: str,
        context: Sequence[Mapping[str, Any] | str],
        previous: str | None = None,
        opponent_answer: str | None = None,
        *,
        seconds: float = SECONDS,
    ) -> Argument:
        """The agent's answer of at most `max_tokens`, from passages (texts, or dicts with `text`).

        `previous` is its own answer of the round before, `opponent_answer` the other agent's. Raises
        `LanguageModelFailed`, also for an empty answer or when `seconds` are over.
        """
        prompt = agent_prompt(
            self.role,
            query,
            texts(context),
            previous=previous,
            opponent=opponent_answer,
            max_tokens=self.max_tokens,
        )
        reply = await model_calls.call(
            self._run, "debate", self._model, prompt, max_tokens=self.max_tokens, seconds=seconds
        )
        return argument_of(reply, self.max_tokens)


def argument_of(reply: Reply, max_tokens: int) -> Argument:
    """The model's reply, cut to the limit. Raises `LanguageModelFailed` for an empty one."""
    whole = reply.text.strip()
    if not whole:
        raise LanguageModelFailed(model=reply.model, reason="the answer is empty.")
    text = cut(whole, max_tokens)
    return Argument(text, reply.model, reply.usage, cut=text != whole or not reply.finished)


def texts(context: Sequence[Mapping[str, Any] | str]) -> list[str]:
    """The passages' texts, each at most MAX_PASSAGE characters. Raises `InvalidInput` for a passage without text."""
    contents: list[str] = []
    for number, passage in enumerate(context, start=1):
        text = passage.get("text") if isinstance(passage, Mapping) else passage
        if not isinstance(text, str):
            raise InvalidInput(f"Passage {number} has no text: give dicts with the key 'text'.")
        contents.append(text[:MAX_PASSAGE])
    return contents


def required(model: ChatModel | None) -> ChatModel:
    """The model. Raises `InvalidInput` if none is configured."""
    if model is None:
        raise InvalidInput("A debate needs a language model. Name one in the setting llm, such as openai:gpt-4o-mini.")
    return model
