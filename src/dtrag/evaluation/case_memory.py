"""Measures what the case memory gains and harms: `dtrag eval cbr`.

Half of the questions are asked and rated. Then the same questions in slightly other words, and the other half, are
asked with the memory and without it. Ratings are those of a person who knows what is relevant; some may be wrong.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from dtrag.core.documents import SearchResult
from dtrag.core.evaluation_run import EvaluationRun, RunRow
from dtrag.core.metrics.intervals import Ratio
from dtrag.core.metrics.ranking import mrr_at
from dtrag.core.text.analysis import language, normalise
from dtrag.evaluation.answers import is_relevant
from dtrag.evaluation.judged_questions import JudgedQuestion, judged_name, within_limit

DEPTH = 10
MAX_CORRECTED = 2
"""Passages that a reviewer chooses for an answer that was rated down."""
Group = Literal["repeat", "other"]
GROUPS: tuple[Group, ...] = ("repeat", "other")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """What became of a question: the retrieved and the cited passages, best first, and the case that was shown."""

    trace_id: str
    question: str
    text: str
    decision: str
    confidence: float
    retrieved: Sequence[SearchResult]
    cited: Sequence[SearchResult]
    shown_case: str | None = None
    unfinished: bool = False


class MemoryUnderTest(Protocol):
    """An app with documents, whose memory can be switched for each question."""

    async def ask(self, question: str, *, memory: bool) -> AskedQuestion:
        """The answer; without the memory nothing of the question is stored."""

    async def rate(self, answer: AskedQuestion, *, up: bool) -> None:
        """The rating of the answer."""

    async def correct(self, answer: AskedQuestion, chunk_ids: Sequence[str]) -> None:
        """A reviewer's choice of passages for an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementPlan:
    """How the questions are asked. `wrong_ratings`: share of ratings that are the opposite of what is right.

    `corrections`: a reviewer chooses the relevant passages for questions whose answer was rated down or declined.
    """

    wrong_ratings: float = 0.0
    corrections: bool = True
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryComparison:
    """One question with and without the memory."""

    question: JudgedQuestion
    wording: str
    group: Group
    reciprocal_rank: tuple[float, float] = (0.0, 0.0)
    """With the memory, and without."""
    contained: tuple[bool, bool] = (False, False)
    shown: bool = False
    misled: bool = False
    """A case was shown, and the first passage was relevant only without the memory."""
    unfinished: bool = False
    """With or without the memory, it was not answered in time: it counts for no measure."""


@dataclass(slots=True)
class CaseMemoryRun:
    """The result: every compared question, and how the first half was rated."""

    compared: list[MemoryComparison] = field(default_factory=list)
    rated_up: int = 0
    rated_down: int = 0
    corrected: int = 0
    rated_wrongly: int = 0

    def taught(self) -> dict[str, int]:
        """How the first half was rated."""
        return {
            "rated_up": self.rated_up,
            "rated_down": self.rated_down,
            "rated_wrongly": self.rated_wrongly,
            "corrected": self.corrected,
        }


