"""Follow-up questions: whether a question depends on earlier ones, and which words to add so that it can be searched.

Rules for English and Korean, without a model: the antecedent of a pronoun or an ellipsis is nearly always in the
previous question. The rules add words and do not write sentences: the result is a search query and is never shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dtrag.core.text.analysis import STOP_WORDS, normalise, terms
from dtrag.core.text.patterns import explained
from dtrag.core.text.question_words import asks, words_for
from dtrag.core.text.questions import PARTICLE, content
from dtrag.core.text.sibling_subjects import compounds_of, is_sibling

Kind = Literal["alone", "refers", "contrast", "attribute"]

MOST_WORDS = 12
"""Words added to a contrast, which needs the content of two questions."""
SUBJECT = 4
"""Words added for a pronoun or an attribute, which need only the subject. The right passage of a constructed
follow-up comes first with 4 words for .884 of korquad1-dev and .693 of squad2-dev, with 6 for .860 and .653, with 12
for .824 and .653; without any for .812 and .587 (bench/follow_up.py, 250 questions)."""
OWN_SUBJECT = 3
"""With so many content words before a pronoun, it refers to something in the same question. With 4, more follow-ups
are recognised, but also some independent questions are changed."""
LONGEST = 500
"""Longest follow-up, in characters; of earlier questions, only so many are read."""
FRAGMENT = 4
"""A question with more content words is not a fragment."""

TOPIC = 2
"""Longest bare topic, in written words; FRAGMENT in a question that begins with a connective such as "그럼"."""

_EDGES = ".,;:!?\"'“”‘’「」『』()[]{}<>…"
_ALSO = explained(
    rf"^\s*(?:(?:{'|'.join(words_for('connective', 'ko'))})(?=[\s,])[\s,]*"
    rf"|(?:{'|'.join(words_for('connective', 'en_start'))})\b[\s,]*)+",
    flags=re.I,
    finds=("그럼 휴학은?", "And for staff?"),
    refuses=("그럼에도", "Andy's leave"),
)
_ABOUT = re.compile(r"^\s*(?:(?:and|but|so|ok|okay)[\s,]+)?(?:what|how) about\b", re.I)
_TOPIC_ONLY = re.compile(r"(?:은|는|도|이?라면|의 경우(?:는|에는|엔)?|경우(?:는|에는|엔)?)(?:요)?\s*[?？]?\s*$")
_GENITIVE = re.compile(r"[가-힣]의\s(?!경우)")
_PREPOSITIONS = "for|in|on|with|without|at|by|during|after|before|from|to|as|if|when|per"
_PREPOSITION = re.compile(rf"^\s*(?:{_PREPOSITIONS}|outside|inside)\b", re.I)
_NEXT_PHRASE = re.compile(rf"\s(?:{_PREPOSITIONS}|of)\s", re.I)
_KOREAN_REFERENCE = explained(
    r"(?:^|(?<=\s))(?:그것|그건|그게|그걸|이것|이건|이게|이걸|거기|그때|그분|그들|그녀|그는|그가|그의|그를|그에게|그럴|그렇게|이렇게"
    r"|이때|여기)(?:[가-힣]{0,3})(?=[\s?,.]|$)"
    r"|(?:^|(?<=\s))(?:그|이|해당|위의|앞의|앞서|방금)\s(?=[가-힣])",
    finds=("그것은 언제?", "이 규정"),
    refuses=("그림은 언제?", "이유는"),
)
_ENGLISH_REFERENCE = explained(
    r"\b(?:it|its|itself|they|them|their|theirs|he|him|his|she|her|hers|those|these|this|the same|the latter"
    r"|the former)\b|\bthat\b(?=\s*(?:\?|$|is\b|was\b|are\b|were\b|mean|appl|include|happen|cost|take|work))"
    r"|(?<=\bof )that\b|(?<=\bfor )that\b|(?<=\bafter )that\b|(?<=\bbefore )that\b|\bthere\s*\?",
    flags=re.I,
    finds=("what about it?", "after that"),
    refuses="the item that I want",
)
_EXPLETIVE = re.compile(r"\bit\b(?=.{0,200}\bto\b)|\b(?:is|was) it (?:that|who)\b", re.I)
_ATTRIBUTES = frozenset(words_for("attribute"))
"""Words for attributes: a question of only such words needs the subject from an earlier question."""
_EMPTY = STOP_WORDS | frozenset("many much get take takes took make made please 그럼 그러면 그런데 그리고".split())


@dataclass(frozen=True, slots=True)
class Thread:
    """Topic of a conversation: permanent words, and words that the next contrast replaces."""

    base: tuple[str, ...] = ()
    focus: tuple[str, ...] = ()

    def words(self, most: int = MOST_WORDS) -> tuple[str, ...]:
        """All words in order; of more than `most`, the first, which name the subject, and the last."""
        distinct = tuple(dict.fromkeys((*self.base, *self.focus)))
        return distinct if len(distinct) <= most else distinct[: most // 2] + distinct[-(most // 2) :]


def kind_of(question: str) -> Kind:
    """How the question depends on earlier ones: `alone`: not at all; `refers`: by a pronoun; `contrast`: it replaces
    something ("and for part-time staff?"); `attribute`: its subject is missing ("how much does a copy cost?")."""
    if len(question) > LONGEST:
        return "alone"
    body = _ALSO.sub("", question)
    words = content_words(body)
    fragment = len(words) <= FRAGMENT
    if fragment and (_ABOUT.search(question) or _bare_topic(body, body != question) or _bare_preposition(body)):
        return "contrast"
    reference = _reference(body)
    if reference is not None and len(content_words(body[:reference])) < OWN_SUBJECT:
        return "refers"
    if all(_bare(word) in _ATTRIBUTES for word in words):
        return "attribute"
    return "attribute" if body != question and len(words) <= 2 else "alone"


def standing_alone(question: str, before: Sequence[str]) -> tuple[str, Kind]:
    """The search query, and how the question depends on those before it (oldest first).

    What a contrast replaces is left out: `full-time` before "and for part time?", 군휴학 before "그럼 육아휴학은?", "in
    Europe" before "and in Asia?".
    """
    thread = Thread()
    for earlier in before:
        thread = _followed(thread, earlier[:LONGEST])
    kind = kind_of(question)
    if kind == "alone":
        return question, "alone"
    context = Thread(thread.base).words() if kind == "contrast" else thread.words(SUBJECT)
    known = set(terms(question))
    carried = [word for word in context if not known.issuperset(terms(word))]
    if kind == "contrast":
        replaced = _of_preposition(_ALSO.sub("", question), before)
        compounds = compounds_of(question)
        carried = [word for word in carried if word not in replaced and not is_sibling(compounds, word)]
    if not carried:
        return question, "alone"
    return f"{' '.join(carried)} {_ALSO.sub('', question).strip() or question}", kind


def content_words(text: str) -> list[str]:
    """The folded written words of a text's content, without words that only ask, refer or connect."""
    words = (word.strip(_EDGES) for word in _KOREAN_REFERENCE.sub(" ", normalise(content(text))).split())
    return [word for word in words if terms(word) and word not in _EMPTY and not _only_asks(word)]


