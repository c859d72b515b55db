"""Removes what language models say to the reader beside the answer: greetings, praise of the question, offers of help.

Such a sentence claims nothing about the documents: it would be marked as unsupported, and lower the decision.
"""

from __future__ import annotations

import re

from dtrag.core.text.analysis import sentences

_SOME = r"[^.:!?\n]{0,60}"
_ENGLISH = (
    r"(?:hi|hello|hey)(?: there)?",
    r"(?:(?:that(?:['’]s| is)|what) an? )?(?:very |really )?(?:great|good|excellent|interesting|important) question",
    r"(?:yes, )?(?:sure(?: thing)?|certainly|of course|absolutely|no problem)",
    r"thank you for (?:your question|asking|reaching out)|thanks for (?:your question|asking)",
    r"(?:i['’]d|i would) be (?:happy|glad) to help(?: you)?(?: with (?:that|this))?",
    r"(?:i['’]m|i am) (?:happy|glad) to help(?: you)?(?: with (?:that|this))?",
    rf"(?:based on the {_SOME}, )?here(?:['’]s| is| are) (?:the|your|an?|my) (?:(?:short|brief|direct|detailed) )?"
    rf"(?:answer|summary|response|overview|explanation|information you){_SOME}",
    rf"here(?:['’]s| is) what (?:i found|(?:the|your) (?:documents?|passages?|sources?) says?){_SOME}",
    r"(?:i )?hope (?:this|that) (?:helps|is helpful|answers your question|clarifies (?:things|it))",
    rf"(?:if you have (?:any )?(?:more |other |further |additional )?questions, )?(?:please )?(?:just )?"
    rf"(?:let me know|feel free to ask){_SOME}",
    rf"is there anything else {_SOME}\?",
)
_KOREAN = (
    r"안녕하(?:세요|십니까)",
    r"(?:정말 |아주 |매우 )?(?:좋은|훌륭한|중요한) 질문"
    r"(?:입니다|이네요|이에요|이십니다|을 (?:해 ?)?주셨(?:습니다|네요|어요))",
    r"(?:질문|문의)(?:을|를)?\s?(?:해 ?)?주셔서 (?:정말 )?감사(?:합니다|드립니다)|감사합니다",
    r"(?:네, ?)?(?:물론(?:입니다|이죠|이지요|이에요)|알겠습니다)",
    rf"(?:(?:질문|문의){_SOME}|{_SOME}에 (?:대해서?|대하여|대한|관해) |(?:아래|다음)와 같이 )"
    r"(?:답변|안내|설명|정리)(?:을|를)?\s?(?:해 ?)?(?:드리겠습니다|드릴게요)|(?:기꺼이 )?도와 ?드리겠습니다",
    rf"다음은 {_SOME}(?:답변|요약|정리|설명)(?:입니다)?",
    r"(?:이 |제 )?(?:답변이 )?(?:조금이나마 )?도움이 되(?:었기를|셨기를|었길|셨길|기를|길|었으면|셨으면) "
    r"(?:바랍니다|바라요|좋겠습니다|좋겠어요)",
    r"(?:추가|다른|더)[^.:!?\n]{0,20}(?:질문|문의|궁금)[^.:!?\n]{0,15}(?:언제든지?|편하게) ?(?:편하게 )?"
    r"(?:물어보|질문|문의|말씀|알려)[^.:!?\n]{0,12}",
)
_MARKS = re.compile(r"(?:[\[［【][^\[\]\n]{1,40}[\]］】]\s*)+")
"""Of the sentence before, after whose end they stand."""
_END = r"(?:\s*[.!~…,:;?—–\U0001f300-\U0001faff])+\s*|\s*\Z"
_PLEASANTRY = re.compile(rf"(?:{'|'.join(_ENGLISH + _KOREAN)})(?:{_END})", re.I)


def without_pleasantries(text: str) -> str:
    """The text without sentences and beginnings of sentences that only address the reader."""
    pieces: list[str] = []
    last = 0
    for sentence, end in sentences(text):
        marks = _MARKS.match(text, sentence, end)
        start = rest = marks.end() if marks else sentence
        while match := _PLEASANTRY.match(text, rest, end):
            rest = match.end()
        if rest == start:
            continue
        pieces.append(text[last:start])
        if rest == end:
            rest += len(text[end:]) - len(text[end:].lstrip())
        else:
            pieces.append(text[rest].upper())
            rest += 1
        last = rest
    return "".join([*pieces, text[last:]]).rstrip() if pieces else text
