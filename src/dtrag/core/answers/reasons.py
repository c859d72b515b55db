"""Why an answer is trusted, to be checked, or declined: in words with codes, and what a declined answer offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from dtrag.core.answers.citation_labels import cited_label
from dtrag.core.documents import Declined, NearestHeading, SearchResult
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.statements import Statement, Statements, stated
from dtrag.core.text.analysis import term_id, terms
from dtrag.core.text.questions import content

Decision = Literal["answer", "review", "abstain"]


def evidence_in_words(decision: Decision, model: str, values: Mapping[str, float]) -> Statement:
    """The signals that the model decides by."""
    heads = {"abstain": "Too little evidence: ", "review": "Weak evidence, check the sources: ", "answer": ""}
    head = heads[decision]
    if model.startswith("regulations"):
        extent, covers = (
            ("whole", "the whole question") if values["regulation_covered"] else ("part", "a part of the question")
        )
        similarity = values.get("regulation_similarity")
        near = "" if similarity is None else "; the nearest one is {similarity} similar"
        return stated(
            f"evidence_regulations_{extent}_vectors" if near else f"evidence_regulations_{extent}",
            f"{head}{'the' if head else 'The'} best regulation reaches {{score}} of a full text score, the lexicon "
            "explains {explained} of the question's words as a situation, and the first article covers "
            f"{covers}{near}.",
            **({} if similarity is None else {"similarity": f"{similarity:.0%}"}),
            score=f"{values['regulation_score']:.0%}",
            explained=f"{values['regulation_situations']:.0%}",
        )
    without = "; a number of the question is not in it" if values["numbers"] else ""
    return stated(
        "evidence_words_without_number" if without else "evidence_words",
        f"{head}{'at best a' if head else 'A'} passage holds {{coverage}} of what the question asks about, by weight "
        f"of its words, and reaches {{lexical}} of the highest possible text score{without}.",
        coverage=f"{values['coverage']:.0%}",
        lexical=f"{values['lexical']:.0%}",
    )


def nearest(passages: Sequence[SearchResult]) -> Statement:
    """The headings of the best passages, in words: where to look although they do not answer."""
    headings = "; ".join(cited_label(passage) for passage in nearest_passages(passages))
    return stated("nearest_headings", "Nearest headings: {headings}.", headings=headings)


def nearest_passages(passages: Sequence[SearchResult], most: int = 3) -> list[SearchResult]:
    """The best passages, one for each heading."""
    by_label: dict[str, SearchResult] = {}
    for passage in passages:
        by_label.setdefault(cited_label(passage), passage)
    return list(by_label.values())[:most]


def declined(question: str, passages: Sequence[SearchResult], statistics: LexicalStatistics) -> Declined:
    """What a reader of a declined answer needs. `passages` and `statistics` are those that the caller may see."""
    near = (
        NearestHeading(
            label=cited_label(passage),
            chunk_id=passage.chunk_id,
            document_id=passage.chunk_id.rpartition(":")[0],
            start=passage.start,
            end=passage.end,
        )
        for passage in nearest_passages(passages)
    )
    searched = max(statistics.chunks, len(passages))  # of a provision that is named, only its passages are read
    unknown = unknown_words(question, statistics) if statistics.chunks else []
    return Declined(searched, tuple(unknown), tuple(near))


def advice(question: str, statistics: LexicalStatistics) -> Statements:
    """What was searched, and what would help. `statistics` as for `confidence_of`."""
    if not statistics.chunks:
        nothing = "There is nothing that you may see: add documents, or ask in another category."
        return (stated("nothing_visible", nothing),)
    searched = stated("searched", "Searched: {passages} passages that you may see.", passages=f"{statistics.chunks:,}")
    unknown = unknown_words(question, statistics)
    if not unknown:
        apart = "All words occur, but not together: ask more closely, or add documents that tell of it."
        return searched, stated("words_apart", apart)
    nowhere = "Nowhere in them: {words}. Say it in other words, or add documents that tell of it."
    return searched, stated("unknown_words", nowhere, words=", ".join(f'"{word}"' for word in unknown))


def unknown_words(question: str, statistics: LexicalStatistics, most: int = 5) -> list[str]:
    """Words of the question's content, as written, of which no term occurs in any passage."""
    unknown: list[str] = []
    for word in words_of(question):
        ids = [term_id(term) for term in terms(word)]
        if ids and not any(map(statistics.document_frequency, ids)) and word not in unknown:
            unknown.append(word)
    return unknown[:most]


def words_of(question: str) -> list[str]:
    """The words of the question's content without punctuation around them."""
    return [word.strip("\"'“”‘’「」『』()[]{}<>.,;:!?·…") for word in content(question).split()]
