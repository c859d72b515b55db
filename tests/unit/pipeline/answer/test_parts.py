"""The passages of each part of a question: by its own search and by that for the whole question."""

from __future__ import annotations

from dtrag.core.documents import PackFindings, SearchMetrics, SearchResult
from dtrag.pipeline.answer.parts import found_parts


def passage(article: str, score: float) -> SearchResult:
    metadata = {"document_id": "d", "article": article, "regulation": "인사규정"}
    return SearchResult(article, f"{article}의 글", bm25_score=0.5, hybrid_score=score, metadata=metadata)


async def articles(whole: list[SearchResult], *of_parts: list[SearchResult]) -> list[list[str]]:
    """The articles of each part, in their order."""
    questions = tuple(f"part {number}" for number in range(len(of_parts)))

    async def search(question: str) -> tuple[list[SearchResult], SearchMetrics]:
        return of_parts[questions.index(question)], SearchMetrics(pack=PackFindings({}))

    metrics = SearchMetrics(pack=PackFindings({}, (), questions))
    found = await found_parts(whole, metrics, search, [])
    return [[each.chunk_id for each in part.passages] for part in found]


async def test_a_part_that_leaves_out_its_subject_has_an_article_of_the_whole_question() -> None:
    whole = [passage("제35조", 0.7), passage("제36조", 0.65)]
    first, second = await articles(whole, [passage("제35조", 0.8)], [passage("제28조", 0.4), passage("제4조", 0.39)])
    assert first == ["제35조"]
    assert second[0] == "제36조"  # 제35조 answers the first part


async def test_an_article_that_is_the_best_of_two_parts_answers_both() -> None:
    whole = [passage("제12조", 0.7), passage("제13조", 0.2)]
    own = [passage("제12조", 0.8), passage("제13조", 0.3)]
    assert await articles(whole, own, own) == [["제12조", "제13조"]] * 2
