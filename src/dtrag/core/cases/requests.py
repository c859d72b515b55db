"""Requests and replies of the case memory, by the names that the acceptance texts use."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, TypeVar

from dtrag.core.cases.case import Case, FeedbackType, SimilarityMethod
from dtrag.core.response import INTERNAL, plain, response
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.core.text.analysis import clean
from dtrag.errors import InvalidInput

MAX_QUERY = 1_000
MAX_K = 50
MAX_CONTENT = 20_000
MAX_ID = 200
MAX_METADATA_JSON = 20_000
E = TypeVar("E", bound=Enum)


class _WithDict:
    """Gives a dataclass `.dict()`: its fields as JSON values."""

    __slots__ = ()

    def dict(self) -> dict[str, Any]:
        """The fields by name; enumerations and times as strings."""
        names = [declared.name for declared in dataclasses.fields(self)]  # type: ignore[arg-type]  # a dataclass below
        return {name: plain(getattr(self, name)) for name in names}


@dataclass(frozen=True, slots=True)
class SuggestionRequest(_WithDict):
    """Asks for the `k` cases most similar to `query`, optionally of one category. Raises `InvalidInput`."""

    query: str
    category_path: Sequence[str] | None = None
    k: int = 5
    similarity_method: SimilarityMethod = SimilarityMethod.COSINE
    include_metadata: bool = True
    min_quality_score: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "query", question(self.query))
        if self.category_path is not None:
            object.__setattr__(self, "category_path", category(self.category_path))
        if not isinstance(self.k, int) or isinstance(self.k, bool) or not 1 <= self.k <= MAX_K:
            raise InvalidInput(f"k must be a whole number from 1 to {MAX_K}.")
        object.__setattr__(
            self, "similarity_method", _member(SimilarityMethod, self.similarity_method, "similarity_method")
        )
        share("min_quality_score", self.min_quality_score)


@dataclass(frozen=True, slots=True)
class FeedbackRequest(_WithDict):
    """What a person did with a suggested case. Raises `InvalidInput`.

    `success` is whether the case helped; by default everything but a thumbs_down is a success.
    """

    log_id: str
    case_id: str
    feedback_type: FeedbackType
    success: bool | None = None

    def __post_init__(self) -> None:
        identifier("log_id", self.log_id)
        identifier("case_id", self.case_id)
        object.__setattr__(self, "feedback_type", _member(FeedbackType, self.feedback_type, "feedback_type"))
        if self.success is None:
            object.__setattr__(self, "success", self.feedback_type is not FeedbackType.THUMBS_DOWN)
        if not isinstance(self.success, bool):
            raise InvalidInput("success must be true or false.")


@dataclass(frozen=True, slots=True)
class CBRUpdateRequest(_WithDict):
    """New values of a case's fields; None leaves a field unchanged. Raises `InvalidInput`."""

    query: str | None = None
    category_path: Sequence[str] | None = None
    content: str | None = None
    quality_score: float | None = None
    metadata: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.query is not None:
            object.__setattr__(self, "query", question(self.query))
        if self.category_path is not None:
            object.__setattr__(self, "category_path", category(self.category_path))
        if self.content is not None:
            object.__setattr__(self, "content", content(self.content))
        if self.quality_score is not None:
            share("quality_score", self.quality_score)
        if self.metadata is not None and not isinstance(self.metadata, Mapping):
            raise InvalidInput("metadata must be an object, such as {'version': '2.0'}.")

    def fields(self) -> list[str]:
        """Names of the fields to change."""
        return [name for name, value in self.dict().items() if value is not None]


@dataclass(frozen=True, slots=True)
class CBRQualityUpdateRequest(_WithDict):
    """A new quality of a case. Raises `InvalidInput`."""

    quality_score: float

    def __post_init__(self) -> None:
        share("quality_score", self.quality_score)


@dataclass(frozen=True, slots=True)
class CaseSuggestion(_WithDict):
    """A suggested case."""

    __pydantic_config__ = response("SuggestionShape")

    case_id: str
    """Its id."""
    query: str
    """Its question."""
    category_path: list[str]
    """The category, outermost name first."""
    content: str
    """What it says; of a case made from an answer the labels of its citations."""
    similarity_score: float
    """Similarity to the question in [0, 1]."""
    quality_score: float
    """Quality in [0, 1]."""
    metadata: Mapping[str, Any]
    """Its metadata; {} when they were not requested."""
    usage_count: int
    """Number of votes on it."""
    similarity_method: SimilarityMethod = field(default=SimilarityMethod.COSINE, metadata=INTERNAL)  # that was used

    @classmethod
    def of(cls, case: Case, score: float, method: SimilarityMethod, *, include_metadata: bool) -> CaseSuggestion:
        """The case as a suggestion."""
        own = _values_of(cls, case) | {"similarity_score": score, "similarity_method": method}
        return cls(**own if include_metadata else own | {"metadata": {}})


@dataclass(frozen=True, slots=True)
class CBRCaseResponse(_WithDict):
    """A case as programs and the service return it."""

    case_id: str
    query: str
    category_path: list[str]
    content: str
    quality_score: float
    metadata: Mapping[str, Any]
    usage_count: int
    created_at: datetime
    updated_at: datetime
    success_rate: float = field(default=0.0)

    @classmethod
    def of(cls, case: Case) -> CBRCaseResponse:
        """The case without what is internal."""
        return cls(**_values_of(cls, case))


def _values_of(kind: type, case: Case) -> dict[str, Any]:
    """The fields of a suggestion or response that a case has."""
    values = {each.name: getattr(case, each.name) for each in dataclasses.fields(kind) if hasattr(case, each.name)}
    return values | {"category_path": list(case.category_path), "metadata": dict(case.metadata)}


def question(value: object) -> str:
    """A question of 1 to 1,000 characters. Raises `InvalidInput`."""
    text = clean(value).strip() if isinstance(value, str) else ""
    if not 1 <= len(text) <= MAX_QUERY:
        raise InvalidInput(f"query must be a text of 1 to {MAX_QUERY:,} characters.")
    return text


def content(value: object) -> str:
    """The content of a case. Raises `InvalidInput`."""
    text = clean(value) if isinstance(value, str) else ""
    if not text.strip() or len(text) > MAX_CONTENT:
        raise InvalidInput(f"content must be a text of 1 to {MAX_CONTENT:,} characters.")
    return text


def category(value: object) -> list[str]:
    """The names of a category path. Raises `InvalidInput`."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidInput("category_path is a list of names, such as ['AI', 'ML'].")
    return list(CategoryPath.parse(value).names)


def identifier(name: str, value: object) -> str:
    """An id of 1 to 200 characters. Raises `InvalidInput`."""
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_ID or clean(value) != value:
        raise InvalidInput(f"{name} must be a text of 1 to {MAX_ID} characters.")
    return value


def share(name: str, value: object) -> float:
    """A number from 0 to 1. Raises `InvalidInput`."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(float(value)) or not 0 <= float(value) <= 1:  # type: ignore[arg-type]  # a number
        raise InvalidInput(f"{name} must be a number from 0 to 1.")
    return float(value)  # type: ignore[arg-type]  # a number


def _member(kind: type[E], value: object, name: str) -> E:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(str(member.value) for member in kind)
        raise InvalidInput(f"{name} must be one of {known}.") from None
