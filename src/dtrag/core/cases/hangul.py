"""Hangul syllables as letters, forms of Korean verbs, and particles."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping

_FIRST, _LAST = 0xAC00, 0xD7A3
_VOWELS, _FINALS = 21, 28
_FINAL_LETTERS = dict(zip("ㄱㄴㄷㄹㅁㅂㅅㅆㅇㅈㅊㅎ", (1, 4, 7, 8, 16, 17, 19, 20, 21, 22, 23, 27), strict=True))
_OPEN = frozenset((0, 4, 8, 16, 17, 20))
"""Finals that endings put under an open stem: none, ㄴ, ㄹ, ㅁ, ㅂ, ㅆ."""
_INFINITIVE = {8: 9, 13: 14, 20: 6, 11: 10}
"""Vowel of a stem -> with -아/-어: ㅗ ㅘ, ㅜ ㅝ, ㅣ ㅕ, ㅚ ㅙ."""
_A, _EO, _EU = 0, 4, 18
_R = 5
_ENDING = re.compile(
    r"(?:으)?(?:시|셨|세)?(?:었|았|였|겠)*(?:"
    r"(?:으|을|ㄹ)?려(?:면|고|는|는데|던)(?:은|요|야)?|러|면은?|나요?"
    r"|는(?:지|가|데|다면?|다고|거|건)?(?:요|는|를|도)?|은(?:지|가|데)?(?:요)?|을(?:지|까)?(?:요|도)?|까(?:요|지)?|니까?|냐|어요?|아요?|여요?|요|죠|지(?:요|만|도|는)?|고(?:서|는|도|요)?|며|면서|(?:어|아|여)?서(?:는|도)?"
    r"|(?:어|아|여)?야(?:만|지)?|(?:어|아|여)?도|던|다(?:가|는|고|면|며)?|습니(?:까|다)|니다|기(?:가|는|를|만|도|로|에|까지|위해|전|전에)?"
    r"|게(?:요|끔)?|도록|더라도|자(?:마자)?|거나|든지?|음(?:은|을|이)?|세요|십니까|라(?:고|는|면)?"
    r"|ㄴ|ㄹ|ㅁ|다 ?보면|었다가|주(?:나요|는|면)?|버리(?:면)?)?"
)


def letters(word: str) -> str:
    """The word in letters: 휴학 gives ㅎㅠㅎㅏㄱ (conjoining jamo)."""
    return unicodedata.normalize("NFD", word)


_AFTER_QUESTION_WORD = (
    "(?:에게서는|에게서|에게|한테서|한테|께서|께|으로부터|로부터|에서는|에서|에는|에다가|에다|다가|다|에|으로|로|이며|인가요|인가|인지요|인지"
    "|입니까|입니다|이에요|예요|에요|이죠|이지요|지요|죠|일까요|일까|이나|나|든지|쯤|정도|씩|만큼|만에|까지|부터|를|을|가요|가|이|은|는|와|과|랑|의|도|만"
    "|요|야|니|고|면|인데요|인데|임|들|이냐|냐|이니|이야|인|여|지)"
)


def pattern(text: str) -> str:
    """A regular expression over letters, from one over syllables.

    {ㄹ} is a final consonant, {끝} the particles and endings after a question word.
    """
    text = text.replace("{끝}", f"(?:{_AFTER_QUESTION_WORD}{{0,2}}(?![\u11a8-\u11ff]))")
    text = re.sub(r"\{([ㄱ-ㅎ])\}", lambda match: chr(0x11A7 + _FINAL_LETTERS[match[1]]), text)
    text = re.sub(r"(?<!-)([가-힣])([?+*])", r"(?:\1)\2", text)
    text = text.replace("ㄱ-ㅎㅏ-ㅣ", "\u3131-\u318e").replace("가-힣", "\u1100-\u11ff")
    counted = re.sub(
        r"\[\u1100-\u11ff\]\{(\d+)(?:,(\d*))?\}",
        lambda match: _syllables(match[1], match[2]),
        text,
    )
    return letters(counted)


def _syllables(least: str, most: str | None) -> str:
    syllable = "(?:[\u1100-\u1112][\u1161-\u1175][\u11a8-\u11c2]?)"
    return f"{syllable}{{{least}}}" if most is None else f"{syllable}{{{least},{most}}}"


def parts(syllable: str) -> tuple[int, int, int] | None:
    """Initial, vowel and final of a syllable; None for another character."""
    number = ord(syllable) - _FIRST
    if not 0 <= number <= _LAST - _FIRST:
        return None
    return number // (_VOWELS * _FINALS), number // _FINALS % _VOWELS, number % _FINALS


def syllable(initial: int, vowel: int, final: int = 0) -> str:
    """The syllable of these letters."""
    return chr(_FIRST + (initial * _VOWELS + vowel) * _FINALS + final)


def _open_forms(stem: str) -> Iterable[str]:
    """The stem of a verb and its irregular forms."""
    yield stem
    last = parts(stem[-1])
    if last is None:
        return
    initial, vowel, final = last
    before = stem[:-1]
    if stem.endswith("하"):
        yield from (before + "해", before + "하여")
    if final == 0:
        if vowel == _EU and initial == _R and before and (previous := parts(before[-1])) and not previous[2]:
            doubled = before[:-1] + syllable(previous[0], previous[1], 8)
            yield from (doubled + "라", doubled + "러", before + "라")
        elif vowel == _EU:
            yield from (before + syllable(initial, _EO), before + syllable(initial, _A))
        elif vowel in _INFINITIVE:
            yield before + syllable(initial, _INFINITIVE[vowel])
    elif final == 8:
        yield before + syllable(initial, vowel)
    elif final == 7 and stem[-1] in "듣묻걷":
        yield before + syllable(initial, vowel, 8)
    elif final == 17 and stem[-1] in "돕눕줍":
        opened = before + syllable(initial, vowel)
        yield from (opened + "와", opened + "워", opened + "우")
    elif final == 19 and stem[-1] in "낫짓":
        yield before + syllable(initial, vowel)


@functools.cache
def verb_table(verbs: frozenset[str]) -> Mapping[str, str]:
    """Beginning of a written form, its last syllable without a final that an ending gives it -> the verb."""
    table: dict[str, str] = {}
    for verb in sorted(verbs):
        for form in _open_forms(verb.removesuffix("다")):
            table.setdefault(_bare(form), verb)
    return table


def _bare(form: str) -> str:
    last = parts(form[-1])
    if last is None or last[2] not in _OPEN or last[2] == 0 or last[2] == 17:
        return form
    return form[:-1] + syllable(last[0], last[1]) if last[2] in {4, 8, 16, 20} else form


def verbs_of(word: str, table: Mapping[str, str]) -> list[str]:
    """The verbs that a written word can be a form of, the longest stem first."""
    verbs: list[str] = []
    for length in range(len(word), 0, -1):
        last = parts(word[length - 1])
        if last is None:
            continue
        stem, rest = word[:length], word[length:]
        candidates = [stem]
        if last[2] in _OPEN and last[2]:
            candidates.append(stem[:-1] + syllable(last[0], last[1]))
        for candidate in candidates:
            verb = table.get(_bare(candidate) if candidate == stem else candidate)
            if verb is None or not _ENDING.fullmatch(rest):
                continue
            if not rest and candidate == stem and not _is_infinitive(word, verb):
                continue
            if verb not in verbs:
                verbs.append(verb)
    return verbs


def _is_infinitive(word: str, verb: str) -> bool:
    """Whether a form without an ending is one: 내, 써; not the bare stem of most verbs."""
    stem = verb.removesuffix("다")
    return (
        word != stem or (parts(stem[-1]) or (0, 0, 1))[1:] in {(0, 0), (4, 0), (1, 0), (5, 0)} or word.endswith(("ㄹ",))
    )
