"""The documents of the twin worlds: shared ones, and those of one world that no visitor may see."""

from __future__ import annotations

import json
import random
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dtrag.core.access.api_key import Role
from dtrag.core.source_rights import shown
from dtrag.isolation import drive
from dtrag.isolation.regulation_books import EVERYDAY, FORMER_CODE, HIDDEN_BOOK, LEAVE_BOOK, SCHOLARSHIP_BOOK

Path_ = tuple[str, ...]

SHARED: dict[Path_, str] = {
    ("Handbook", "Leave"): "parental leave holiday absence certificate manager calendar weeks notice return",
    ("Handbook", "Pay"): "salary payroll bonus overtime allowance invoice month tax transfer statement",
    ("Kitchen", "Bread"): "flour yeast dough oven crust sourdough loaf baking proof knead",
    ("Kitchen", "Soup"): "broth onion simmer ladle carrot pepper stock bowl lentil thyme",
    ("학사", "휴학"): "휴학 복학 학기 신청 기간 승인 군복무 질병 학적 등록",
    ("학사", "장학"): "장학금 성적 지급 선발 신청 등록금 평점 근로 학기 심사",
}
"""Branches of both worlds, with the words of their documents."""
DRIVE_WORDS = "locker badge corridor parking bicycle printer visitor canteen holiday salary"
"""Words of the documents of a source with rights, some of which are in other branches, too."""
SHARED_BOOKS: dict[Path_, str] = {("학사", "휴학"): LEAVE_BOOK, ("학사", "장학"): SCHOLARSHIP_BOOK}
"""Regulation books of both worlds, which cite regulations that one world hides."""
CATEGORY_WORDS = ("harbour", "lantern", "징계")
"""Words of shared documents that are category names in one world only."""
NONSENSE = ("quagmire", "zephyrine", "쿼그마이어")
"""Words that occur in neither world."""
COMMON = (*"harbour lantern orchard granite violin meadow copper timber contract report".split(), "학교", "징계")
"""Words of documents in every branch, shared and hidden."""
EVERYDAY_SHARE = 0.2
"""Share of queries and questions in everyday words, which the regulation pack explains."""
DISGUISED_SHARE = 0.15
"""Share of words and branches in another spelling."""
FILLED_TOPS = ("Handbook 2", "Handbooks", "Kitch", "학사행정", "학", "Kitchen 1")
"""Names of hidden branches with the beginnings of shared ones, which a comparison of paths as text would confuse."""
UPLOADED = "minutes.md"
"""A file name that visitors upload, and that an administrator uploaded to another branch in one world."""
OWN_WORDS = ((("바스락",), ("소음",)), (("우당탕",), ("소란",)))
"""Entries of the lexicon that one world has: everyday and official words, of no question."""
SERVER_FOLDER = "srv-dtrag-originals"
"""A part of the path of the ingested folder, which no visitor may see."""


