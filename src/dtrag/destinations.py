"""What may leave this process: every language model, tool and embedder of an app is reached through this module.

Texts have the grade of their branch (core/taxonomy/grades.py), and a destination has the highest grade that it may be
sent (core/access/grade_limits.py). Who makes a prompt leaves out what `Outgoing` does not admit. A prompt that has it
nevertheless is not sent: `LimitedModel` compares the grades of all its messages.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtrag.core.access.grade_limits import UNLIMITED, Limits, Recipient
from dtrag.core.access.scope import Scope
from dtrag.core.chat import Message, Reply, highest_grade
from dtrag.core.documents import SearchResult
from dtrag.core.taxonomy.grades import TreeGrades
from dtrag.errors import ModelNotAllowed
from dtrag.ports import ChatModel, Embedder, Monitored, Warmable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

EXPORTS = DOCUMENTS, CASES, ANSWERS = tuple(Recipient("export", name) for name in ("documents", "cases", "answers"))
"""Files for others: of `dtrag export` and of cases as training data, and signed files of answers."""
ABOVE = "the messages have texts above the grade that it may be sent (setting grade_limits)."


def allows(limit: int, grade: int) -> bool:
    """Whether a destination with this limit may be sent a text of this grade."""
    return grade <= limit


def limit_of(model: ChatModel | None) -> int:
    """The limit of a language model; the lowest grade for one that was not limited."""
    return getattr(model, "limit", 0)


def embeds(embedder: Embedder | None, grade: int) -> bool:
    """Whether the embedder may be sent a text of this grade: one that runs in this process may."""
    return allows(getattr(embedder, "limit", UNLIMITED), grade)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What may be sent to a destination. Without `grades` nothing is known: all is admitted, with an unknown grade."""

    grades: TreeGrades | None = None
    limit: int = 0

    def admits(self, passage: SearchResult) -> bool:
        """Whether the passage, its title and the name of its category may be sent."""
        return self.grades is None or allows(self.limit, self.grades.path(passage.taxonomy_path))

    @property
    def everything(self) -> bool:
        """Whether texts of every branch may be sent."""
        return self.grades is None or allows(self.limit, self.grades.highest)

    def admits_node(self, node_id: int | None) -> bool:
        """Whether what belongs to this category may be sent; None is a category outside the tree."""
        if self.grades is None:
            return True
        return allows(self.limit, self.grades.highest if node_id is None else self.grades.node(node_id))

    def narrowed(self, scope: Scope) -> Scope:
        """The part of the scope that may be sent."""
        if self.grades is None or self.everything:
            return scope
        return scope.narrowed(self.grades.up_to(self.limit))

    def history(self, messages: Iterable[Message]) -> list[Message]:
        """The messages of a conversation that may be sent."""
        return [message for message in messages if self.grades is None or allows(self.limit, self._of(message))]

    def grade(self, passages: Iterable[SearchResult] = (), messages: Iterable[Message] = ()) -> int | None:
        """The highest grade of these texts; None when it is unknown."""
        if self.grades is None:
            return None
        of_passages = self.grades.paths(passage.taxonomy_path for passage in passages)
        return max((of_passages, *map(self._of, messages)))

    def _of(self, message: Message) -> int:
        assert self.grades is not None  # noqa: S101 - the callers have compared
        return self.grades.highest if message.grade is None else message.grade


class LimitedModel:
    """A model that refuses messages above the limit of its destination with `ModelNotAllowed`, and sends nothing."""

    def __init__(self, model: ChatModel, limits: Limits, tree: Callable[[], Awaitable[TreeGrades]]) -> None:
        self._model = model
        self._tree = tree
        self.id = model.id
        self.destination = Recipient("model", model.id, getattr(model, "address", ""))
        self.limit = limits.of(self.destination)

    @property
    def problem(self) -> str:
        """See `Monitored`."""
        return self._model.problem if isinstance(self._model, Monitored) else ""

    async def warm(self) -> None:
        """See `Warmable`."""
        if isinstance(self._model, Warmable):
            await self._model.warm()

    def cost_of(self, input_tokens: int, output_tokens: int) -> float:
        """See `ChatModel`."""
        return self._model.cost_of(input_tokens, output_tokens)

    async def complete(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> Reply:
        """See `ChatModel`. Raises `ModelNotAllowed`, too."""
        await self._check(messages)
        return await self._model.complete(messages, max_tokens=max_tokens, seconds=seconds)

    async def stream(
        self, messages: Sequence[Message], *, max_tokens: int, seconds: float
    ) -> AsyncIterator[str | Reply]:
        """See `ChatModel`. Raises `ModelNotAllowed`, too."""
        await self._check(messages)
        stream: AsyncGenerator[str | Reply] = self._model.stream(messages, max_tokens=max_tokens, seconds=seconds)  # type: ignore[assignment]
        async with aclosing(stream):
            async for piece in stream:
                yield piece

    async def close(self) -> None:
        """See `ChatModel`."""
        await self._model.close()

    async def _check(self, messages: Sequence[Message]) -> None:
        grade = highest_grade(messages)
        if grade is None:
            grade = (await self._tree()).highest
        if not allows(self.limit, grade):
            raise ModelNotAllowed(model=self.id, reason=ABOVE)
