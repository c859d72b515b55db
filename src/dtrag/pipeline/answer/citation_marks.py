"""Reads citation marks such as `[n]` in a language model's answer and removes them.

With them it removes what a model adds to the words of its answer: links, HTML, lists of sources, pleasantries.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dtrag.core.text.analysis import normalise, sentences
from dtrag.core.text.patterns import explained

UNSUPPORTED = "[?]"
MOST_NUMBERS = 20
"""Maximum of numbers read from one mark: `[1-999]` is not a citation."""

_NUMBERS = r"\d{1,3}(?:\s?[,;、，·~～–—‑-]\s?\d{1,3}){0,30}"
_MARK = explained(
    r"(?<![ \t\u3000])[ \t\u3000]*[\[［【]\^?\s?(?:(?:passages?|sources?|출처|문서|자료|근거)\s?:?\s?)?"
    rf"({_NUMBERS}|\?)\s?[\]］】]",
    flags=re.I,
    finds=("text [1]", "[출처: 2]"),
    refuses="[개정 2]",
)
_LINK = (
    r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]"
    r"\(\s*(<[^<>\n]*>|(?:[^\s()<]|\([^\s()]*\))+)(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)"
)
_IMAGE = re.compile(r"(?:(?<![ \t])[ \t]+)?!" + _LINK)
_LINKED = re.compile(_LINK)
_ADDRESS = re.compile(r"[^\w\s()]")
"""A character of every link target; `[별표 1](제3조)` has none and is prose."""
_ELEMENT = (
    r"(?:a|abbr|address|applet|area|article|aside|audio|b|base|bdi|bdo|big|blink|blockquote|body|br|button|canvas|caption|center"
    r"|cite|code|col|colgroup|data|datalist|dd|del|details|dfn|dialog|dir|div|dl|dt|em|embed|fieldset|figcaption|figure"
    r"|font|footer|form|frame|frameset|h[1-6]|head|header|hgroup|hr|html|i|iframe|image|img|input|ins|kbd|keygen|label"
    r"|legend|li|link|main|map|mark|marquee|math|menu|meta|meter|nav|noembed|noframes|noscript|object|ol|optgroup|option"
    r"|output|p|param|picture|plaintext|pre|progress|q|rp|rt|ruby|s|samp|script|search|section|select|slot|small|source"
    r"|span|strike|strong|style|sub|summary|sup|svg|table|tbody|td|template|textarea|tfoot|th|thead|time|title|tr|track"
    r"|tt|u|ul|var|video|wbr|xmp)(?![\w-])"
)
"""The elements of HTML. `<개정 2020>`, `<branch>` and `a < b` are prose."""
_SCRIPT = explained(
    r"<(?:script|style)\b[^<>]*>[^<]*(?:<(?!/?(?:script|style)\b)[^<]*)*</(?:script|style)\s*>|<!--[^<]*?-->",
    flags=re.I,
    finds=("<script>x</script>", "<!-- a -->"),
    refuses="<scripts>x</scripts>",
)
_TAG = re.compile(rf"</?{_ELEMENT}[^<>]*>|<[a-z][^<>=]*=[^<>]*>", re.I)
_CODE = re.compile(r"(?:java|vb)script:\S+|data:\w+/\S+", re.I)
# Where HTML would start a tag.
_OPEN_TAG = re.compile(rf"<(?=/?{_ELEMENT}|!--|[a-z][^<>=]*=)", re.I)
# What a mark may stand in, so that removing it would make a tag.
_BEGUN_TAG = re.compile(r"<[^\s<>]*\Z")
# Where Markdown would start or define a link.
_OPEN = re.compile(r"(?<=[\]］】])(?=\()|^[ \t>*+\-\d.)]{0,20}\[[^\]\n]{1,200}\](?=:)", re.M)
_URL = re.compile(r"(?:[a-z][a-z\d+.\-]{1,20}://|www\.)[^\s<>()\[\]{}\"'“”‘’|]+", re.I)
_AFTER_URL = re.compile(r"(?<![.,;:!?。、*_~`가-힣])[.,;:!?。、*_~`가-힣]+\Z")
_ROUND = str.maketrans("[［【]］】", "((()))")
_PIECE = re.compile(r"(\d{1,3})(?:\s?[~～–—‑-]\s?(\d{1,3}))?")
_HEADING = explained(
    r"^[ \t>#*_\-]{0,20}(?:sources?|references?|citations?|bibliography|출처|참고\s?문헌|참고\s?자료|참조\s?문헌)"
    r"[ \t*_]{0,8}(?:[:：][^\n]*|[ \t#*_]{0,8})$",
    flags=re.I | re.M,
    finds=("## Sources", "출처: 학칙"),
    refuses="Sources of income",
)
_ENTRY = re.compile(r"[ \t]{0,20}(?:[\[［【(]?\^?\d{1,3}[\]］】).:]|[-*•·]|https?://|제\s?\d{1,4}\s?조|$)")
_BULLET = re.compile(r"(?:(?:[-*•·]|\d{1,2}[.)])\s+)?(?:\*\*)?")
_CONTEXT = 24
"""Characters before a mark by which copies of a passage's text are recognised."""