@dataclass(frozen=True, slots=True)
class HiddenPart:
    """The hidden part of one world: branches with their words, and the number and length of their documents.

    `books` are regulation books with their branches.
    """

    name: str
    branches: dict[Path_, str]
    per_branch: int
    sentences: int
    titles: tuple[str, ...] = ()
    books: tuple[tuple[Path_, str], ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The words of these documents."""
        return tuple(word for words in self.branches.values() for word in words.split())

    @property
    def own_words(self) -> frozenset[str]:
        """The words that only these documents have."""
        shared = " ".join([*SHARED.values(), *SHARED_BOOKS.values(), *COMMON, *CATEGORY_WORDS, *EVERYDAY])
        return frozenset(word for word in self.words if word not in shared)


ONE = HiddenPart(
    "one",
    {
        ("Handbook", "Board"): "merger acquisition severance zanzibar dividend salary leave parental",
        ("Vault", "Project Bread"): "prototype patent catalyst dough blackbird flour oven",
        ("Harbour",): "quay freighter customs stevedore harbour",
        ("Lantern", "학적"): "wick kerosene lantern 복학 휴학",
        ("학사", "징계"): "징계 정학 제적 위원회 소명 휴학 장학금",
        ("Kitchens",): "flour icing dough marzipan oven",
        ("학사", "휴학생"): "휴학 복학 명부 휴학생 신청",
    },
    per_branch=14,
    sentences=9,
    titles=("Charter Nimbus 0", "Charter Nimbus 1", "Guide to Leave 1"),
    books=((("학사", "징계"), FORMER_CODE), (("학사", "징계"), HIDDEN_BOOK)),
)
OTHER = HiddenPart(
    "other",
    {("Handbook", "Audit"): "inspection ledger voucher", ("Attic",): "cobweb trunk rafters 다락"},
    per_branch=3,
    sentences=1,
)


@dataclass(frozen=True, slots=True)
class Visitor:
    """A caller in both worlds, with the branches of its key, and the users of sources as whom it reads.

    One with the role `public` has no key; its branches are public.
    """

    name: str
    role: Role
    paths: tuple[Path_, ...]
    principals: tuple[str, ...] = ()

    @property
    def words(self) -> list[str]:
        """The words of its branches."""
        branches = (*SHARED.items(), (drive.BRANCH, DRIVE_WORDS))
        return [word for path, words in branches if self.sees(path) for word in words.split()]

    def sees(self, path: Path_) -> bool:
        """Whether the branch is within its own."""
        return any(path[: len(own)] == own for own in self.paths)


VISITORS: tuple[Visitor, ...] = (
    Visitor("leave-reader", "reader", (("Handbook", "Leave"),)),
    Visitor("office-editor", "editor", (("Handbook", "Leave"), ("Handbook", "Pay"))),
    Visitor("kitchen-admin", "admin", (("Kitchen",),)),
    Visitor("haksa-editor", "editor", (("학사", "휴학"), ("학사", "장학"))),
    Visitor("bread-editor", "editor", (("Kitchen", "Bread"), ("학사", "휴학"))),
    Visitor("nowhere-reader", "reader", (("Nowhere", "yet"),)),
    Visitor("drive-editor", "editor", (drive.BRANCH,), (shown(drive.READER),)),
    Visitor("public", "public", (("Handbook", "Leave"), ("학사", "휴학"))),
)
PUBLIC = ",".join("/".join(path) for visitor in VISITORS if visitor.role == "public" for path in visitor.paths)
"""The setting of both worlds."""


_SPELLINGS: tuple[Callable[[str], str], ...] = (
    str.upper,
    str.title,
    lambda text: "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in text),
    lambda text: unicodedata.normalize("NFD", text),
    "\u200b".join,
    lambda text: f'"{text}"',
    lambda text: f"{text[:5]}* {text}",
    lambda text: f"{text}' or '1'='1",
)
"""Other spellings of the same letters, and forms that a parser of queries could misread."""


@dataclass
class Vocabulary:
    """Random words of every kind for the requests of a visitor."""

    visitor: Visitor
    chance: random.Random
    hidden: Sequence[str] = field(default_factory=lambda: (*ONE.words, *OTHER.words))

    def word(self) -> str:
        """A word: hidden in one world, from the visitor's branches, from all branches, or from none."""
        kinds = (self.hidden, self.hidden, self.visitor.words or COMMON, COMMON, NONSENSE, CATEGORY_WORDS)
        return self.disguised(self.chance.choice(self.chance.choice(kinds)))

    def disguised(self, text: str) -> str:
        """The text, sometimes in another spelling."""
        return self.chance.choice(_SPELLINGS)(text) if self.chance.random() < DISGUISED_SHARE else text

    def query(self) -> str:
        """One to four words, or a question in everyday words."""
        if self.chance.random() < EVERYDAY_SHARE:
            return self.chance.choice(EVERYDAY)
        return self.words()

    def words(self) -> str:
        """One to four words."""
        return " ".join(self.word() for _ in range(self.chance.randint(1, 4)))

    def question(self) -> str:
        """A question in one of the two languages, made of words or in everyday words."""
        if self.chance.random() < EVERYDAY_SHARE:
            return self.chance.choice(EVERYDAY)
        form = self.chance.choice(("What is said about {}?", "How many weeks of {}?", "{}", "{}은 언제 신청하나요?"))
        return form.format(self.words())

    def hidden_path(self) -> list[str]:
        """A branch that the visitor may not see: in one world, in both, or in neither."""
        paths = [*ONE.branches, *OTHER.branches, *SHARED, drive.BRANCH, ("Nothing", "here")]
        return list(self.chance.choice([path for path in paths if not self.visitor.sees(path)]))

    def own_path(self) -> list[str]:
        """One of the visitor's branches."""
        return list(self.chance.choice(self.visitor.paths))


def write_shared(folder: Path, chance: random.Random, per_branch: int = 12) -> dict[Path_, Path]:
    """Write the shared documents, a folder for each branch; returns the folders."""
    written = {}
    for number, (path, words) in enumerate(SHARED.items()):
        branch = folder.joinpath(*path)
        branch.mkdir(parents=True)
        for part in range(per_branch):
            title = f"Guide to {path[-1]} {part}"
            body = [_sentence(words.split(), chance) for _ in range(2 + (part + number) % 5)]
            if part == 0:
                body.append(f"See also the Charter Nimbus {number % 2}, and Guide to Leave 1.")
            (branch / f"guide-{part:02}.md").write_text(f"# {title}\n\n{' '.join(body)}\n", "utf-8")
        if path in SHARED_BOOKS:
            (branch / "book.md").write_text(SHARED_BOOKS[path], "utf-8")
        written[path] = branch
    return written


def write_hidden(part: HiddenPart, file: Path, chance: random.Random) -> Path:
    """Write the hidden documents of one world as JSON lines."""
    titles = list(part.titles)
    rows: list[dict[str, object]] = []
    for path, words in part.branches.items():
        for number in range(part.per_branch):
            title = titles.pop() if titles else f"{path[-1]} {number}"
            text = " ".join(_sentence(words.split(), chance) for _ in range(part.sentences))
            rows.append({"id": f"{part.name}{len(rows)}", "title": title, "text": text, "category_path": list(path)})
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return file


def drive_of(part: HiddenPart, chance: random.Random, files: int = 12) -> drive.Drive:
    """The source with rights of one world: the same files for its reader, and those of others, in the part's words."""

    def text(title: str, words: Sequence[str]) -> str:
        return f"# {title}\n\n{' '.join(_sentence(words, chance) for _ in range(3))}\n"

    visible = {
        f"guide-{n:02}.md": (text(f"Office rules {n}", DRIVE_WORDS.split()), drive.VISIBLE) for n in range(files)
    }
    words = [*part.words, *DRIVE_WORDS.split()]
    hidden = {
        f"{part.name}-{number:02}.md": (text(f"Minutes {number}", words), drive.HIDDEN[number % len(drive.HIDDEN)])
        for number in range(part.per_branch)
    }
    return drive.Drive(visible | hidden if part is ONE else hidden | visible)


def write_filling(file: Path, documents: int, categories: int, chance: random.Random) -> Path:
    """Write this many hidden documents of one world, of common words, in this many categories, as JSON lines."""
    with file.open("w", encoding="utf-8") as lines:
        for number in range(documents):
            place = number % categories
            path = [FILLED_TOPS[place % len(FILLED_TOPS)], f"Field {place % 20}", f"Topic {place}"]
            text = f"The {' '.join(chance.choices((*COMMON, *CATEGORY_WORDS), k=20))}."
            row = {"id": f"filling{number}", "title": f"Dossier {number}", "text": text, "category_path": path}
            lines.write(json.dumps(row, ensure_ascii=False) + "\n")
    return file


def pdf_of(text: str) -> bytes:
    """A PDF file with one line of ASCII on its only page."""
    shown = f"BT /F1 12 Tf 60 760 Td ({text}) Tj ET"
    objects = (
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
        " /Resources << /Font << /F1 5 0 R >> >> >>",
        f"<< /Length {len(shown)} >>\nstream\n{shown}\nendstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    )
    file, table = "%PDF-1.7\n", "0000000000 65535 f \n"
    for number, body in enumerate(objects, start=1):
        table += f"{len(file):010} 00000 n \n"
        file += f"{number} 0 obj\n{body}\nendobj\n"
    trailer = f"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n{len(file)}\n%%EOF\n"
    return f"{file}xref\n0 6\n{table}{trailer}".encode("ascii")


def _sentence(words: Sequence[str], chance: random.Random) -> str:
    korean = any(not word.isascii() for word in words[:2])
    own, common = chance.sample(list(words), min(4, len(words))), chance.choice(COMMON)
    if korean:
        return f"{own[0]}은 {common} {' '.join(own[1:])} 기준으로 {chance.randint(1, 9)}회 처리한다."
    return f"The {own[0]} of the {common} needs {' and '.join(own[1:])} within {chance.randint(2, 30)} days."
