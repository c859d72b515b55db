"""Whether an answer declines to answer."""

from __future__ import annotations

from itertools import islice

from dtrag.core.text.analysis import normalise, sentences
from dtrag.core.text.patterns import explained

_NOT = r"(?: ?n['’]t| not)"
_SOURCE = r"\b(?:documents?|passages?|contexts?|sources?|texts?|excerpts?|materials?|information)\b"
_SPEAKER = r"\b(?:i|we)\b"
_MISSING = r"(?:information|mention|answers?|details?|reference)"
_ENGLISH = explained(
    rf"{_SPEAKER} (?:\w+ )?(?:(?:do|did|could|can|was|were|am|are){_NOT}|cannot) (?:\w+ ){{0,3}}?"
    r"(?:answer|find|found|know|determine|say|tell|able to|see)"
    rf"|^(?:do{_NOT} know|cannot (?:answer|determine|say|tell)|unable to (?:answer|find|determine|say|tell))"
    rf"|{_SPEAKER}(?: am| was| are| were|['’]m|['’]re) unable to"
    rf"|{_SPEAKER} (?:have|found|could find|can find|see) (?:no|insufficient) {_MISSING}"
    rf"|{_SOURCE} (?:\w+ ){{0,4}}?(?:do|does|did){_NOT} (?:\w+ ){{0,3}}?"
    r"(?:contain|answer|mention|provide|include|specif|state|say|describe|discuss|address|give|explain)"
    rf"|\b(?:it|they|this)(?: does| do){_NOT} (?:mention|say|specify|state)"
    rf"|\b(?:is|are|was|were){_NOT} (?:\w+ )?(?:mentioned|stated|specified)[.!]?$"
    rf"|\b(?:is|are|was|were|could|can){_NOT} (?:be )?(?:\w+ )?"
    r"(?:found|mentioned|stated|specified|provided|given|available|answered|determined|included)"
    rf" (?:in|by|from|with) (?:\w+ ){{0,3}}?{_SOURCE}"
    rf"|\b(?:answer|question|information|this|it) (?:cannot|could{_NOT}) be (?:answered|found|determined)"
    rf"|(?:^|\bthere(?: is|['’]s| was) )no {_MISSING}\b"
    rf"|{_SOURCE} (?:\w+ ){{0,3}}?(?:contains?|provides?|gives?|has|have|makes?) no {_MISSING}"
    rf"|\bno {_SOURCE} (?:\w+ )?(?:contains?|mentions?|answers?|says?|states?|specif\w+|provides?|about|on)\b"
    r"|(?:^|\b(?:there (?:is|was)|i have|we have|contains?|provides?) )"
    r"(?:not enough|insufficient|no sufficient) (?:information|context)"
    rf"|(?:do|does){_NOT} (?:have|contain|provide) (?:enough|sufficient) (?:information|context)",
    finds=("i cannot answer", "there is no information"),
    refuses="you can answer",
)
"""The speaker does not know, or the source does not say: the subject decides, people of a rule do not do things too."""
_ENDS = r"(?:\S{0,4}(?:다|요|음|함|죠)[.!]?$|(?:는|은) 것(?:으로| 같).{0,40}(?:다|요)[.!]?$)"
_KOREAN = explained(
    r"(?:찾을|찾지|알|답할|답변할|대답할|답변드릴|확인할|확인되지|판단할)\s?(?:수\s?(?:가\s?)?)?(?:없|못|않)"
    rf"(?:{_ENDS}|으며|으므로|으나|지만|어서|기 때문)"
    r"|(?:정보|내용|규정|근거|언급|답|문서|기재|명시|나와|나타나|포함되어|정해져)\S{0,6}\s?"
    rf"(?:없|있지\s?않|되지\s?않|되어\s?있지\s?않|지\s?않){_ENDS}"
    r"|(?:답변|대답|답)\S{0,3}\s?(?:드리기\s?|하기\s?)?(?:가\s?)?어렵"
    r"|모르겠|모릅니다",
    finds=("찾을 수 없습니다", "관련 내용이 없습니다"),
    refuses="찾을 수 있습니다",
)
"""At the end of its clause: "규정되지 않은 사항은 총장이 정한다" is a rule."""
_APOLOGY = explained(
    r"^(?:(?:i am |i['’]m )?(?:very |so )?sorry|apologies|unfortunately|죄송합니다|미안합니다)\W*$",
    finds=("i am very sorry.", "죄송합니다"),
    refuses="sorry, the fee is 5",
)


def is_refusal(answer: str) -> bool:
    """Whether the answer is empty or its first sentence, after an apology, says that there is no answer.

    An answer that begins with facts is none, even if it says later what the documents leave open.
    """
    texts = [normalise(answer[start:end]) for start, end in islice(sentences(answer), 2)]
    if len(texts) > 1 and _APOLOGY.match(texts[0]):
        texts = texts[1:]
    return not texts or any(pattern.search(texts[0]) is not None for pattern in (_ENGLISH, _KOREAN))
