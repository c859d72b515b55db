"""Personal data in a text: spans of resident numbers, phones, cards, accounts, passports, licences, e-mail addresses.

A kind is a row of `KINDS`: a pattern, and a check of its candidates by check digits, dates, issuers, formats of banks
and the words around them. Patterns take linear time: each position is tried with a bounded number of characters.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from dtrag.core.text.patterns import explained

Mode = Literal["off", "mark", "mask"]
FILL = "█"
"""Character of a mask: neither a letter nor a mark of any format that dtrag reads."""
RULES_VERSION = "1"
"""Raise it when other texts are recognised: documents read before are reported until they are read again."""
LONGEST_MASK = 90
"""Of all kinds; the words in masks must not decide about other numbers: a masked text is not masked further."""
BEFORE, AFTER, NAMED = 50, 20, 24
"""Characters in which words decide about a number: before it, after it, and before it the name of another number."""
_UNCHECKED_SINCE = date(2020, 10, 1)
"""Resident numbers issued from this day on end in arbitrary digits."""
_DASH = r"[-‐-―−－]"
_LEFT = r"(?<![0-9A-Za-z])(?<!\d\.)(?<!\w-)"
_RIGHT = r"(?![0-9A-Za-z@])(?![-.]\d)"
_MASK = re.compile(rf"\[[^\[\]{FILL}]{{1,20}}{FILL}+\]|{FILL}+")


@dataclass(frozen=True, slots=True)
class PersonalDatum:
    """A span of a text, in code points, with the name of its kind."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class NumberMatch:
    """What the pattern of a kind matched, and the words around it."""

    text: str
    start: int
    end: int
    context: str

    @property
    def value(self) -> str:
        """The matched text."""
        return self.text[self.start : self.end]

    @property
    def digits(self) -> str:
        """Its digits."""
        return "".join(sign for sign in self.value if sign.isdecimal())

    @property
    def groups(self) -> tuple[int, ...]:
        """The lengths of its groups of digits."""
        return tuple(len(group) for group in re.findall(r"\d+", self.value))

    def before(self) -> str:
        """The text before it, without masks; its beginning is `context`, the name of the field."""
        text = self.text[max(0, self.start - BEFORE - LONGEST_MASK) : self.start]
        return _unmasked(f"{self.context} {text}")[-BEFORE:]

    def after(self) -> str:
        """The text behind it, to the end of the line, without masks."""
        text = self.text[self.end : self.end + AFTER + LONGEST_MASK].partition("\n")[0]
        return _unmasked(text)[:AFTER]

    def named(self, words: re.Pattern[str]) -> bool | None:
        """Whether the last name before it is one of `words`; False for that of another number, None for neither."""
        before = self.before()
        own = max((match.end() for match in words.finditer(before)), default=-1)
        other = max((match.end() for match in OTHER_NUMBERS.finditer(before)), default=-1)
        if other > own and len(before) - other <= NAMED:
            return False
        return True if own >= 0 or words.search(self.after()) else None


