"""Reads a set of judged questions: what is relevant to each, its known answers, or that nothing answers it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from dtrag.core.documents import Answer, SearchResult
from dtrag.core.provisions import provision_names
from dtrag.core.text.analysis import normalise
from dtrag.errors import InvalidInput
from dtrag.settings import timeouts_times

Groups = tuple[tuple[str, ...], ...]
"""Of each group at least one string has to be shown."""
_REFERENCE = re.compile(r"\s?\[(?:\d+|\?)\]")
_MARK = re.compile(r"<[^<>]*>")


def shown_parts(answer: Answer) -> list[str]:
    """What the reader sees: the text without the numbers of its sources, and each quotation after its context."""
    quoted = (text for each in answer.citations for text in (*(part.text for part in each.context), each.quote))
    return list(dict.fromkeys((_REFERENCE.sub("", answer.text), *quoted)))


def missing_groups(parts: Iterable[str], must: Groups) -> list[str]:
    """The groups of which no part has a string, each as one text."""
    folded = "\n".join(map(letters_and_digits, parts))
    return [" | ".join(group) for group in must if not any(letters_and_digits(each) in folded for each in group)]


def letters_and_digits(text: str) -> str:
    """The folded text without marks such as `<개정 2024. 3. 1.>`, white space and punctuation."""
    return "".join(filter(str.isalnum, _MARK.sub("", normalise(text))))


PATTERNS = ("queries.jsonl", "questions.jsonl", "queries.*.jsonl", "questions.*.jsonl")
"""Names of the file of questions, in the order in which they are looked for."""
MAX_CHARACTERS = 10_000
FORM = '{"id": ..., "text": "..."} or {"qid": ..., "question": "..."}'
MUST_FORM = '{"id": ..., "must": [["...", ...], ...]}: of each group of strings an answer has to show one'


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A question. `judgements`: relevant document or article -> grade (> 0); each of the `gold` answers suffices.

    `reference` is a right answer in sentences, for judges; answers need not contain it. `must` are the groups of words
    that an answer has to show; None: not given, (): none can be given.
    """

    id: str
    text: str
    judgements: Mapping[str, int]
    gold: tuple[str, ...] = ()
    answerable: bool = True
    reference: str = ""
    must: Groups | None = None

    @property
    def expected(self) -> Groups:
        """What a sufficient answer shows: `must`, or else one of the `gold` answers; () where neither is known."""
        return self.must if self.must is not None else (self.gold,) if self.gold else ()


@dataclass(frozen=True, slots=True)
class JudgedSet:
    """Questions and the file or folder with the documents that they are about."""

    name: str
    corpus: Path
    questions: tuple[JudgedQuestion, ...]

    @property
    def relevant_ids(self) -> frozenset[str]:
        """All ids that are relevant to some question."""
        return frozenset(name for question in self.questions for name in question.judgements)


def read_set(source: Path, corpus: Path | None = None, must: Path | None = None) -> JudgedSet:
    """The set in a folder, or of a file of questions. Raises `InvalidInput` that names the invalid file and line.

    `corpus` replaces `corpus.jsonl` of the folder. A question's own `"relevant"` has priority over `qrels.tsv`; the
    file `must` has priority over a question's own `"must"`.
    """
    file = source if source.is_file() else _questions_file(source)
    corpus = _corpus(file.parent, corpus)
    qrels = file.with_name("qrels.tsv")
    judgements = _judgements(qrels) if qrels.is_file() else {}
    questions = {name: _question(name, row, where, judgements) for name, row, where in _rows(file, FORM)}
    for name, row, where in _rows(must, MUST_FORM) if must is not None else ():
        if name not in questions:
            raise InvalidInput(f"{where}: {file} has no question with the id {name!r}.")
        questions[name] = replace(questions[name], must=_must(row, where))
    name = source.stem if source.is_file() else source.resolve().name
    return JudgedSet(name, corpus, tuple(questions.values()))


def set_of(name: str, rows: Sequence[Any]) -> JudgedSet:
    """The questions of these rows, about the documents of the caller. Raises `InvalidInput` that names the row."""
    named = _named(rows, name, FORM)
    return JudgedSet(name, Path(), tuple(_question(each, row, where, {}) for each, row, where in named))