@dataclass(frozen=True, slots=True)
class MarkedSentence:
    """A sentence of the answer without its marks, `[start, end)` in `MarkedAnswer.text`, and the numbers it cites."""

    start: int
    end: int
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MarkedAnswer:
    """An answer without its marks; `invented` are numbers of unknown passages, `listed`: it had a list of sources."""

    text: str
    sentences: tuple[MarkedSentence, ...]
    invented: tuple[int, ...]
    listed: bool


def read_marks(answer: str, passages: Sequence[str]) -> MarkedAnswer:
    """The answer without marks, and what they cite; a mark copied from a passage's own text cites nothing.

    Numbers count from 1 to `len(passages)`; `[1][2]`, `[1, 2]`, `[1-3]` and wide forms are read. Links and HTML are
    replaced by their text; images, scripts and pleasantries are removed.
    """
    body = without_sources(answer)
    unlinked = without_pleasantries(_unlinked(body))
    folded = [normalise(text) for text in passages]
    pieces: list[str] = []
    marks: list[tuple[int, tuple[int, ...]]] = []
    invented: list[int] = []
    length = last = 0
    for match in _MARK.finditer(unlinked):
        pieces.append(unlinked[last : match.start()])
        length += match.start() - last
        numbers = _numbers(match[1])
        known = tuple(number for number in numbers if 1 <= number <= len(passages))
        invented += [number for number in numbers if number not in known]
        if known and not _copied(unlinked[max(0, match.start() - _CONTEXT) : match.end()], match.group(), folded):
            marks.append((length, known))
        last = match.end()
        if not unlinked[unlinked.rfind("\n", 0, match.start() + 1) + 1 : match.start()].strip():
            last += len(unlinked) - last - len(unlinked[last:].lstrip(" \t"))
        elif (match.group()[0].isspace() and unlinked[last : last + 1].isalnum()) or _BEGUN_TAG.search(
            unlinked, max(0, match.start() - _CONTEXT), match.start()
        ):
            pieces.append(" ")
            length += 1
    text = "".join([*pieces, unlinked[last:]])
    return MarkedAnswer(text, _sentences(text, marks), tuple(dict.fromkeys(invented)), body != answer)


def without_sources(answer: str) -> str:
    """The answer without a list of sources at its end; sources are the checked citations instead."""
    for match in _HEADING.finditer(answer):
        rest = answer[match.end() :].split("\n")
        if all(_ENTRY.match(line) for line in rest):
            return answer[: match.start()].rstrip()
    return answer


def urls(text: str) -> list[str]:
    """The web addresses in a text, without punctuation or a Korean particle at their end."""
    return [_AFTER_URL.sub("", match.group()) for match in _URL.finditer(text)]


def rounded(text: str) -> str:
    """The text with round brackets in place of a document's own marks: `[7]` becomes `(7)`."""
    return _MARK.sub(lambda match: match.group().translate(_ROUND), text)


def _unlinked(text: str) -> str:
    """The text without Markdown links, images and HTML; what could still be read as one is broken by a space."""
    bare = _LINKED.sub(_link_text, _IMAGE.sub("", text))
    bare = _CODE.sub("", _TAG.sub("", _SCRIPT.sub("", bare)))
    return _OPEN_TAG.sub("< ", _OPEN.sub(lambda match: match.group() + " ", bare))


def _link_text(match: re.Match[str]) -> str:
    shown, address = match.groups()
    if not _ADDRESS.search(address):
        return match.group()
    return f"[{shown}]" if re.fullmatch(_NUMBERS, shown.strip()) else shown


def _numbers(inside: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for first, last in _PIECE.findall(inside):
        numbers += range(int(first), min(int(last or first), int(first) + MOST_NUMBERS) + 1)
    return tuple(dict.fromkeys(numbers[:MOST_NUMBERS]))


def _copied(stretch: str, mark: str, passages: Sequence[str]) -> bool:
    """Whether a passage has the mark after the same text; a few letters before it are not enough to tell."""
    context = normalise(stretch)
    return len(context) - len(normalise(mark)) >= _CONTEXT // 2 and any(context in text for text in passages)


def _sentences(text: str, marks: Sequence[tuple[int, tuple[int, ...]]]) -> tuple[MarkedSentence, ...]:
    spans = [
        (start + len(bullet[0]), end) for start, end in sentences(text) if (bullet := _BULLET.match(text, start, end))
    ]
    spans = [(start, end) for start, end in spans if start < end]
    cited: list[list[int]] = [[] for _ in spans]
    for position, numbers in marks:
        owner = _owner(text, spans, position)
        if owner is not None:
            cited[owner] += numbers
    return tuple(
        MarkedSentence(start, end, tuple(dict.fromkeys(numbers)))
        for (start, end), numbers in zip(spans, cited, strict=True)
    )


def _owner(text: str, spans: Sequence[tuple[int, int]], position: int) -> int | None:
    """The index of the sentence that a mark belongs to: the one before it, or after it at the start of a line."""
    before = [index for index, (start, _) in enumerate(spans) if start < position]
    head = not text[text.rfind("\n", 0, position) + 1 : position].strip(" \t>*-•·")
    if before and not (head and position > spans[before[-1]][1]):
        return before[-1]
    following = len(before)
    return following if following < len(spans) else (before[-1] if before else None)


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