def _unmasked(text: str) -> str:
    """The text with blanks in place of masks."""
    return _MASK.sub(lambda match: " " * len(match[0]), text) if FILL in text else text


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of personal data. `label` is shown in the mask where it fits; `finds` and `refuses` are run by a test."""

    name: str
    label: str
    pattern: re.Pattern[str]
    accepts: Callable[[NumberMatch], bool]
    finds: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()


OTHER_NUMBERS = explained(
    r"(?:주문|접수|송장|일련|승인|거래|문서|공문|관리|자산|법인|법인\s?등록|사업자|사업자\s?등록|고유|수험|군|사원|출원|특허|공고|과목|제품|모델"
    r"|시리얼|비품|도서\s?등록|예약|허가|등기|발급)\s?번호|학번|바코드|ISBN|ISSN|(?<![a-z])(?:order|invoice|serial|tracking"
    r"|transaction|lot|barcode|build|ticket|IMEI|EAN|UPC|DOI|SHA|log id|timestamp)(?![a-z])",
    finds=("주문 번호", "Order number", "법인등록번호"),
    refuses=("주민등록번호", "계좌번호", "in alphabetical recorder"),
    flags=re.IGNORECASE,
)
"""Names of numbers that are not personal data."""
_RESIDENT_NAMES = explained(
    r"주민\s?(?:등록)?\s?번호|주민\s?등록|외국인\s?등록(?:증|번호)?|거소\s?신고|생년월일|resident\s?regist|alien\s?regist"
    r"|(?<![a-z])(?:ARC|RRN)(?![a-z])",
    finds=("주민번호", "외국인 등록번호", "Alien Registration Number", "ARC"),
    refuses=("주민 센터", "search", "법인등록번호"),
    flags=re.IGNORECASE,
)
_PHONE_NAMES = explained(
    r"전화|휴대|핸드폰|연락|팩스|문의|(?<![a-z])(?:tel|telephone|phone|fax|mobile|cell|call|dial|H\.?P|T)(?![a-z])",
    finds=("전화", "Tel.", "office phone:", "T. 02"),
    refuses=("hotel", "recalled", "학번"),
    flags=re.IGNORECASE,
)
_ACCOUNT_NAMES = explained(
    r"계좌|입금|송금|이체|예금주|통장|환불|(?<![a-z])(?:bank|bank account|account (?:no\.?|number)|IBAN)(?![a-z])",
    finds=("입금 계좌", "Hana Bank account", "account no."),
    refuses=("accounting", "riverbanks", "은행나무"),
    flags=re.IGNORECASE,
)
_PASSPORT_NAMES = re.compile(r"여권|passport", re.IGNORECASE)
_PASSPORT_NUMBER = re.compile(r"(?:여권\s?번호|passport\s?(?:number|no\.?|#))[\s:은는()]{0,4}$", re.IGNORECASE)
_CARD_NAMES = re.compile(r"카드|결제|card|visa|amex|mastercard", re.IGNORECASE)
_LICENCE_NAMES = re.compile(r"면허|driv\w{1,6} licen[cs]e", re.IGNORECASE)

_NEXT = r"(?=[\s:]{0,2}\0)"
"""Directly before a number: names of banks that are common words ("우리") count only there without 은행."""
BANKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("국민(?:은행)?|KB(?![A-Za-z])|kookmin", ("6-2-6", "3-2-4-3", "3-4-4-3", "4-2-7")),
    ("신한(?:은행)?|shinhan", ("3-3-6", "3-2-6", "3-8-3")),
    (rf"우리(?:은행|{_NEXT})|woori", ("4-3-6", "3-6-2-3", "3-2-6-3")),
    (rf"하나(?:은행|{_NEXT})|KEB|hana", ("3-6-5", "3-6-2-3", "6-2-6")),
    ("농협|NH(?![A-Za-z])|nonghyup", ("3-4-4-2", "3-2-6", "6-2-6", "3-4-4-1-2", "4-2-6")),
    (rf"기업(?:은행|{_NEXT})|IBK|industrial bank", ("3-6-2-3", "3-2-6-2", "4-2-6-2", "3-8-1")),
    ("SC제일|제일은행|standard chartered", ("3-2-6",)),
    ("카카오뱅크|kakao", ("4-2-7",)),
    ("토스뱅크|toss", ("4-4-4",)),
    ("케이뱅크|k ?bank", ("3-3-6", "3-3-7")),
    ("우체국", ("6-2-6",)),
    ("새마을금고", ("4-4-4-1", "4-2-6-1", "4-3-6")),
    (rf"부산(?:은행|{_NEXT})", ("3-4-4-2", "3-2-6-1")),
    (rf"대구(?:은행|{_NEXT})|iM뱅크", ("3-2-6-1", "3-6-3")),
    (rf"광주(?:은행|{_NEXT})", ("3-3-6",)),
    (rf"전북(?:은행|{_NEXT})", ("3-2-7", "4-2-7")),
    (rf"제주(?:은행|{_NEXT})", ("2-2-6",)),
    (rf"경남(?:은행|{_NEXT})", ("3-2-7", "3-4-4-2")),
    ("수협", ("3-2-6-1", "4-4-4")),
    ("신협", ("3-3-6", "5-2-6")),
    ("씨티은행|citibank", ("3-6-3", "3-6-2-1")),
    ("산업은행|KDB", ("3-4-4-3", "3-8-3")),
)
"""Names of Korean banks, and the groups of digits of their account numbers."""
_BANKS = tuple((re.compile(names, re.IGNORECASE), formats) for names, formats in BANKS)
_ACCOUNT_DIGITS = range(10, 15)
_LUHN_LENGTHS: tuple[tuple[str, range, frozenset[int]], ...] = (
    ("visa", range(4_000, 5_000), frozenset({13, 16, 19})),
    ("mastercard", range(5_100, 5_600), frozenset({16})),
    ("mastercard", range(2_221, 2_721), frozenset({16})),
    ("american express", range(3_400, 3_500), frozenset({15})),
    ("american express", range(3_700, 3_800), frozenset({15})),
    ("diners", range(3_000, 3_060), frozenset({14})),
    ("diners", range(3_600, 3_700), frozenset({14})),
    ("diners", range(3_800, 3_900), frozenset({14})),
    ("jcb", range(3_528, 3_590), frozenset({16})),
    ("discover", range(6_011, 6_012), frozenset({16})),
    ("discover", range(6_440, 6_600), frozenset({16})),
    ("unionpay", range(6_200, 6_300), frozenset({16, 17, 18, 19})),
    ("Korean issuers", range(9_400, 9_600), frozenset({16})),
)
"""Issuers of cards: the first four digits, and the lengths of their numbers."""
_CARD_GROUPS = frozenset({(4, 4, 4, 4), (4, 6, 5), (4, 6, 4), (4, 4, 4, 4, 3)})
_LAND_AREAS = frozenset({"2", *"31 32 33 41 42 43 44 51 52 53 54 55 61 62 63 64 70 80 50".split()})


def is_luhn(digits: str) -> bool:
    """Whether the last digit is the check digit of the Luhn formula (ISO/IEC 7812)."""
    doubled = sum(sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (doubled + sum(map(int, digits[-1::-2]))) % 10 == 0


def is_iban(value: str) -> bool:
    """Whether the check digits of an IBAN are right (ISO 13616: modulo 97)."""
    plain = value.replace(" ", "").upper()
    return 15 <= len(plain) <= 34 and int("".join(str(int(sign, 36)) for sign in plain[4:] + plain[:4])) % 97 == 1


def birth_date(digits: str) -> date | None:
    """The date of a resident number, whose seventh digit tells the century; None for an impossible one."""
    century = {"1": 1900, "2": 1900, "5": 1900, "6": 1900}.get(digits[6], 2000)
    try:
        return date(century + int(digits[:2]), int(digits[2:4]), int(digits[4:6]))
    except ValueError:
        return None


def has_check_digit(digits: str) -> bool:
    """Whether the last digit is that of resident numbers, or of foreigners' numbers, before October 2020."""
    weighted = sum(
        int(digit) * weight for digit, weight in zip(digits, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5), strict=False)
    )
    return int(digits[12]) == ((13 if digits[6] in "5678" else 11) - weighted % 11) % 10


