"""What is quoted: to the letter, few, short, the likeliest first, no sentence twice, nothing that is only a mark."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrag.core.answers.evidence import signals
from dtrag.core.answers.sentence_vectors import SentenceVectors, quotable_spans
from dtrag.core.documents import PackFindings, SearchResult, Vector
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.text.analysis import normalise, term_ids
from dtrag.core.text.line_kinds import QUOTABLE
from dtrag.core.text.units import units_of
from dtrag.pipeline.answer.candidates import MARGIN, MAX_CHARACTERS, NEARLY, Quote
from dtrag.pipeline.answer.citations import cite
from dtrag.pipeline.answer.extractive import (
    ENOUGH,
    LEAST,
    MAX_SENTENCES,
    MOST_EMBEDDED,
    PASSAGES,
    extract,
    nothing_found,
)
from tests.toy import ToyEmbedder
from tests.unit.retrieval.memory import Broken

NOTHING_KNOWN = LexicalStatistics(chunks=100)

SENTENCES = st.lists(
    st.sampled_from(
        [
            "The valve closes at nine.",
            "The boiler is inspected once a year!",
            "Kim Lee inspects the boiler within 10 days.",
            "휴학은 통산 네 학기를 초과할 수 없다.",
            "② 휴학 기간은 1년 이내로 한다.",
            "③ <삭제 2009. 7. 1.>",
            "Valve.",
            "a valve " * 90 + "end.",
            "valve boiler " + "garden " * 30 + "end.",
            "…",
        ]
    ),
    max_size=9,
)


class Counting(ToyEmbedder):
    """Remembers what it has embedded."""

    texts: tuple[str, ...] = ()

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        object.__setattr__(self, "texts", (*self.texts, *texts))
        return super().embed_documents(texts)


def _passages(*texts: str, score: float = 0.5) -> list[SearchResult]:
    return [SearchResult(f"c{number}", text, bm25_score=score) for number, text in enumerate(texts)]


def _texts(quotes: Sequence[Quote]) -> list[str]:
    return [quote.text for quote in quotes]


def _check(quotes: Sequence[Quote], passages: Sequence[SearchResult]) -> None:
    for quote in quotes:
        text = passages[quote.passage].text
        assert text[quote.start : quote.end] == quote.text
        assert (quote.start, quote.end) in {
            (unit.start, unit.end) for unit in units_of(text).units if unit.kind in QUOTABLE
        }
        assert math.isfinite(quote.score)
    assert len(quotes) <= MAX_SENTENCES
    assert len(" ".join(_texts(quotes))) <= MAX_CHARACTERS
    places = [(quote.passage, quote.start) for quote in quotes]
    assert places[1:] == sorted(set(places) - set(places[:1]))
    keys = [normalise(quote.text) for quote in quotes]
    assert len(keys) == len(set(keys))
    assert all(quote.score == max(one.score for one in quotes) for quote in quotes[:1])
    assert all(quote.score >= min(LEAST, NEARLY * quotes[0].score) for quote in quotes[1:])
    assert sum(quote.score for quote in quotes) - min((quote.score for quote in quotes), default=0.0) < ENOUGH
    assert all("삭제" not in quote.text for quote in quotes)


@settings(max_examples=80)
@given(
    st.lists(st.tuples(SENTENCES, st.floats(0, 1)), max_size=7),
    st.sampled_from(
        ["When does the valve close?", "who inspects the boiler", "휴학은 최대 몇 학기까지?", "???", "삭제"]
    ),
    st.booleans(),
)
def test_quotes_are_exact_few_short_ordered_and_distinct(
    drawn: list[tuple[list[str], float]], question: str, with_embedder: bool
) -> None:
    passages = [SearchResult(f"c{n}", "\n".join(texts), bm25_score=score) for n, (texts, score) in enumerate(drawn)]
    quotes = extract(question, passages, NOTHING_KNOWN, ToyEmbedder() if with_embedder else None)
    _check(quotes, passages)
    assert all(quote.passage < PASSAGES for quote in quotes)


def test_the_sentence_that_answers_is_quoted_and_others_are_not() -> None:
    passages = _passages(
        "Gardens are watered daily. Lanterns are lit.", "Doors are shut. The boiler valve closes at nine."
    )
    quotes = extract("When does the boiler valve close?", passages, NOTHING_KNOWN)
    best = max(quotes, key=lambda quote: quote.score)
    assert (best.passage, best.text) == (1, "The boiler valve closes at nine.")
    assert all(quote.passage == 1 for quote in quotes)


def test_the_likeliest_sentence_leads_and_the_others_follow_in_reading_order() -> None:
    passages = _passages("The valve opens at nine. The boiler valve closes at nine.", "A boiler valve closes at nine.")
    quotes = extract("When does the boiler valve close at nine?", passages, NOTHING_KNOWN)
    assert [quote.score for quote in quotes] != sorted((quote.score for quote in quotes[1:]), reverse=True)
    assert max(quotes, key=lambda quote: quote.score) == quotes[0]
    assert [(quote.passage, quote.start) for quote in quotes[1:]] == sorted(
        (quote.passage, quote.start) for quote in quotes[1:]
    )


def test_one_sentence_is_quoted_when_one_is_enough() -> None:
    passages = _passages("Gardens are watered daily. The boiler valve closes at nine. Lanterns are lit by the porter.")
    quotes = extract("When does the boiler valve close?", passages, NOTHING_KNOWN)
    assert _texts(quotes) == ["The boiler valve closes at nine."]
    assert quotes[0].score > ENOUGH


def test_a_sentence_that_only_restricts_is_quoted_with_the_one_before_it() -> None:
    main, proviso = "① 환자의 외출은 간호사가 허가한다.", "다만, 특수한 환자의 외출은 병원장의 허가를 받는다."
    passages = _passages(f"{main} {proviso} ② 외박은 금지한다.")
    for question in ("특수한 환자는 병원장의 허가를 받나요?", "환자의 외출은 간호사가 허가하나요?"):
        assert not any(text.startswith("다만") for text in _texts(extract(question, passages, NOTHING_KNOWN)))
    (quote, *_) = extract("특수한 환자는 병원장의 허가를 받나요?", passages, NOTHING_KNOWN)
    assert quote.text == f"{main} {proviso}"


RATES = (
    "Hotels are booked early. The following limits apply to each person. A higher rate is paid when the customer has "
    "named the hotel.\n\nDestination | Hotel per night | Meals\nSeoul | 130 | 45\nEurope | 160 | 60\nAsia | 190 | 65"
)


def test_rows_that_the_question_does_not_tell_apart_are_quoted_together_and_not_the_sentence_that_announces_them() -> (
    None
):
    quotes = extract("What is the limit for hotel costs?", _passages(RATES), NOTHING_KNOWN)
    assert _texts(quotes)[:3] == ["Seoul | 130 | 45", "Europe | 160 | 60", "Asia | 190 | 65"]
    _, citations, _ = cite(quotes, _passages(RATES))
    context = [(part.kind, part.text) for part in citations[0].context]
    assert context == [
        ("lead_in", "The following limits apply to each person."),
        ("header", "Destination | Hotel per night | Meals"),
    ]


def test_only_the_row_that_the_question_names_is_quoted() -> None:
    quotes = extract("What is the hotel limit in Asia?", _passages(RATES), NOTHING_KNOWN)
    assert [text for text in _texts(quotes) if "|" in text] == ["Asia | 190 | 65"]


LEAVE = (
    "① 일반휴학은 한 번에 2학기까지 할 수 있다.\n② 군휴학의 기간은 의무복무기간으로 한다.\n"
    "③ 육아휴학은 자녀 1명마다 2학기 이내로 한다."
)


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        ("군휴학은 몇 학기까지 되나요?", LEAVE, "② 군휴학의 기간은 의무복무기간으로 한다."),
        ("육아휴학은 몇 학기까지 되나요?", LEAVE, "③ 육아휴학은 자녀 1명마다 2학기 이내로 한다."),
        (
            "How much leave do part-time employees get?",
            "A full-time employee has 26 days of leave.\nIf you work part time, leave is reduced in proportion.",
            "If you work part time, leave is reduced in proportion.",
        ),
    ],
)
def test_a_sentence_about_the_thing_of_the_question_is_quoted_and_its_siblings_are_not(
    question: str, text: str, answer: str
) -> None:
    assert _texts(extract(question, _passages(text), NOTHING_KNOWN)) == [answer]


def test_a_rule_is_quoted_with_its_proviso() -> None:
    text = "융합전공은 모든 학과의 학생이 이수한다. 다만, 간호학과의 학생은 이수할 수 없다."
    assert _texts(extract("융합전공은 모든 학과가 되나요?", _passages(text), NOTHING_KNOWN)) == [text]


NO_SIGNALS = PackFindings({})


def _ranked(*texts: str, scores: Sequence[float] = (0.9, 0.89, 0.88)) -> list[SearchResult]:
    """Passages of articles in the order of a pack."""
    return [
        SearchResult(f"c{n}", text, bm25_score=0.5, hybrid_score=score, metadata={"article": f"제{n + 1}조"})
        for n, (text, score) in enumerate(zip(texts, scores, strict=False))
    ]


def _of_pack(question: str, passages: list[SearchResult]) -> list[Quote]:
    return extract(question, passages, NOTHING_KNOWN, pack=NO_SIGNALS)


def test_the_first_provision_is_quoted_whole_and_of_two_further_ones_a_sentence_each() -> None:
    passages = _ranked(
        "① 휴학은 두 학기까지 한다. 다만, 군휴학은 그러하지 아니하다.\n② 휴학원을 낸다.",
        "복학은 두 학기 안에 한다. 복학원을 낸다.",
        "휴학은 총장이 허가한다.",
        "휴학은 네 번까지 한다.",
        scores=(0.9, 0.89, 0.88, 0.87),
    )
    first, *further = _of_pack("휴학은 두 학기까지 하나요?", passages)
    assert first.text == passages[0].text
    assert first.marked is not None
    assert first.text[slice(*first.marked)] == "① 휴학은 두 학기까지 한다."
    assert [(quote.passage, quote.text) for quote in further] == [
        (1, "복학은 두 학기 안에 한다."),
        (2, "휴학은 총장이 허가한다."),
    ]
    assert all(quote.further and quote.marked is None for quote in further)


def test_a_further_provision_needs_nearly_the_score_of_the_first_and_a_sentence_of_its_own() -> None:
    texts = "휴학은 두 학기까지 한다.", "휴학은 네 번까지 한다."
    assert len(_of_pack("휴학은 몇 번 하나요?", _ranked(*texts, scores=(0.9, MARGIN * 0.9 + 1e-6)))) == 2
    assert len(_of_pack("휴학은 몇 번 하나요?", _ranked(*texts, scores=(0.9, MARGIN * 0.9 - 1e-6)))) == 1
    assert len(_of_pack("휴학은 몇 번 하나요?", _ranked("휴학은 두 학기까지 한다.", "휴학은 두 학기까지 한다."))) == 1


def test_of_ranked_provisions_one_with_the_value_that_is_asked_for_comes_first() -> None:
    passages = _ranked("위원에게 수당을 지급한다.", "위원은 9명 이내로 한다.", "회의록에는 위원 전원이 서명한다.")
    assert _texts(_of_pack("위원은 몇 명인가요?", passages))[0] == "위원은 9명 이내로 한다."
    assert _texts(_of_pack("위원에게 무엇을 주나요?", passages))[0] == "위원에게 수당을 지급한다."


def test_a_provision_that_defines_the_bare_word_of_the_question_comes_first() -> None:
    passages = _ranked("휴학은 네 학기까지 한다.", "“휴학”이란 학업을 쉬는 것을 말한다. 복학은 다시 배우는 것이다.")
    first, *_ = _of_pack("휴학", passages)
    assert first.text == passages[1].text
    assert first.marked is not None
    assert first.text[slice(*first.marked)].startswith("“휴학”이란")


def test_of_other_documents_a_pack_quotes_the_sentence() -> None:
    (other,) = [replace(passage, metadata={}) for passage in _ranked("휴학은 두 학기까지 한다. 도서관은 밤에 닫는다.")]
    assert _texts(_of_pack("휴학은 몇 학기까지 하나요?", [other])) == ["휴학은 두 학기까지 한다."]


def test_a_chain_of_restrictions_is_one_quotation() -> None:
    text = "신청은 3월에 한다. 다만, 늦으면 4월에 신청한다. 이 경우 총장의 승인을 받아 신청한다."
    for question in ("신청은 언제 하나요?", "늦으면 총장의 승인을 받아 신청하나요?", "4월에 신청해도 승인을 받나요?"):
        quotes = extract(question, _passages(text), NOTHING_KNOWN)
        spans = sorted((quote.start, quote.end) for quote in quotes)
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
        assert all(quote.text.startswith("신청은") for quote in quotes)


@pytest.mark.parametrize("question", ["휴학을 신청할 때 어떤 서류를 내야 하나요?", "휴학에 필요한 서류 목록"])
def test_a_list_is_quoted_whole_when_it_is_asked_for(question: str) -> None:
    text = "휴학을 신청하는 학생은 다음 각 호의 서류를 제출한다.\n1. 휴학원서\n2. 보호자 동의서\n3. 등록금 납입증명서"
    (quote,) = extract(question, _passages(text), NOTHING_KNOWN)
    assert quote.text == "1. 휴학원서\n2. 보호자 동의서\n3. 등록금 납입증명서"


def test_measures_are_quoted_whole_and_not_one_that_shares_a_word_with_the_question() -> None:
    text = "부정행위로 판정되면 총장은 다음 각 호의 조치를 한다.\n1. 논문의 철회\n2. 연구비의 환수\n3. 징계의 요청"
    for question in ("논문 부정행위는 무슨 벌을 받나요?", "논문 부정행위에는 어떤 조치를 하나요?"):
        (quote,) = extract(question, _passages(text), NOTHING_KNOWN)
        assert quote.text == "1. 논문의 철회\n2. 연구비의 환수\n3. 징계의 요청"


@pytest.mark.parametrize("question", ["휴학", "휴학?", "Leave"])
def test_a_bare_word_is_answered_with_its_definition_first(question: str) -> None:
    passages = _passages(
        "휴학은 네 학기까지 한다. Leave is granted by the head.",
        "이 규정에서 “휴학”이란 학업을 쉬는 것을 말한다. “Leave” means time away from work.",
    )
    first, *others = extract(question, passages, NOTHING_KNOWN)
    assert "쉬는 것" in first.text or "time away" in first.text
    assert others
    assert first.text not in _texts(others)
    assert "쉬는 것" not in extract("휴학은 몇 학기까지 하나요?", passages, NOTHING_KNOWN)[0].text


def test_a_long_list_is_quoted_as_far_as_there_is_space() -> None:
    items = "\n".join(f"{number}. {'항목 서류 ' * 20}" for number in range(1, 12))
    (quote,) = extract("어떤 서류를 내나요?", _passages(f"다음 각 호의 서류를 제출한다.\n{items}"), NOTHING_KNOWN)
    assert quote.text.startswith("1. 항목")
    assert MAX_CHARACTERS / 2 < len(quote.text) <= MAX_CHARACTERS


def test_a_sentence_is_quoted_once_however_it_is_written() -> None:
    passages = _passages("The valve closes at nine.", "THE VALVE  closes at nine.", "Ｔhe valve closes at nine.")
    assert len(extract("When does the valve close?", passages, NOTHING_KNOWN)) == 1


def test_at_most_five_sentences_and_600_characters() -> None:
    many = _passages(*(f"Valve number {number} closes." for number in range(20)))
    assert len(extract("Which valve closes?", many, NOTHING_KNOWN)) == MAX_SENTENCES
    long = _passages(*(f"Valve {number} closes {'slowly ' * 35}there." for number in range(5)))
    quotes = extract("Which valve closes?", long, NOTHING_KNOWN)
    assert len(quotes) == 2
    _check(quotes, long)


def test_a_sentence_longer_than_an_answer_is_not_quoted() -> None:
    passages = _passages("valve " * 110 + "closes. The valve opens.")
    assert _texts(extract("Which valve closes?", passages, NOTHING_KNOWN)) == ["The valve opens."]


@pytest.mark.parametrize(
    "mark", ["③ <삭제 2009. 7. 1.>", "<삭제>", "2. (삭제 2010. 3. 1.)", "① [전문개정 2015. 2. 1.]", "1."]
)
def test_a_sentence_that_is_only_a_mark_is_never_quoted(mark: str) -> None:
    question = "삭제 전문개정 2009년에 무엇이 1 2009 7 2010 2015 2?"
    assert extract(question, _passages(mark), NOTHING_KNOWN) == []
    quotes = extract(question, _passages(f"{mark}\n휴학은 2009년에 폐지되었다."), NOTHING_KNOWN)
    assert _texts(quotes) == ["휴학은 2009년에 폐지되었다."]


def test_a_mark_beside_text_is_quoted_with_it() -> None:
    passages = _passages("② 휴학은 네 학기를 초과할 수 없다. <개정 2020. 3. 1.>")
    assert _texts(extract("휴학은 최대 몇 학기까지 할 수 있나요?", passages, NOTHING_KNOWN))[0].startswith(
        "② 휴학은 네 학기를"
    )


@pytest.mark.parametrize("question", ["", "???", "the of"])
def test_a_question_without_words_quotes_nothing(question: str) -> None:
    assert extract(question, _passages("The valve closes."), NOTHING_KNOWN) == []


def test_no_passages_no_sentences_no_quotes() -> None:
    for passages in ([], _passages(""), _passages("…", "① ② ③")):
        assert extract("When does the valve close?", passages, NOTHING_KNOWN) == []


def test_only_the_dozen_best_sentences_by_words_are_embedded() -> None:
    """Embedding is most of what an answer costs."""
    embedder = Counting()
    close = [f"The valve closes at {hour}." for hour in range(20)]
    far = [f"Gardens bloom in week {week}." for week in range(20)]
    quotes = extract("When does the valve close?", _passages("\n".join(close + far)), NOTHING_KNOWN, embedder)
    assert len(embedder.texts) == MOST_EMBEDDED + 1
    assert set(embedder.texts) <= {"When does the valve close?", *close}
    assert set(_texts(quotes)) <= set(close)
    embedder = Counting()
    extract("When does the valve close?", _passages("\n".join([close[0], *far])), NOTHING_KNOWN, embedder)
    assert set(embedder.texts) <= {"When does the valve close?", close[0], far[0]}  # the neighbour counts, too


def test_stored_vectors_are_not_embedded_again_and_quote_the_same() -> None:
    question, texts = (
        "When does the valve close?",
        ["The valve closes at nine. The valve hums.", "The old valve closes."],
    )
    passages, embedder = _passages(*texts), Counting()
    plain = extract(question, passages, NOTHING_KNOWN, embedder)
    assert len(embedder.texts) == 4
    first = passages[0]
    of_first = {span: embedder.embed_documents([first.text[slice(*span)]])[0] for span in quotable_spans(first.text)}
    for space, embedded in ((embedder.id, {question, texts[1]}), ("other", {question, texts[1], *_split(texts[0])})):
        embedder = Counting()
        stored = SentenceVectors(space, {first.chunk_id: of_first})
        assert extract(question, passages, NOTHING_KNOWN, embedder, stored=stored) == plain
        assert set(embedder.texts) == embedded
    opposite = SentenceVectors(embedder.id, {first.chunk_id: {span: -vector for span, vector in of_first.items()}})
    assert extract(question, passages, NOTHING_KNOWN, embedder, stored=opposite) != plain


def _split(text: str) -> list[str]:
    return [text[slice(*span)] for span in quotable_spans(text)]


def test_a_passage_is_analysed_once_for_confidence_and_quoting(monkeypatch: pytest.MonkeyPatch) -> None:
    analysed: list[str] = []
    monkeypatch.setattr(
        "dtrag.core.text.sentences.term_ids",
        lambda text: analysed.append(text) or term_ids(text),  # type: ignore[func-returns-value]
    )
    texts = ["The lantern of the harbour closes at nine. It opens at ten."]
    signals("When does the lantern close?", _passages(*texts), NOTHING_KNOWN)
    assert extract("When does the lantern close?", _passages(*texts), NOTHING_KNOWN)
    assert analysed == ["The lantern of the harbour closes at nine.", "It opens at ten."]


@pytest.mark.parametrize("embedder", [Broken(ConnectionError("down")), Broken(value=math.nan), Broken(value=math.inf)])
def test_errors_of_the_embedder_are_passed_on_and_nan_is_not_a_score(embedder: Broken) -> None:
    with pytest.raises((ConnectionError, ValueError)):
        extract("When does the valve close?", _passages("The valve closes."), NOTHING_KNOWN, embedder)


def test_the_abstention_is_in_the_language_of_the_question() -> None:
    assert nothing_found("휴학은 언제?").startswith("문서에서")
    for question in ("When?", "", "Когда?"):
        assert nothing_found(question) == "The documents do not answer this question."


@pytest.mark.parametrize("query", ["hello", "Hi there!", "Good morning.", "thanks", "안녕하세요!", "감사합니다"])
def test_a_greeting_is_answered_by_what_can_be_asked(query: str) -> None:
    said = nothing_found(query)
    assert said.startswith(("This service answers", "이곳에서는"))
    assert ("문서" in said) == (query[0] in "안감")


@pytest.mark.parametrize("query", ["hello world in C?", "high", "thanks to whom is the leave granted?", "안녕 규정"])
def test_a_question_that_begins_like_a_greeting_is_a_question(query: str) -> None:
    assert nothing_found(query) != nothing_found("hello")


def test_the_sentence_with_the_value_is_marked_and_not_that_of_a_case_which_the_question_does_not_mention() -> None:
    rule, case = "① 생활관의 출입은 밤 12시부터 제한한다.", "② 시험 기간에는 통금시각을 오전 2시로 늦춘다."
    for question, answer in (("통금은 몇 시인가요?", rule), ("시험 때 통금은 몇 시인가요?", case)):
        (quote,) = _of_pack(question, _ranked(f"{rule}\n{case}\n③ 통금시간에 출입하면 벌점 3점을 준다."))
        assert quote.marked is not None
        assert quote.text[slice(*quote.marked)] == answer