async def evaluate_case_memory(
    questions: Sequence[JudgedQuestion],
    memory: MemoryUnderTest,
    plan: MeasurementPlan,
    on_progress: Callable[[int, int], None] | None = None,
) -> CaseMemoryRun:
    """Ask and rate one half, then compare. Questions without judgements are left out."""
    chance = random.Random(plan.seed)  # nosec B311  # noqa: S311 - no secret
    judged = [question for question in questions if question.judgements]
    chance.shuffle(judged)
    first, second = judged[: len(judged) // 2], judged[len(judged) // 2 :]
    total, done = len(first) + len(judged), 0
    run = CaseMemoryRun()
    for question in first:
        await _teach(question, memory, plan, chance, run)
        done += 1
        if on_progress is not None:
            on_progress(done, total)
    repeats = [(question, light_paraphrase(question.text, chance), "repeat") for question in first]
    others = [(question, question.text, "other") for question in second]
    for question, text, group in (*repeats, *others):
        # Without the memory first: a question that is asked with it may become a case.
        off = await _asked(memory, text, memory=False)
        on = await _asked(memory, text, memory=True)
        run.compared.append(_comparison(question, text, "repeat" if group == "repeat" else "other", on, off))
        done += 1
        if on_progress is not None:
            on_progress(done, total)
    return run


async def _asked(memory_under_test: MemoryUnderTest, question: str, *, memory: bool) -> AskedQuestion | None:
    """What became of the question; None if it was not answered in time."""
    answer = await within_limit(memory_under_test.ask(question, memory=memory))
    return None if answer is None or answer.unfinished else answer


async def _teach(
    question: JudgedQuestion, memory: MemoryUnderTest, plan: MeasurementPlan, chance: random.Random, run: CaseMemoryRun
) -> None:
    answer = await _asked(memory, question.text, memory=True)
    if answer is None:
        return
    right = any(is_relevant(passage, question.judgements) for passage in answer.cited)
    up = right
    if chance.random() < plan.wrong_ratings:
        up = not up
        run.rated_wrongly += 1
    if answer.decision != "abstain":
        await memory.rate(answer, up=up)
        run.rated_up, run.rated_down = run.rated_up + up, run.rated_down + (not up)
    if plan.corrections and not right and (not up or answer.decision == "abstain"):
        chosen = [passage.chunk_id for passage in answer.retrieved if is_relevant(passage, question.judgements)]
        if chosen:
            await memory.correct(answer, chosen[:MAX_CORRECTED])
            run.corrected += 1


def _comparison(
    question: JudgedQuestion, text: str, group: Group, on: AskedQuestion | None, off: AskedQuestion | None
) -> MemoryComparison:
    if on is None or off is None:
        return MemoryComparison(question=question, wording=text, group=group, unfinished=True)
    ranks = (_reciprocal_rank(question, on), _reciprocal_rank(question, off))
    shown = on.shown_case is not None
    return MemoryComparison(
        question=question,
        wording=text,
        group=group,
        reciprocal_rank=ranks,
        contained=(_contains(question, on), _contains(question, off)),
        shown=shown,
        misled=shown and ranks[0] < 1.0 <= ranks[1],
    )


def _reciprocal_rank(question: JudgedQuestion, answer: AskedQuestion) -> float:
    relevant = frozenset(question.judgements)
    ranking = list(dict.fromkeys(judged_name(passage, relevant) for passage in answer.retrieved))
    return mrr_at(DEPTH, ranking, question.judgements)


def _contains(question: JudgedQuestion, answer: AskedQuestion) -> bool:
    text = _without_spaces(answer.text)
    return any(_without_spaces(gold) in text for gold in question.gold)


def _without_spaces(text: str) -> str:
    return normalise(text).replace(" ", "")


def ratios(row: MemoryComparison) -> dict[str, Ratio]:
    """What one question adds to each measure, by group."""
    measures: dict[str, Ratio] = {}
    for group in GROUPS:
        counts = float(row.group == group and not row.unfinished)
        gold = counts * bool(row.question.gold)
        on, off = row.reciprocal_rank
        measures |= {
            f"{group} mrr with": (counts * on, counts),
            f"{group} mrr without": (counts * off, counts),
            f"{group} mrr gain": (counts * (on - off), counts),
            f"{group} contained with": (gold * row.contained[0], gold),
            f"{group} contained without": (gold * row.contained[1], gold),
            f"{group} shown": (counts * row.shown, counts),
            f"{group} misled": (counts * row.misled, counts),
        }
    return measures | {"unfinished": (float(row.unfinished), 1.0)}


def rows(run: CaseMemoryRun) -> list[RunRow]:
    """The compared questions for a kept run."""
    return [
        RunRow(
            f"{row.question.id} ({row.group})",
            row.wording,
            ratios(row),
            {"asked before": row.question.text if row.group == "repeat" else "", "shown": row.shown},
        )
        for row in run.compared
    ]


def rows_of(run: EvaluationRun, taught: Mapping[str, int]) -> list[tuple[str, str]]:
    """Names and values for the text output."""
    lines = [
        ("dataset", run.dataset),
        (
            "taught",
            f"{taught['rated_up']:,} rated up, {taught['rated_down']:,} down ({taught['rated_wrongly']:,} wrongly), "
            f"{taught['corrected']:,} corrected",
        ),
    ]
    for name, estimate in run.estimates().items():
        if estimate.value is None or estimate.interval is None:
            continue
        low, high = estimate.interval
        lines.append((name, f"{estimate.value:.4f}  [{low:.4f}, {high:.4f}]"))
    return lines


_KOREAN_OPENINGS = ("혹시 ", "궁금한데요, ", "안녕하세요. ", "질문이 있습니다. ")
_ENGLISH_OPENINGS = ("Hi, quick question: ", "I was wondering, ", "Hello, ", "Could you tell me: ")
_KOREAN_CLOSINGS = (" 알려주세요.", " 부탁드립니다.")
_ENGLISH_CLOSINGS = (" Thanks!", " Please let me know.")
_KOREAN_ENDINGS = (
    (
        r"(무엇|누구|언제|어디)(?:인가|인가요|입니까|일까|일까요)\s*\??$",
        (r"\1입니까?", r"\1인가요?", r"\1인지 궁금합니다"),
    ),
    (r"([은는])\?$", (r"\1 무엇인가요?",)),
    (r"나요\s*\??$", ("나", "나요")),
    (r"습니까\s*\??$", ("나요?",)),
)
_FIRST_SYLLABLE, _VOWELS, _FINALS = ord("가"), 21, 28
_SIMILAR_VOWELS = {1: 5, 5: 1, 10: 15, 15: 10, 3: 7, 7: 3}
"""ㅐ and ㅔ, ㅙ and ㅞ, ㅒ and ㅖ, by their numbers in a syllable (Unicode 3.12)."""
_WORD = re.compile(r"[가-힣]{4,}|[a-z]{6,}")


def light_paraphrase(question: str, chance: random.Random) -> str:
    """The question in slightly other words; never equal to it."""
    changes: list[Callable[[str, random.Random], str]] = [_chatter, _ending, _spacing, _typing_error]
    chance.shuffle(changes)
    for change in changes:
        changed = change(question, chance)
        if changed != question:
            return changed
    return f"{question.rstrip(' ?')} ?" if question.endswith("?") else f"{question}?"


def _is_korean(question: str) -> bool:
    return language(question) == "ko"


def _chatter(question: str, chance: random.Random) -> str:
    korean = _is_korean(question)
    if chance.random() < 0.5:
        opening = chance.choice(_KOREAN_OPENINGS if korean else _ENGLISH_OPENINGS)
        return f"{opening}{question}"
    return f"{question}{chance.choice(_KOREAN_CLOSINGS if korean else _ENGLISH_CLOSINGS)}"


def _ending(question: str, chance: random.Random) -> str:
    if not _is_korean(question):
        return question.rstrip("? ").lower()
    for pattern, endings in _KOREAN_ENDINGS:
        if re.search(pattern, question):
            return re.sub(pattern, chance.choice(endings), question)
    return question


def _spacing(question: str, chance: random.Random) -> str:
    """Without one of its spaces, in Korean; with two in place of one, in other languages."""
    spaces = [place for place, character in enumerate(question) if character == " "]
    if not spaces:
        return question
    place = chance.choice(spaces)
    return f"{question[:place]}{'' if _is_korean(question) else '  '}{question[place + 1 :]}"


def _typing_error(question: str, chance: random.Random) -> str:
    """One wrong key in a long word: in Korean a similar vowel or no final consonant, else two letters swapped."""
    words = list(_WORD.finditer(question))
    if not words:
        return question
    word = chance.choice(words)
    if "가" <= word.group()[0] <= "힣":
        return _korean_typing_error(question, word.start(), word.end(), chance)
    place = chance.randrange(word.start() + 1, word.end() - 2)
    return f"{question[:place]}{question[place + 1]}{question[place]}{question[place + 2 :]}"


def _korean_typing_error(question: str, start: int, end: int, chance: random.Random) -> str:
    places = list(range(start, end))
    chance.shuffle(places)
    for place in places:
        initial, rest = divmod(ord(question[place]) - _FIRST_SYLLABLE, _VOWELS * _FINALS)
        vowel, final = divmod(rest, _FINALS)
        if vowel in _SIMILAR_VOWELS:
            vowel = _SIMILAR_VOWELS[vowel]
        elif final:
            final = 0
        else:
            continue
        syllable = chr(_FIRST_SYLLABLE + (initial * _VOWELS + vowel) * _FINALS + final)
        return f"{question[:place]}{syllable}{question[place + 1 :]}"
    return question