def _is_resident(candidate: NumberMatch) -> bool:
    digits = candidate.digits
    born = birth_date(digits)
    named = candidate.named(_RESIDENT_NAMES)
    if born is None or born > date.today() or named is False:
        return False
    separated = len(candidate.groups) == 2
    return bool(named) or separated or has_check_digit(digits) or born >= _UNCHECKED_SINCE


def _is_card(candidate: NumberMatch) -> bool:
    digits, groups = candidate.digits, candidate.groups
    if len(groups) > 1 and groups not in _CARD_GROUPS:
        return False
    issuer, length = int(digits[:4]), len(digits)
    known = any(issuer in numbers and length in lengths for _, numbers, lengths in _LUHN_LENGTHS)
    return known and is_luhn(digits) and candidate.named(_CARD_NAMES) is not False


def _is_phone(candidate: NumberMatch) -> bool:
    digits, value = candidate.digits, candidate.value
    named = candidate.named(_PHONE_NAMES)
    if named is False:
        return False
    if value.startswith("+") and not digits.startswith("82"):
        return 8 <= len(digits) <= 15
    national = digits.removeprefix("82") if value.startswith(("+", "8")) else digits
    national = national.removeprefix("0")
    if not value.startswith(("+", "8", "0", "(0")):  # without a country: only where it is called a phone
        return bool(named)
    if national.startswith("1"):
        return len(national) == 10 or (national[1] != "0" and len(national) == 9)
    area = next((national[:size] for size in (1, 2) if national[:size] in _LAND_AREAS), "")
    exchange = national[len(area) + (area == "50") :]
    if not area or not 7 <= len(exchange) <= 8 or (area not in {"70", "50"} and exchange[0] in "01"):
        return False
    return len(candidate.groups) > 1 or bool(named)


