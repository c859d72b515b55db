"""Interprets an English question for the comparison with another one."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

import Stemmer

from dtrag.core.cases.quantities import ENGLISH_MONTHS, english_number, number_with_unit
from dtrag.core.cases.reading import Reading, Unit
from dtrag.core.cases.spelling_distance import distance
from dtrag.core.cases.subjects import EnglishSubjects
from dtrag.core.cases.wording import Wording, listed, raw_wording, synonym_phrases

_stemmer = Stemmer.Stemmer("english")
_stemmer.maxCacheSize = 0
_LABELS = {"cl": "clause", "sec": "section", "ch": "chapter", "para": "paragraph", "art": "article", "app": "appendix"}


def _clock(match: re.Match[str]) -> str:
    """A time of day with 24 hours: 7 pm is 19:00."""
    hour = int(match[1])
    if not 1 <= hour <= 12:
        return match.group()
    return f"{hour % 12 + (12 if match[3] == 'p' else 0)}:{match[2] or '00'}"


_CONTRACTIONS = (
    (re.compile(r"[\u2018\u2019\u02bc`\u00b4]"), "'"),
    (re.compile(r"\bcan'?t\b|\bcannot\b"), "can not"),
    (re.compile(r"\bwon'?t\b"), "will not"),
    (re.compile(r"\b(do|does|did|is|are|was|were|has|have|had|must|should|would|could|need)n'?t\b"), r"\1 not"),
    (re.compile(r"\bw/o\b"), "without"),
    (re.compile(r"\bw/(?=\s)|(?<= )w(?= (?:a|an|the|my|our|your|his|her|their|no)\b)"), "with"),
    (re.compile(r"\b(cl|sec|ch|para|art|app)\.(?= ?\d)"), lambda match: _LABELS[match[1]]),
    (re.compile(r"\b(approx|min|max)\.(?= )"), r"\1 "),
    (re.compile(r"(?<=[a-z]{3})/(?=(?:day|week|month|year|hour|night)\b)"), " per "),
    (re.compile(r"\bph\.?d\b\.?(?= (?:student|candidate|thesis|degree|programme|program)s?\b)"), "doctoral"),
    (re.compile(r"\b([a-d])(\+|-)(?![a-z0-9+])"), lambda match: f"{match[1]}{'plus' if match[2] == '+' else 'minus'} "),
    (re.compile(r"\b(what|who|where|when|how|why|that|there|here|it|he|she)(?:'s|s')(?=\s)"), r"\1 is"),
    (re.compile(r"\b(whats|wheres|whos|hows|whens)\b"), lambda match: f"{match[1][:-1]} is"),
    (re.compile(r"\b(i|we|you|they|who|what|how)'?re\b(?<=')?|'re\b"), lambda match: f"{match[1] or ''} are"),
    (re.compile(r"'ve\b"), " have"),
    (re.compile(r"'ll\b"), " will"),
    (re.compile(r"'d\b"), " would"),
    (re.compile(r"\bi'?m\b"), "i am"),
    (re.compile(r"'s\b|s'(?=\s|$)"), " "),
    (re.compile(r"\b([a-z])\.([a-z])\.(?=\s|$|[?!,])"), r"\1\2"),
    (re.compile(r"\b(\d{1,2})(?::(\d\d))? ?([ap])m\b\.?"), _clock),
    (re.compile(r"\b2(?=[- ](?:step|factor)\b)"), "two"),
    (re.compile(r"\b(?:am|are|is) (i|we|you|they|it|he|she) going to\b"), r"will \1"),
    (re.compile(r"\bwith out\b"), "without"),
    (re.compile(r"\bid (?=(?:like|love|prefer|need|want)\b)"), "i would "),
    (re.compile(r"\byou guys\b"), "you"),
    (re.compile(r"\bu\b(?! ?s)"), "you"),
    (re.compile(r"\bur\b"), "your"),
)
_FORMS = frozenset({"spelling", "irregular"})
"""Lists of pairs and forms, not of words."""
_MAY = re.compile(
    r"\b(in|of|by|and|or|from|since|until|till|before|after|early|late|mid|to|\d{1,2}(?:st|nd|rd|th)?) may\b"
    r"(?! (?:i|we|you|he|she|they|it|the|a|an|my|our|not|be|one|only|also|have)\b)|\bmay(?= \d)"
)
"""The month, not the verb."""
_VERB_STARTS = frozenset({"be", "do", "have", "let", "not", "make", "become"})
_WHO_OBJECT = re.compile(
    r"\bwhom\b|\b(?:who|which (?:person|people|employees?|department|team|office))(?: exactly| all| else)?"
    r" (?:(?:do|does|did)\b|(?:can|could|may|must|should|shall|will|would)"
    r" (?:i|we|you|one|the|a|an|my|our|his|her|their|new|all|every)\b)"
    r"|\bwho (?:is|are|was|were|gets?) (?:\w+ )?\w+(?:ed|en|t) by\b"
    r"|\b(?:to|for|with|from|of|about) (?:whom|which (?:person|department|team))\b"
)
"""Who is the object: whom, who does the manager inform."""
_INVERTED = re.compile(
    r"\b(?:what|which)(?: (?!should|can|could|may|must|will|would|i\b|we\b|to\b|do\b)\w+){0,3} (?:do|does|did)"
    r" (?!(?:i|we|you|one|it|they|if|when|to|about|with|in|on|at|for)\b)\w"
    r"|\bwhat (?:the|my|our|your|their|an?) \w+ (?!(?:is|was|does|has|details|costs)\b)[a-z]{3,}s\b"
)
"""What the sentence asks for is its object: which team does Anna support."""
_WHO_AGENT = re.compile(r"\bby (?:whom|which)\b|\bby\s*\??$")
_ORDERED = frozenset({"number", "date"})
"""Statements that belong to the words beside them, so that their order counts: from Monday to Friday."""
_SEQUENCE = re.compile(r"\b(?:first|then|later|afterwards?|next|finally|subsequently|earlier)\b")
_US = re.compile(r"\bus\b", re.IGNORECASE)
_SIDES = frozenset({"by", "from", "against"})
"""Prepositions that count even before a pronoun: owed by us."""
_PARTICLES = frozenset({"off", "out", "down", "away", "back"})
"""Adverbs that turn a verb around, with a noun after them or without: turn it off."""
_PRONOUN_WITHIN = re.compile(r"\b([a-z]+) (?:it|them) (over|back|in|out|off|up|away|forward|on)\b(?= *(?:$|[?.!,]))")
"""A pronoun within a verb of two words: carry it over."""
_PRONOUN = re.compile(r"\b(?:i|we)\b")
_TO = frozenset({"to"})
_TOKEN = re.compile(r"⟦[a-z_]+⟧|⟪\d+⟫|\d+(?:[.,:/]\d+)*(?:st|nd|rd|th)?%?|[a-z]+(?:\+\+|#)?|[€$£%§,;]|[^\W\d_]+|\d+")
_AUXILIARIES = "do does did is are was were am can could may might must should shall will would has have had".split()
_AUXILIARY_START = re.compile(rf"(?:^|[,;.!?:–-]\s*|\band\s)\s*(?:{'|'.join(_AUXILIARIES)})\b")
_RESETS = frozenset((*_AUXILIARIES, ",", ";", "be", "been", "i", "we", "you", "they"))
_INVERSION = re.compile(r"\b(?:do|does|did|can|may|must|should|will) (?:i|we|you|they|the|my|our|a|an)\b")
_LEADING = re.compile(r"^(?:(?:but|so|and|well)\b[ ,]*)+")
"""What is left of a greeting: sorry to ask, but."""
_HYPHEN_PREFIX = re.compile(r"\b(over|re|co|e|pre|after|up|check|well|life|home)-(?=[a-z])")
_IDENTIFIER = re.compile(r"(?<=\d)\s?\(([a-z0-9]+)\)|(?<=\d)([a-z])\b(?!\w)")
_CAPITALISED = re.compile(r"(?<=[a-z,;] )[A-Z][A-Za-z]+|\b[A-Z]{2,}\b")
_WORD = re.compile(r"[a-z]+")
_PAST = re.compile(r"\b(?:is|are|was|were|be|been|being|am|get|gets|got)\b")


@functools.lru_cache(20_000)
def lemma(word: str) -> str:
    """The comparable form of an English word: irregular forms by a table, others by their Snowball stem."""
    base = _irregular().get(word) or _spellings().get(word, word)
    singular = base.removesuffix("s")
    if len(singular) > 5 and singular.endswith(("er", "or", "ee")) and singular not in _verbs():
        return singular  # a manager does not only manage, and an employer is no employee
    return str(_stemmer.stemWord(base))


@functools.cache
def _irregular() -> dict[str, str]:
    lines = [line.split() for line in listed(raw_wording("en")["words"]["irregular"])]
    return {word: base for base, *others in lines for word in (base, *others)}


@functools.cache
def _verbs() -> frozenset[str]:
    return frozenset(listed(raw_wording("en")["words"]["verbs"]))


@functools.cache
def _spellings() -> dict[str, str]:
    return dict(pair.split() for pair in listed(raw_wording("en")["words"]["spelling"]))


@functools.cache
def _vocabulary() -> dict[tuple[str, int], tuple[str, ...]]:
    """The written words of the vocabulary by first letter and length."""
    raw = raw_wording("en")
    patterns = (line for table in ("aspects", "markers") for lines in raw[table].values() for line in lines)
    lists = (text for name, text in raw["words"].items() if name != "spelling")
    texts = (*raw["synonyms"], *lists, *patterns)
    grouped: dict[tuple[str, int], list[str]] = {}
    for word in sorted({word for text in texts for word in re.findall(r"[a-z]{4,}", text)}):
        grouped.setdefault((word[0], len(word)), []).append(word)
    return {key: tuple(words) for key, words in grouped.items()}


@functools.lru_cache(20_000)
def corrected(word: str) -> str:
    """The word of the vocabulary that an unknown word is one letter away from; the word itself if there is none.

    A word that may be any of several is left as it is.
    """
    if len(word) < 5 or lemma(word) in english().known:
        return word
    if word.endswith("s") and len(word) > 6 and (singular := corrected(word[:-1])) != word[:-1]:
        return f"{singular}s"
    vocabulary = _vocabulary()
    nearest = [
        other
        for length in (len(word) - 1, len(word), len(word) + 1)
        for other in vocabulary.get((word[0], length), ())
        if distance(word, other, 1) == 1
    ]
    return nearest[0] if len({lemma(other) for other in nearest}) == 1 else word


def _lemmas(phrase: str) -> tuple[str, ...]:
    return tuple(lemma(word) for word in re.findall(r"[a-z0-9]+", phrase.replace("-", " ").replace("'s", " ")))


@functools.cache
def english() -> Wording:
    """The English wording. Blocking: reads a small file once."""
    raw = raw_wording("en")
    phrases = synonym_phrases(raw["synonyms"], _lemmas)
    words = {
        name: frozenset(lemma(word) for word in listed(text))
        for name, text in raw["words"].items()
        if name not in _FORMS
    }
    names = {name for classes in phrases.values() for name in classes}
    words["verb_names"] = frozenset(name for name in listed(raw["words"]["verbs"]) if name in names)
    words["party_names"] = frozenset(listed(raw["words"]["parties"]))
    words["soft_names"] = frozenset(listed(raw["words"]["soft"]))
    known = {word for phrase in phrases for word in phrase}.union(*words.values())
    known |= {lemma(word) for table in ("aspects", "markers") for patterns in raw[table].values()
              for pattern in patterns for word in re.findall(r"[a-z]{3,}", pattern)}  # fmt: skip
    return Wording(
        phrases,
        max(map(len, phrases)),
        tuple((name, _either(patterns)) for name, patterns in raw["aspects"].items()),
        tuple((name, _either(patterns)) for name, patterns in raw["markers"].items()),
        _any_of(raw["chatter"], before=r"(?<!\w)", after=r"(?!\w)"),
        words,
        frozenset(known),
    )


def _either(patterns: Sequence[str]) -> re.Pattern[str]:
    return _any_of(patterns, before=r"(?<![\w⟦⟪])", after=r"(?![\w⟧⟫])")


def _any_of(patterns: Sequence[str], *, before: str, after: str) -> re.Pattern[str]:
    """The patterns between what may stand before and after them; what is before is checked once for all."""
    return re.compile(before + "(?:" + "|".join(f"(?:{pattern}){after}" for pattern in patterns) + ")")


def read_english(question: str, folded: str) -> Reading:
    """The English question; `folded` is its normalised text."""
    wording = english()
    text = _with_country(question, folded)
    sequence = bool(_SEQUENCE.search(text))
    for pattern, replacement in _CONTRACTIONS:
        text = pattern.sub(replacement, text)
    text = _MAY.sub(lambda match: f"{match[1] or ''} maymonth", text)
    text = _HYPHEN_PREFIX.sub(r"\1", text).replace("-", " ").replace("/", " or ") if "-" in text else text
    text = re.sub(r"\be ?mails?\b", "email", text)
    text = _WORD.sub(lambda match: _spellings().get(match.group(), match.group()), text)
    text = _IDENTIFIER.sub(lambda match: f"x{match[1] or match[2]}", text)
    text = " ".join(wording.chatter.sub(" ", text).split()).strip(" ,.!?:;-–")
    text = _LEADING.sub("", text)
    text = _PRONOUN_WITHIN.sub(r"\1 \2", text)
    compact = "".join(re.findall(r"\w+", text))
    names = {match.group().lower() for match in _CAPITALISED.finditer(question)}
    text = _WORD.sub(lambda match: match.group() if match.group() in names else corrected(match.group()), text)
    who = bool(_WHO_OBJECT.search(text)) and not _WHO_AGENT.search(text)
    inverted = bool(_INVERTED.search(text)) and not re.search(r"\b(?:do|does|did)\W*$", text)
    whether = bool(re.match(r"(?:if|whether)\b(?!.*,)", text)) or bool(_AUXILIARY_START.search(text))
    whether = whether or bool(_INVERSION.search(text))
    text, aspects = _aspects(text, wording, whether=whether)
    text, phrases = _phrases(text, wording)
    text, markers = _marked(text, wording)
    reader = _Reader(names, wording, phrases)
    if who and "who" in aspects:
        reader.state_value("who", "object")
    if sequence:
        reader.state_value("sequence", "stated")
    if inverted:
        reader.state_value("inverted", "object")
    return reader.reading(text, compact, aspects, markers)


def _with_country(question: str, folded: str) -> str:
    """The folded text with the country US, which is no pronoun, as usa."""
    written = _US.findall(question)
    if "US" not in written or question.isupper() or len(written) != len(_US.findall(folded)):
        return folded
    words = iter(written)
    return _US.sub(lambda match: "usa" if next(words) == "US" else match.group(), folded)


def _aspects(text: str, wording: Wording, *, whether: bool) -> tuple[str, frozenset[str]]:
    """The text with the wordings of what is asked as marks, and the aspects."""
    for name, pattern in wording.aspects:
        text = pattern.sub(functools.partial(_asked, name), text)
    marks = list(re.finditer(r"⟦([a-z_]+)⟧", text))
    aspects = set()
    for mark in marks:
        before, after = text[: mark.start()].rstrip(), text[mark.end() :].lstrip()
        opens = not before or before[-1] in ",;.!?:–-" or re.search(r"(?:\band|\bor|⟧)$", before) is not None
        if mark[1] == "when":
            opens = after.split(" ", 1)[0] in _AUXILIARIES or (opens and not after)
        if len(marks) == 1 or opens or mark[1] not in {"when", "which", "who", "where", "whose", "way"}:
            aspects.add(mark[1])
    if len(aspects) > 1:
        aspects -= {"explain"} if re.search(r"⟧ (?:and|or) ⟦|(?:,| and| or) ⟦", text) else {"which", "explain"}
    if not aspects:
        aspects = {mark[1] for mark in marks[:1]}
    if aspects == {"explain"}:
        aspects = {"which"}
    return " ".join(text.split()), frozenset(aspects or {"whether" if whether else "open"})


def _phrases(text: str, wording: Wording) -> tuple[str, list[tuple[str, frozenset[str]]]]:
    """The text with phrases of synonyms as marks, and their written words with their meanings."""
    tokens = _TOKEN.findall(text)
    stems = [lemma(token) if token[0].isalpha() else token for token in tokens]
    phrases: list[tuple[str, frozenset[str]]] = []
    result: list[str] = []
    at = 0
    while at < len(tokens):
        for length in range(min(wording.longest_phrase, len(tokens) - at), 1, -1):
            meanings = wording.phrases.get(tuple(stems[at : at + length]))
            if meanings:
                result.append(f"⟪{len(phrases)}⟫")
                phrases.append((" ".join(tokens[at : at + length]), meanings))
                at += length
                break
        else:
            result.append(tokens[at])
            at += 1
    return " ".join(result), phrases


def _marked(text: str, wording: Wording) -> tuple[str, list[str]]:
    """The text with statements (negation, modality, quantity) as marks, and their names in order."""
    for name, pattern in wording.markers:
        text = pattern.sub(functools.partial(_stated, name), text)
    return text, re.findall(r"⟦m_([a-z_]+)⟧", text)


def _asked(name: str, match: re.Match[str]) -> str:
    return f" ⟦{name}⟧ {' '.join(filter(None, match.groups()))} {_author(match)} "


def _stated(name: str, match: re.Match[str]) -> str:
    return f" ⟦m_{name}⟧ {_author(match)} "


def _author(match: re.Match[str]) -> str:
    """The pronoun within a wording (do I have to): the words after it have the author as their subject."""
    pronoun = _PRONOUN.search(match.group())
    return pronoun.group() if pronoun else ""


@dataclass
class _State:
    """What the words read so far mean for the next one."""

    role: str = ""
    group: int = 0
    marks: tuple[str, ...] = ()


_DIRECTED = frozenset({"before", "after", "until", "since", "without", "except", "unless", "instead", "than", "despite",
                       "within", "outside", "during", "more", "less", "only", "not"})  # fmt: skip
"""Statements that concern the next content word."""


class _Reader:
    """Turns the marked text of a question into units."""

    def __init__(self, names: set[str], wording: Wording, phrases: Sequence[tuple[str, frozenset[str]]]) -> None:
        self._wording = wording
        self._phrases = phrases
        self._names = names
        self._statements: dict[str, list[str]] = {}
        self._units: list[Unit] = []
        self._subjects = EnglishSubjects()

    def reading(self, text: str, compact: str, aspects: frozenset[str], markers: Sequence[str]) -> Reading:
        words = self._wording.words
        tokens = _TOKEN.findall(text)
        speaker = any(token in words["pronouns"] for token in tokens)
        for name in markers:
            self.state_value("marker", name)
        if any(token in words["objects"] for token in tokens):
            self.state_value("marker", "me")
        state = _State()
        at = 0
        while at < len(tokens):
            at += self._read(tokens, at, state)
        passive = bool(_PAST.search(text)) and any(unit.role == "by" for unit in self._units)
        statements = tuple(
            (kind, tuple(values if kind in _ORDERED else sorted(values)))
            for kind, values in sorted(self._statements.items())
        )
        subjects = frozenset(self._subjects.all)
        return Reading("en", compact, statements, aspects, tuple(self._units), passive, speaker, subjects)

    def state_value(self, kind: str, value: str) -> None:
        """Add a statement."""
        self._statements.setdefault(kind, []).append(value)

    def _read(self, tokens: Sequence[str], at: int, state: _State) -> int:
        """Read the token at `at`; the number of tokens that were read."""
        token = tokens[at]
        words = self._wording.words
        if token.startswith("⟦"):
            self._subjects.read_mark(token[1:-1])
            name = token[1:-1].removeprefix("m_")
            if name in _DIRECTED:
                state.marks = (*state.marks, name)
            state.role, state.group = "", state.group + 1
            return 1
        if token.startswith("⟪"):
            self._add_phrase(int(token[1:-1]), state)
            return 1
        number = english_number(tokens[at : at + 3])
        if number is not None:
            return self._add_number(tokens, at, number, state)
        self._subjects.read_word(token)
        if token in _RESETS:
            state.role, state.group = "", state.group + 1
            return 1
        stem = lemma(token)
        if token in _PARTICLES:
            self.state_value("particle", token)
        if token in words["directions"] and not self._is_infinitive(tokens, at):
            state.role, state.group = token, state.group + 1
        elif token in words["neutral"] or token in _TO:
            state.role, state.group = "" if token in _TO else "~", state.group + 1
        elif self._labels(tokens, at):
            self.state_value("number", f"{lemma(tokens[at - 1])} {token}")
        elif token in words["objects"] and state.role in _SIDES:
            self.state_value("side", state.role)
        elif token in words["drop"] or stem in words["pronouns"] or token in words["objects"]:
            pass
        elif token[0].isalpha():
            self._add(token, stem, self._wording.phrases.get((stem,), frozenset()), state)
        return 1

    def _labels(self, tokens: Sequence[str], at: int) -> bool:
        """Whether the single letter at `at` names the thing before it: annex A."""
        if len(tokens[at]) != 1 or not at or lemma(tokens[at - 1]) not in self._wording.words["labels"]:
            return False
        return (
            tokens[at] != "a"
            or at + 1 == len(tokens)
            or not tokens[at + 1][0].isalpha()
            or (tokens[at + 1] in self._wording.words["neutral"])
        )

    def _is_infinitive(self, tokens: Sequence[str], at: int) -> bool:
        if tokens[at] != "to" or at + 1 == len(tokens):
            return False
        following = tokens[at + 1]
        if following.startswith("⟪"):
            return bool(self._phrases[int(following[1:-1])][1] & self._wording.words["verb_names"])
        return lemma(following) in self._wording.words["verbs"] or following in _VERB_STARTS

    def _add_phrase(self, number: int, state: _State) -> None:
        written, meanings = self._phrases[number]
        self._add(written, "".join(_lemmas(written)), meanings, state)

    def _add_number(self, tokens: Sequence[str], at: int, number: tuple[str, int], state: _State) -> int:
        value, length = number
        following = tokens[at + length] if at + length < len(tokens) else ""
        value, more = number_with_unit(value, lemma(following) if following.isalpha() else following)
        marks = "".join(f"{mark} " for mark in state.marks if mark != "not")
        label = lemma(tokens[at - 1]) if at and lemma(tokens[at - 1]) in self._wording.words["labels"] else ""
        marks += "from " if state.role == "from" else ""
        self.state_value("number", f"{marks}{label + ' ' if label else ''}{value}")
        state.marks = ()
        counted = tokens[at + length + more : at + length + more + 1]
        if counted and counted[0][0].isalpha():
            self.state_value("counted", f"{value} {lemma(counted[0])}")
        return length + more

    def _add(self, written: str, stem: str, meanings: frozenset[str], state: _State) -> None:
        words = self._wording.words
        verb = stem in words["verbs"] or bool(meanings & words["verb_names"])
        if stem in ENGLISH_MONTHS:
            self.state_value("date", stem)
            return
        for mark in state.marks:
            self.state_value(f"{mark}…", min(meanings, default=stem))
        filled = bool(self._units) and self._units[-1].group == state.group
        role = "" if verb and (state.role == "~" or filled) else state.role
        party = stem in words["parties"] or bool(meanings & words["party_names"])
        name = any(word in self._names for word in written.split())
        self._units.append(
            Unit(
                stem,
                written.replace(" ", ""),
                meanings | {stem},
                role=role,
                known=stem in self._wording.known or bool(meanings),
                name=name,
                soft=(stem in words["soft"] or bool(meanings & words["soft_names"]))
                and not (party and role and (role != "~" or "company" not in meanings)),
                party=party,
                verb=verb,
                group=state.group,
                subject=self._subjects.of(stem, role=role, verb=verb, party=party, group=state.group),
            )
        )
        state.marks = ()
        if verb:
            state.role, state.group = "", state.group + 1
