"""Light paraphrases of a question: chatter, another ending, spacing, a typing error. The same for the same seed.

For measuring what a memory of earlier questions gains when questions come back in slightly other words.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from dtrag.core.text.analysis import language

_KOREAN_OPENINGS = ("혹시 ", "궁금한데요, ", "안녕하세요. ", "질문이 있습니다. ")
_ENGLISH_OPENINGS = ("Hi, quick question: ", "I was wondering, ", "Hello, ", "Could you tell me: ")
_KOREAN_CLOSINGS = (" 알려주세요.", " 부탁드립니다.")
_ENGLISH_CLOSINGS = (" Thanks!", " Please let me know.")
_ASKED = re.compile(r"(무엇|누구|언제|어디)(?:인가|인가요|입니까|일까|일까요)\s*\??$")
_KOREAN_ENDINGS = (
    (_ASKED, (r"\1입니까?", r"\1인가요?", r"\1인지 궁금합니다")),
    (re.compile(r"은\?$"), ("은 무엇인가요?",)),
    (re.compile(r"는\?$"), ("는 무엇인가요?",)),
    (re.compile(r"나요\s*\??$"), ("나", "나요")),
    (re.compile(r"습니까\s*\??$"), ("나요?",)),
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
        if pattern.search(question):
            return pattern.sub(chance.choice(endings), question)
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