def _is_account(candidate: NumberMatch) -> bool:
    value, digits = candidate.value, candidate.digits
    if value[0].isalpha():
        return is_iban(value)
    named = candidate.named(_ACCOUNT_NAMES)
    if named is False or len(digits) not in _ACCOUNT_DIGITS:
        return False
    around = f"{candidate.before()}\0{candidate.after()}"
    formats = [formats for names, formats in _BANKS if names.search(around)]
    groups = candidate.groups
    if len(groups) == 1:
        return bool(named) or any(
            len(digits) in {sum(map(int, each.split("-"))) for each in known} for known in formats
        )
    return bool(named) or any("-".join(map(str, groups)) in known for known in formats)


def _is_passport(candidate: NumberMatch) -> bool:
    if candidate.value.isdigit():
        return _PASSPORT_NUMBER.search(candidate.before()) is not None
    return bool(candidate.named(_PASSPORT_NAMES))


def _is_licence(candidate: NumberMatch) -> bool:
    named, digits = candidate.named(_LICENCE_NAMES), candidate.digits
    region = 11 <= int(digits[:2]) <= 28
    return named is not False and region and (bool(named) or len(candidate.groups) == 4)


def _is_email(candidate: NumberMatch) -> bool:
    return not candidate.value.startswith("git@") and ".." not in candidate.value