def _of_preposition(body: str, before: Sequence[str]) -> frozenset[str]:
    """The words that follow, in the questions before, the preposition with which a contrast begins; of several phrases
    with it in one question, those of the last.
    """
    match = _PREPOSITION.match(body)
    if match is None:
        return frozenset()
    begins = re.compile(rf"\b{match[0].strip()}\s+([\w\s'-]+)", re.I)
    last = (phrases[-1] for earlier in before if (phrases := begins.findall(earlier[:LONGEST])))
    return frozenset(word for phrase in last for word in content_words(_NEXT_PHRASE.split(phrase)[0]))


def _followed(thread: Thread, question: str) -> Thread:
    words = tuple(content_words(_ALSO.sub("", question)))
    kind = kind_of(question)
    if kind == "alone" or not thread.words():
        return Thread(base=words)
    if kind == "contrast":
        return Thread(base=thread.base or thread.words(), focus=words)
    return Thread(base=(*thread.base, *thread.focus, *words))


def _bare_topic(body: str, connected: bool) -> bool:
    """A topic without a predicate: `대학원생은?`, `외국인의 경우는?`; but not `가야의 뜻은?`."""
    stripped = body.strip()
    if not _TOPIC_ONLY.search(stripped) or _asks(stripped):
        return False
    return len(stripped.split()) <= (FRAGMENT if connected else TOPIC) and not _GENITIVE.search(stripped)


def _bare_preposition(body: str) -> bool:
    """`for part-time staff?`"""
    return bool(_PREPOSITION.match(body)) and len(body.split()) <= 2 * FRAGMENT and not _asks(body)


def _reference(body: str) -> int | None:
    """Position of the first word that refers to an earlier question, or None."""
    places = [match.start() for match in _KOREAN_REFERENCE.finditer(body)]
    empty = {match.start() for match in _EXPLETIVE.finditer(body)}
    places += [match.start() for match in _ENGLISH_REFERENCE.finditer(body) if match.start() not in empty]
    return min(places, default=None)


def _asks(text: str) -> bool:
    return asks(text, "interrogative", "relative", "auxiliary", "asking_ending")


_KOREAN_ASKING = explained(
    rf"(?:{'|'.join(words_for('interrogative', 'ko'))})"
    r"(?:은|는|이|가|을|를|까지|부터|인가|인가요|이야|야|예요|이에요|나|서|에|에서|로|해|하나요)?"
    r"|(?:돼|되|해|하|있|없)(?:어|나|나요|요|는가|는지|니|지|지요|을까|을까요)?|이야|인가|인가요|이에요|예요|야|요|일까"
    r"|몇?\s?(?:명|번|일|개|회|년|원)(?:이야|인가|인가요|까지)?",
    finds=("얼마인가요", "있나요"),
    refuses="수업료",
)


def _only_asks(word: str) -> bool:
    return _KOREAN_ASKING.fullmatch(word) is not None


def _bare(word: str) -> str:
    return word if word in _ATTRIBUTES else PARTICLE.sub("", word)
