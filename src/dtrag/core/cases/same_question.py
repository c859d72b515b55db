"""Whether two questions ask the same, so that an earlier answer may be shown again.

Precision comes first: two questions are the same only when their normal forms are, up to blanks and one typing error.
What is refused can still be offered as a similar question. Embeddings cannot decide this: a question and its reversal
are closer to each other than two wordings of one question.

The normal form of a question are its words in order, without what an answer cannot depend on. Unified are spelling,
contractions and numbers in words; left out are greetings, thanks and the politeness of Korean endings; a clause that a
comma sets apart goes to its usual place. Every other word stays where it is, so that no negation, number, direction,
role or name can disappear or change its place.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dtrag.core.text.analysis import STOP_WORDS, clean
from dtrag.core.text.patterns import LATIN, explained
from dtrag.core.text.question_words import words_for

LONGEST = 600
"""Characters of a question that are interpreted; a longer one is only ever the same as itself."""
_DOUBLED = re.compile(r"(.)\1")
_INFLECTED = ("ing", "ings", "ed", "eds", "er", "ers")


@dataclass(frozen=True, slots=True)
class SameQuestion:
    """Whether two questions ask the same; `reason` is a short phrase that says why or why not."""

    same: bool
    reason: str


def same_question(base: str, other: str) -> SameQuestion:
    """Whether the two questions ask the same; symmetric in `base` and `other`."""
    if base.split() == other.split():
        return SameQuestion(True, "the same text")
    if max(len(base), len(other)) > LONGEST:
        return SameQuestion(False, f"longer than {LONGEST} characters")
    left, right = normal_form(base), normal_form(other)
    if not left or not right:
        return SameQuestion(False, "no content word")
    if compact(left) == compact(right):
        return SameQuestion(True, "the same words")
    differing = [(here, there) for here, there in zip(left, right, strict=False) if here != there]
    if len(left) == len(right) and len(differing) == 1 and _is_mistyped(*differing[0], base + other):
        return SameQuestion(True, f"the same words, one mistyped: {differing[0][1]}")
    return SameQuestion(False, _difference(left, right))


def _is_mistyped(left: str, right: str, written: str) -> bool:
    """Whether two long English words differ by a double letter that is written once, or by two exchanged neighbours.

    Other errors of one letter are also the difference of two words: contract and contact, training and trailing; and
    in a word with a capital any letter may be that of another name.
    """
    shorter, longer = sorted((left, right), key=len)
    is_name = left.capitalize() in written or right.capitalize() in written
    if is_name or not (left + right).isascii() or not (left + right).isalpha():
        return False
    if len(shorter) < len(longer):
        is_doubled = len(shorter) >= 7 and _DOUBLED.sub(r"\1", left) == _DOUBLED.sub(r"\1", right)
        return len(longer) == len(shorter) + 1 and is_doubled and not shorter.endswith(_INFLECTED)  # filing and filling
    at = next(place for place, pair in enumerate(zip(left, right, strict=True)) if pair[0] != pair[1])
    exchanged = left[:at] + left[at : at + 2][::-1] + left[at + 2 :]
    return len(left) >= 8 and exchanged == right and 1 <= at < len(left) - 4  # complaint and compliant


def _difference(left: Sequence[str], right: Sequence[str]) -> str:
    if is_korean("".join(left)) != is_korean("".join(right)):
        return "another language"
    numbers = [[word for word in words if word[0].isdigit()] for words in (left, right)]
    if numbers[0] != numbers[1]:
        return f"number differs: {', '.join(numbers[0]) or 'none'} / {', '.join(numbers[1]) or 'none'}"
    only = [[word for word in here if word not in there] for here, there in ((left, right), (right, left))]
    if any(only):
        return f"only in one: {(only[0] or only[1])[0]}"
    return "order differs"


BREAK = "|"
"""The word between two sentences or clauses that stay apart."""


def _either(words: Iterable[str]) -> str:
    return f"(?:{'|'.join(words)})"


# Numbers

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
).split()
_ORDINALS = {"first": "1st", "second": "2nd", "third": "3rd"} | {
    word: f"{value}th" for value, word in enumerate("fourth fifth sixth seventh eighth ninth tenth".split(), 4)
}
_DIGITS = {word: str(value) for value, word in enumerate(_SMALL)} | _ORDINALS
_NATIVE = {word: str(value) for value, word in enumerate("한 두 세 네 다섯 여섯 일곱 여덟 아홉 열".split(), 1)}
_COUNTERS = ("명", "개", "번", "시간", "과목", "가지", "사람", "달")
"""Not 학기, 장, 권 and others, where one of them (한 학기) is not the first (1학기)."""
_COUNTED = explained(
    rf"(?<![가-힣])({'|'.join(_NATIVE)}) ?"
    rf"(?={_either(_COUNTERS)}(?:[을를이가은는만도의에씩째]|까지|이상|이하|[^가-힣]|$))",
    finds=("세 명", "두번째", "한 달"),
    refuses=("한 학기", "네 번호", "두 개념", "신청한 사람"),
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")

# Spelling

_CONTRACTIONS = tuple(
    (re.compile(pattern), full)
    for pattern, full in (
        (r"\b(?:can['’]?t|cannot)\b", "can not"),
        (r"\bwon['’]t\b", "will not"),
        (r"\b(do|does|did|is|are|was|were|have|has|had|could|should|would|must|need)n['’]?t\b", r"\1 not"),
        (r"\b(what|who|where|when|how|why|that|there)['’]?s\b", r"\1 is"),
        (r"\b(it|he|she|here)['’]s\b", r"\1 is"),
        (r"\bi['’]?m\b", "i am"),
        (r"['’]re\b", " are"),
        (r"['’]ve\b", " have"),
        (r"['’]ll\b", " will"),
        (r"['’]d\b", " would"),
    )
)
_MISSPELT = {
    "어떡게": "어떻게", "어떻개": "어떻게", "언재": "언제", "않되": "안되", "않돼": "안돼",
    "잇나": "있나", "잇는": "있는", "잇습": "있습", "잇어": "있어", "잇을": "있을",
}  # fmt: skip
_MISSPELLING = re.compile("|".join(_MISSPELT))
_ABBREVIATION = re.compile(r"\b(?:[A-Za-z]\.){2,}")
_LAUGHING = re.compile("[ㅠㅜㅡ]+|[ㅋㅎ]{2,}")
_APOSTROPHES = str.maketrans("", "", "'’‘`")
_SPACES = re.compile(r"[\"“”„«»「」『』()\[\]]|(?<=[^\W\d_])[-‐–](?=[^\W\d_])")
_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*(?:st|nd|rd|th)?|[^\W\d_]+|\S")
_LEFT_OUT = frozenset(("please", "pls", "plz"))

# Sentences, and what surrounds the question

_END = re.compile(r"(?:[.?!…;:~]+(?=\s|$)|\s[-–—]+\s|\n|,(?=\s|$))\s*")
_ASKED_WITHOUT_MARK = re.compile(r"(?<=[가-힣])((?:나요|니까|죠|까요|가요|예요|에요) )(?=\S)")
_GREETINGS = _either(
    ("hi", "hello", "hey", "please", "(?:네 )?안녕하세요", "(?:네 )?안녕하십니까", "저기요", "담당자님", "혹시",
     "다름이 아니라", "(?:갑자기 )?죄송한데요?", "죄송하지만", "실례지만")
)  # fmt: skip
_THANKS = _either(
    ("please", "pls", "plz", "thanks", "thx", "thank you", "(?:미리 )?(?:고맙습니다|감사(?:합니다|드립니다|해요))")
)  # fmt: skip
_LEADING = re.compile(rf"^(?:{_GREETINGS}(?![^\W_])\s*)+")
_TRAILING = re.compile(rf"(?:(?<![^\W_]){_THANKS}\s*)+$")
_CHATTER = explained(
    "^"
    + _either(
        ("(?:hi|hello) (?:there|all|team|everyone)", "good (?:morning|afternoon|evening|day)", "urgent", "help",
         "many thanks", "thank(?:s| you) (?:very much|so much|a lot|in advance)", "cheers", "excuse me",
         "(?:just )?(?:a |one )?quick question", "sorry(?: to bother you)?", "(?:i was )?(?:just )?wondering",
         "i (?:just )?have a (?:quick )?question", "by the way", "btw",
         "(?:늘 |항상 )?수고(?:가)? ?(?:많으십니다|많으세요|하십니다|하세요)", "항상 도움 주셔서 감사합니다",
         "좋은 (?:아침|오후|하루)(?:입니다|이에요|되세요)",
         "(?:한 가지 |간단한 )?(?:질문|문의)(?:이|가)? ?(?:있습니다|있어요|입니다)",
         "(?:여쭤볼|궁금한|물어볼) ?(?:게|것이) ?(?:있는데요?|있습니다|있어요)", "혹시 아시는 분 계실까요",
         "죄송합니다", "실례합니다", "급해요", "급합니다")
    )
    + "$",
    finds=("just a quick question", "urgent", "수고 많으십니다", "질문이 있습니다"),
    refuses=("urgent repairs", "help desk", "질문 시간"),
)  # fmt: skip
"""A whole sentence or clause; within one, these words can be a part of the question (urgent repairs, help desk)."""
_OPENING = frozenset(
    "if when for in at on after before because with during as by to under without once while since until".split()
)
_ASKING = frozenset((*words_for("interrogative", "en"), *words_for("relative"), *words_for("auxiliary")))
_JOINING = frozenset("if when after before because that which who whom whose what where while until since as".split())
"""A clause is not moved behind one of these words: it could belong to what follows them."""

# Korean endings, of questions and of requests: 하나요, 합니까 and 하는지 알려 주세요 are 하

_REQUEST = explained(
    "(?: ?에 ?(?:대|관)(?:해서?|하여))?(?: ?(?:꼭|좀|자세히))* ?"
    + _either(
        ("(?:알려|가르쳐|설명해|안내해|말씀해) ?(?:주세요|주십시오|주시기 ?바랍니다|주실 ?수 ?있나요|주시겠어요|줘요?)",
         "궁금(?:합니다|해요|하네요)", "알고 ?싶(?:습니다|어요|은데요)",
         "문의 ?(?:드립니다|드려요|합니다)", "여쭙니다", "여쭤봅니다")
    )
    + "$",
    finds=("절차를 알려 주세요", "복학에 대해 궁금합니다", "언제인지 알고 싶어요"),
    refuses=("결과를 알려 주나요", "알려 주세요라는 안내문"),
)  # fmt: skip
_JAMO = str.maketrans({"N": "\u11ab", "R": "\u11af", "P": "\u11b8"})


def _ending(*endings: str) -> re.Pattern[str]:
    """The stem before the longest of these endings, in letters; N, R and P are final consonants."""
    letters = (unicodedata.normalize("NFD", ending).translate(_JAMO) for ending in endings)
    return re.compile(f"(.+?){_either(letters)}")


_INTERROGATIVE = _ending(
    "습니까", "P니까", "나요", "나여", "는가", "는가요", "은가요", "N가요", "을까요", "R까요", "는지요", "은지요",
    "N지요", "지요", "죠", "어요", "아요", "요", "는 건가요", "는건가요", "는 거예요", "는거예요", "는 거죠", "는거죠",
)  # fmt: skip
_INDIRECT = _ending("는지", "은지", "N지")
_COPULA = re.compile("(?:이에요|예요|에요|이야|야)$")
_NOUNS = tuple(words_for("interrogative_noun"))
_ASKED_NOUN = re.compile(f"({'|'.join(_NOUNS)}|며칠|몇 ?[가-힣]{{1,3}})이$")
_CASE = re.compile(f"([가-힣])([이가은는을를])(?= ?{_either(_NOUNS)}$|$)")


@functools.lru_cache(4096)
def normal_form(question: str) -> tuple[str, ...]:
    """The words of the question in their order; empty when there are none but greetings."""
    clauses = [clause for clause in map(_without_chatter, _clauses(_spelt(question))) if clause.text]
    words: list[str] = []
    for clause in _in_order(clauses):
        words += [BREAK] * bool(words)
        words += _words(_without_ending(clause.text))
    return tuple(words)


def compact(words: Sequence[str]) -> str:
    """The words as one text without blanks, so that compounds may be written together or apart.

    A blank stays between two numbers, beside a symbol, and beside an English word of one or two letters (on site).
    """
    text = ""
    for word in words:
        before = text[-1:]
        if not word[0].isalnum() or not before.isalnum() or (before.isdigit() and word[0].isdigit()):
            text += " "
        elif word.isascii() and word.isalpha() and before.isascii() and before.isalpha():
            last = text.rpartition(" ")[2]
            text += " " * (len(word) < 3 or len(last) < 3)
        text += word
    return text.strip()


def _spelt(question: str) -> str:
    """The question in one spelling. A pronoun in capitals stays one: IT and US are not it and us."""
    text = unicodedata.normalize("NFKC", _LAUGHING.sub(" ", clean(question)))
    text = _ABBREVIATION.sub(lambda match: match.group().replace(".", ""), text)
    shouted = text.upper() == text

    def folded(match: re.Match[str]) -> str:
        word = match.group()
        is_name = not shouted and len(word) > 1 and word.isupper() and word.lower() in STOP_WORDS
        return word if is_name else word.lower()

    text = "".join(each if each.isascii() else each.casefold() for each in LATIN.sub(folded, text))
    for pattern, full in _CONTRACTIONS:
        text = pattern.sub(full, text)
    return _MISSPELLING.sub(lambda match: _MISSPELT[match.group()], text)


@dataclass(frozen=True, slots=True)
class _Clause:
    text: str
    before_comma: bool = False


def _clauses(text: str) -> Iterator[_Clause]:
    start = 0
    text = _ASKED_WITHOUT_MARK.sub(r"\1? ", text)
    for match in _END.finditer(text):
        yield _Clause(text[start : match.start()], match.group().startswith(","))
        start = match.end()
    yield _Clause(text[start:])


def _without_chatter(clause: _Clause) -> _Clause:
    text = " ".join(_SPACES.sub(" ", clause.text.translate(_APOSTROPHES)).split())
    question = _TRAILING.sub("", _LEADING.sub("", text)).strip()
    is_chatter = any(_CHATTER.search(each) or _REQUEST.fullmatch(each) for each in (text, question))
    return _Clause("" if is_chatter else question, clause.before_comma)


def _in_order(clauses: Sequence[_Clause]) -> Sequence[_Clause]:
    """Two clauses as one when a comma or the order of speaking sets them apart.

    "In week 1, what is due?" and "어떻게 되나요, 휴학하면?" are "what is due in week 1" and "휴학하면 어떻게 되나요".
    """
    if len(clauses) != 2:
        return clauses
    first, second = clauses
    before, behind = first.text.split(), second.text.split()
    if is_korean(first.text + second.text):
        if _asks(first.text) and not _asks(second.text):
            return [_Clause(f"{re.sub('(?<=[면은는때서])요$', '', second.text)} {first.text}")]
    elif first.before_comma and before[0] in _OPENING and behind[0] in _ASKING and _JOINING.isdisjoint(behind[1:]):
        return [_Clause(f"{second.text} {first.text}")]
    return clauses


def is_korean(text: str) -> bool:
    """Whether it has a Hangul syllable."""
    return any("가" <= character <= "힣" for character in text)


def _asks(text: str) -> bool:
    letters = unicodedata.normalize("NFD", text)
    return bool(_REQUEST.search(text) or _COPULA.search(text) or _INTERROGATIVE.fullmatch(letters))


def _without_ending(text: str) -> str:
    """A Korean clause without the ending that asks, and without the particle before it."""
    if not is_korean(text[-1]):
        return text
    request = _REQUEST.search(text)
    text = text[: request.start()] if request else _COPULA.sub("이", text)
    ending = (_INDIRECT if request else _INTERROGATIVE).fullmatch(unicodedata.normalize("NFD", text))
    if ending:
        text = unicodedata.normalize("NFC", ending[1])
        text = f"{text[:-1]}하" if text.endswith("해") else text
    text = _ASKED_NOUN.sub(r"\1", f"{text[:-1]}되" if text.endswith("돼") else text)
    if request or text.endswith(_NOUNS):
        text = _CASE.sub(lambda match: match[1] if _suits(match[1], match[2]) else match.group(), text)
    return text


def _suits(syllable: str, particle: str) -> bool:
    """Whether the particle can follow the syllable: 이, 은 and 을 follow a final consonant."""
    return ((ord(syllable) - ord("가")) % 28 != 0) == (particle in "이은을")


def _words(text: str) -> Iterator[str]:
    text = _COUNTED.sub(lambda match: _NATIVE[match[1]], text)
    for token in _TOKEN.findall(text):
        word = _THOUSANDS.sub("", token)
        if word not in _LEFT_OUT:
            yield "a" if word == "an" else _DIGITS.get(word, word)