_SPACE = r"[-‐-―−－.\u00a0 ]"
_RESIDENT = explained(
    rf"{_LEFT}(?:\d{{6}}\s?{_DASH}\s?|\d{{6}})[1-8]\d{{6}}{_RIGHT}",
    finds=("900101-1234568", "주민번호9001011234568은", "900101 – 1234567"),
    refuses=("900101-9234567", "1900101-1234567", "900101-12345678", "20240315-1234567"),
)
_RESIDENT_KINDS = ("1234", "5678")
_PHONE = explained(
    rf"{_LEFT}(?:"
    rf"(?:\+82|82(?={_SPACE}))(?:{_SPACE}|\(0\)|[()]){{0,3}}0?\d{{1,3}}(?:{_SPACE}|\)){{0,2}}\d{{3,4}}{_SPACE}?\d{{4}}"
    rf"|\+[1-9](?:(?:{_SPACE}|[()]){{0,2}}\d){{6,14}}"
    rf"|(?:\(0\d{{1,3}}\)|0\d{{1,3}}\)?){_SPACE}{{0,2}}\d{{3,4}}{_SPACE}?\d{{4}}"
    rf"|(?:\([2-9]\d{{2}}\)|[2-9]\d{{2}}){_SPACE}[2-9]\d{{2}}{_SPACE}\d{{4}}"
    rf"){_RIGHT}",
    finds=("010-1234-5678", "(02) 880-5114", "+82-10-1234-5678", "+44 20 7946 0958", "82-10-1234-5678", "02)880-5114"),
    refuses=("1010-1234-5678", "010-1234-56789", "3.010-1234-5678", "교무-010-2024-0001", "0.0212345678"),
)
_CARD = explained(
    rf"{_LEFT}(?:\d{{4}}([ \-‐-―])\d{{4}}\1\d{{4}}\1\d{{4}}(?:\1\d{{3}})?"
    rf"|\d{{4}}[ \-‐-―]\d{{6}}[ \-‐-―]\d{{4,5}}|\d{{13,19}}){_RIGHT}",
    finds=("4111-1111-1111-1111", "4111111111111111", "3782 822463 10005"),
    refuses=("4111-1111-1111", "41111111111111111111", "4111-1111 1111-1111"),
)
_ACCOUNT = explained(
    rf"{_LEFT}(?:\d{{2,6}}(?:{_DASH}\d{{1,8}}){{1,4}}|\d{{10,14}}"
    rf"|[A-Z]{{2}}\d{{2}}(?: ?[A-Z0-9]{{4}}){{2,7}}(?: ?[A-Z0-9]{{1,4}})?)(?!\s?(?:원|명|건|호|won|KRW)){_RIGHT}",
    finds=("110-123-456789", "12345678901", "DE89 3704 0044 0532 0130 00"),
    refuses=("1234567890원", "A110-123-456789", "제110-123-4567호"),
)
_PASSPORT = explained(
    rf"{_LEFT}(?:[A-Z]{{1,2}}\d{{7,8}}|[A-Z]\d{{3}}[A-Z]\d{{4}}|\d{{9}}){_RIGHT}",
    finds=("M12345678", "M123A4567", "123456789"),
    refuses=("m12345678", "M123456789", "M123AB456"),
)
_LICENCE = explained(
    rf"{_LEFT}(?:\d{{2}}{_DASH}\d{{2}}{_DASH}\d{{6}}{_DASH}\d{{2}}|\d{{12}}){_RIGHT}",
    finds=("11-12-345678-90", "111234567890"),
    refuses=("11-12-34567-90", "1-11-12-345678-90"),
)
_EMAIL = explained(
    r"(?<![A-Za-z0-9._%+@/-])[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}(?:@|\s?[(\[]at[)\]]\s?)"
    r"(?:[A-Za-z0-9][A-Za-z0-9-]{0,62}\.){1,5}[A-Za-z]{2,24}(?![A-Za-z0-9@-])(?!\.[A-Za-z0-9])",
    finds=("haneul.kim@snu.ac.kr", "a+b@example.org.", "kim[at]example.com"),
    refuses=("user@localhost", "package@1.2.3", "@decorator", "a@b"),
)


def _resident_of(sexes: str) -> Callable[[NumberMatch], bool]:
    return lambda candidate: candidate.digits[6] in sexes and _is_resident(candidate)