def spread(rows: tuple[JudgedQuestion, ...], limit: int | None) -> tuple[JudgedQuestion, ...]:
    """At most `limit` rows, at equal distances."""
    if limit is None or limit >= len(rows):
        return rows
    return tuple(rows[position * len(rows) // limit] for position in range(limit))


def _questions_file(folder: Path) -> Path:
    if not folder.is_dir():
        raise InvalidInput(f"{folder} is not a folder with judged questions, and not a file of them.")
    for pattern in PATTERNS:
        files = sorted(folder.glob(pattern))
        if len(files) > 1:
            names = ", ".join(file.name for file in files)
            raise InvalidInput(f"{folder} has several files of questions: {names}. Give one of them instead of DIR.")
        if files:
            return files[0]
    raise InvalidInput(f"{folder} has no file of questions: there is no queries.jsonl or questions.jsonl in it.")


def _corpus(folder: Path, corpus: Path | None) -> Path:
    if corpus is None and not (folder / "corpus.jsonl").is_file():
        raise InvalidInput(
            f"{folder} has no documents: there is no corpus.jsonl in it. Give a file or a folder with --corpus."
        )
    if corpus is not None and not corpus.exists():
        raise InvalidInput(f"There is no file or folder {corpus} (--corpus).")
    return corpus or folder / "corpus.jsonl"


def _lines(file: Path) -> list[tuple[int, str]]:
    """The lines with their numbers. Only line feeds separate them: JSON strings may contain U+2028."""
    try:
        text = file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read as UTF-8 text: {error}") from error
    lines = text.removesuffix("\n").split("\n") if text else []
    return [(number, line.removesuffix("\r")) for number, line in enumerate(lines, start=1)]


def _judgements(qrels: Path) -> dict[str, dict[str, int]]:
    """Question id -> relevant id -> grade."""
    judgements: dict[str, dict[str, int]] = {}
    for number, line in _lines(qrels):
        try:
            question, name, text = line.split("\t")
            grade = int(text)
        except ValueError as error:
            raise InvalidInput(
                f"{qrels}, line {number}: expected query id, document id and grade with tabs."
            ) from error
        if grade > 0:
            judgements.setdefault(question, {})[name] = grade
    return judgements


def _rows(file: Path, form: str) -> Iterator[tuple[str, dict[str, Any], str]]:
    """The id of each line, its object, and where it is."""
    return _named((_row(line, f"{file}, line {number}", form) for number, line in _lines(file)), str(file), form)


def _row(line: str, where: str, form: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{where}: expected {form}; this is not valid JSON.") from error


def _named(rows: Iterable[Any], source: str, form: str) -> Iterator[tuple[str, dict[str, Any], str]]:
    lines_by_id: dict[str, int] = {}
    for number, row in enumerate(rows, start=1):
        where = f"{source}, line {number}"
        name = row.get("id", row.get("qid", f"line {number}")) if isinstance(row, dict) else None
        if isinstance(name, bool | float | list | dict | None):
            raise InvalidInput(f"{where}: expected {form}.")
        if str(name) in lines_by_id:
            raise InvalidInput(f"{where}: line {lines_by_id[str(name)]} has the same id, {str(name)!r}.")
        lines_by_id[str(name)] = number
        yield str(name), row, where


def _question(name: str, row: Mapping[str, Any], where: str, judged: Mapping[str, Mapping[str, int]]) -> JudgedQuestion:
    text = row.get("text", row.get("question"))
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput(f"{where}: expected {FORM}.")
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(f"{where}: the question has {len(text):,} characters; the limit is {MAX_CHARACTERS:,}.")
    relevant = _texts(row, "relevant", where)
    judgements = judged.get(name, {}) if relevant is None else dict.fromkeys(relevant, 1)
    gold = tuple(answer for answer in _texts(row, "answers", where) or () if normalise(answer).strip())
    reference = row.get("answer") or ""
    if not isinstance(reference, str):
        raise InvalidInput(f'{where}: expected "answer": "...", a string.')
    must = _must(row, where) if row.get("must") is not None else None
    return JudgedQuestion(name, text, judgements, gold, _answerable(row, relevant, where), reference, must)


def _must(row: Mapping[str, Any], where: str) -> Groups:
    groups = row.get("must")
    if not isinstance(groups, list) or not all(isinstance(group, list) and group for group in groups):
        raise InvalidInput(f"{where}: expected {MUST_FORM}.")
    for text in (text for group in groups for text in group):
        if not isinstance(text, str) or not letters_and_digits(text):
            raise InvalidInput(f"{where}: expected {MUST_FORM}; {text!r} has no letter and no digit to look for.")
    return tuple(map(tuple, groups))


def _answerable(row: Mapping[str, Any], relevant: list[str] | None, where: str) -> bool:
    """`"answerable"` or the opposite of `"unanswerable"`; without them, whether `"relevant"` is not an empty list."""
    for name, meaning in (("answerable", True), ("unanswerable", False)):
        value = row.get(name)
        if value is not None:
            if not isinstance(value, bool):
                raise InvalidInput(f"{where}: {name} must be true or false.")
            return value is meaning
    return relevant is None or bool(relevant)


def _texts(row: Mapping[str, Any], name: str, where: str) -> list[str] | None:
    value = row.get(name)
    if value is not None and not (isinstance(value, list) and all(isinstance(text, str) for text in value)):
        raise InvalidInput(f'{where}: expected "{name}": ["...", ...], a list of strings.')
    return value


QUESTION_S = 60.0
"""Seconds for a question. One that takes longer has no result: it is counted as unfinished."""
STEPS_TIMES = 30.0
"""Factor of the limits of single steps: searching, the first long one, has 2 s in the service."""
UNFINISHED = "unfinished"
"""The decision of a question that was not answered in time."""
T = TypeVar("T")


async def within_limit(work: Awaitable[T]) -> T | None:
    """The result of the work for one question; None when it takes longer than `QUESTION_S`."""
    try:
        with timeouts_times(STEPS_TIMES):
            async with asyncio.timeout(QUESTION_S):
                return await work
    except TimeoutError:
        return None


def unfinished_line(questions: int) -> list[tuple[str, str]]:
    """The line of the text output for questions without an answer in time; none if there are none."""
    return [("not finished", f"{questions:,} in {QUESTION_S:g} s each: in no measure")] if questions else []


def document_names(passage: SearchResult) -> list[str]:
    """The id in the corpus, title, id in the index, address and file name of the passage's document."""
    metadata = passage.metadata
    file_name = passage.source_url.rsplit("/", 1)[-1]
    names = (metadata.get("id"), passage.title, metadata.get("document_id"), passage.source_url, file_name)
    return [str(name) for name in names if name]


def article_names(passage: SearchResult) -> list[str]:
    """`code:제N조` and `규정명:제N조`, with `#2` for the second article of one number; [] outside of regulations."""
    return provision_names(passage.metadata)


def judged_name(passage: SearchResult, relevant_ids: Collection[str]) -> str:
    """The passage's name that occurs in the judgements, else the first of its names; "" without any.

    An article has priority over its document, so that the articles of a regulation book are different results.
    """
    names = [*article_names(passage), *document_names(passage)]
    return next((name for name in names if name in relevant_ids), names[0] if names else "")