KINDS: tuple[Kind, ...] = (
    Kind(
        "email",
        "email",
        _EMAIL,
        _is_email,
        ("문의: kim@univ.ac.kr.",),
        ("git@github.com:example/project.git", "npm i @scope/pkg@2.0.1"),
    ),
    Kind(
        "resident",
        "resident",
        _RESIDENT,
        _resident_of("1234"),
        ("홍길동 900101-1234567", "9001011234568", "아동 2203154567890"),
        ("900101-5234567", "901301-1234567", "주문번호 240315-1234567", "법인등록번호 110111-1234567", "9788936434267"),
    ),
    Kind(
        "foreigner",
        "foreigner",
        _RESIDENT,
        _resident_of("5678"),
        ("외국인등록번호 880720-5123456", "ARC 990505-6789012"),
        ("880720-1123456", "880230-5123456"),
    ),
    Kind(
        "card",
        "card",
        _CARD,
        _is_card,
        ("4111 1111 1111 1111", "카드 3782 822463 10005", "5555555555554444"),
        ("4111 1111 1111 1112", "거래번호 4539578763621486", "1234567890123452"),
    ),
    Kind(
        "phone",
        "phone",
        _PHONE,
        _is_phone,
        ("010-1234-5678", "01012345678", "031.219.3114", "+82 2 880 5114", "070-8765-4321", "tel 0222200114"),
        ("010-123-4567", "099-123-4567", "0222200114", "02-1024-5114", "192.168.010.1234", "650-555-0199"),
    ),
    Kind(
        "account",
        "account",
        _ACCOUNT,
        _is_account,
        ("신한 110-123-456789", "우리 1002-345-678901", "계좌번호 11012345678901", "IBAN DE89370400440532013000"),
        (
            "110-123-456789",
            "우리 대학은 1002-345-678901",
            "사업자등록번호 123-45-67890",
            "계좌 개설 2024-01-15",
            "DE88370400440532013000",
        ),
    ),
    Kind(
        "passport",
        "passport",
        _PASSPORT,
        _is_passport,
        ("여권번호 M12345678", "passport M123A4567", "Passport No. 123456789"),
        ("serial M12345678", "여권은 2024년"),
    ),
    Kind(
        "licence",
        "licence",
        _LICENCE,
        _is_licence,
        ("11-12-345678-90", "면허번호 111234567890"),
        ("31-12-345678-90", "111234567890"),
    ),
)
"""All kinds; where spans overlap, the first one counts."""

_FULL_WIDTH = re.compile("[！-～]")
_ASCII = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_SPELT_AT = re.compile(r"[(\[]at[)\]]")
_POSSIBLE = re.compile(r"\d(?:[-‐-―−－.\u00a0 ()]{0,3}\d){7}")
"""Without eight digits near one another there is no number to find; most passages have none."""


@dataclass(frozen=True)
class Detector:
    """Finds the personal data of `kinds` in texts; the first kinds take precedence."""

    kinds: tuple[Kind, ...] = KINDS

    def find(self, text: str, context: str = "") -> list[PersonalDatum]:
        """The spans of personal data, ordered and disjoint. `context`: the name of the field that the text is from."""
        if _FULL_WIDTH.search(text):
            text = text.translate(_ASCII)
        spans: list[PersonalDatum] = []
        starts: list[int] = []
        for kind in self._possible(text):
            for match in kind.pattern.finditer(text):
                start, end = match.span()
                place = bisect(starts, start)
                if (place and spans[place - 1].end > start) or (place < len(spans) and starts[place] < end):
                    continue
                if text[start - 1 : start] == "제" and text[end : end + 1] == "호":
                    continue
                if kind.accepts(NumberMatch(text, start, end, context)):
                    spans.insert(place, PersonalDatum(kind.name, start, end))
                    starts.insert(place, start)
        return spans

    def _possible(self, text: str) -> Iterator[Kind]:
        """The kinds of which the text may have data: the patterns of the others cost most of the time."""
        numbers = _POSSIBLE.search(text) is not None
        for kind in self.kinds:
            match kind.name:
                case "email":
                    possible = "@" in text or _SPELT_AT.search(text) is not None
                case "passport":
                    possible = "여권" in text or "passport" in text.lower()
                case _:
                    possible = numbers or kind not in KINDS
            if possible:
                yield kind

    def masked(self, text: str, context: str = "") -> str:
        """The text with personal data masked: of the same length in code points."""
        return self.replaced(text, self.find(text, context))

    def replaced(self, text: str, data: Sequence[PersonalDatum]) -> str:
        """The text with a mask for each span: `[phone██████]`, or only `█` where the label does not fit."""
        if not data:
            return text
        labels = {kind.name: kind.label for kind in self.kinds}
        parts, end = list[str](), 0
        for datum in data:
            parts += [text[end : datum.start], _mask(labels[datum.kind], datum.end - datum.start)]
            end = datum.end
        return "".join([*parts, text[end:]])


def _mask(label: str, length: int) -> str:
    return f"[{label}{FILL * (length - len(label) - 2)}]" if len(label) + 2 < length else FILL * length
