"""A generated library with canaries: every branch has unique words that identify it in a response."""

from __future__ import annotations

import json
import random
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import ClassVar

import numpy as np

from dtrag.core.access.scope import Access, Grant
from dtrag.core.documents import Vector
from dtrag.core.taxonomy.tree import ROOT, CategoryPath, Taxonomy

TOKEN = re.compile(r"zq[a-z]{12}")
"""The form of canaries; no other word of the library has it."""
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
COMMON = tuple("harbour ledger lantern orchard granite violin meadow copper saffron timber 기숙사 장학금".split())
"""Words of every branch: they could match documents anywhere."""
_TOPS = ("ai", "aix", "Ai ops", "학사", "학사행정", "Zone 1", "Zone 10")
"""Names with common prefixes, which a comparison of paths as strings would confuse."""
MENTIONED = 7
"""Every n-th document is mentioned by its title in the next document, which is in another branch."""


def token(chance: random.Random) -> str:
    """A new canary."""
    return "zq" + "".join(chance.choices("bcdfghjklmnprstvwx", k=12))


def tree(nodes: int, chance: random.Random) -> list[tuple[str, ...]]:
    """About `nodes` category paths of up to three levels, parents before children."""
    tops = max(2, nodes // 20)
    paths: list[tuple[str, ...]] = [(_TOPS[n] if n < len(_TOPS) else f"Area {n}",) for n in range(tops)]
    middles = max(tops, nodes // 5 - tops)
    paths += [(*paths[n % tops], f"Field {n // tops}") for n in range(middles)]
    inner = paths[tops:]
    paths += [(*chance.choice(inner), f"Topic {n}") for n in range(max(0, nodes - len(paths)))]
    return paths


def library(paths: Sequence[tuple[str, ...]], documents: int, chance: random.Random) -> Iterator[str]:
    """The documents as JSON lines, distributed evenly over the branches."""
    charter = ""
    for number in range(documents):
        path = paths[number % len(paths)]
        words = " ".join(chance.choices(COMMON, k=14))
        title, mention = f"Dossier {token(chance)}", ""
        if number % MENTIONED == 0:
            title = charter = f"Charter Nimbus {number}"  # mentioned elsewhere, so no canary itself
        elif number % MENTIONED == 1:
            mention = f" See also the {charter} for the rest."
        text = f"The {words} of {token(chance)} opens {' '.join(chance.choices(COMMON, k=6))}.{mention}"
        yield json.dumps(
            {
                "id": f"c{number}",
                "title": title,
                "text": text,
                "category_path": list(path),
                "metadata": {"author": token(chance)},
            },
            ensure_ascii=False,
        )


@dataclass(frozen=True, slots=True)
class Hidden:
    """A document, none of whose contents may be seen outside its branch."""

    document_id: str
    node_id: int
    title: str
    text: str
    author: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller with its granted paths, and the nodes whose documents it may see."""

    name: str
    access: Access
    nodes: frozenset[int]
    paths: tuple[CategoryPath, ...]


@dataclass
class Garden:
    """The documents by branch, and the branch of each canary and each id; `cases` has those of some documents by id."""

    taxonomy: Taxonomy
    hidden: list[Hidden]
    node_of: dict[str, int] = field(default_factory=dict)
    by_node: dict[int, list[Hidden]] = field(default_factory=dict)
    cases: dict[str, str] = field(default_factory=dict)
    attempts: ClassVar[int] = 1
    """How often a request must find a leak: more often where others change the documents meanwhile."""

    def __post_init__(self) -> None:
        for document in self.hidden:
            self.node_of[document.document_id] = document.node_id
            self.by_node.setdefault(document.node_id, []).append(document)
            for word in document.words:
                self.node_of[word] = document.node_id

    def add_case(self, document: Hidden, case_id: str) -> None:
        """Note a case that cites the document and belongs to its branch."""
        self.cases[document.document_id] = case_id
        self.node_of[case_id] = document.node_id

    def count_cases(self, identity: Identity) -> int:
        """The number of cases that the caller may see."""
        return sum(self.node_of[case_id] in identity.nodes for case_id in self.cases.values())

    def foreign(self, identity: Identity, chance: random.Random) -> Hidden:
        """A random document outside the caller's branches; `confined` ensures that there is one."""
        while (document := chance.choice(self.hidden)).node_id in identity.nodes:
            pass
        return document

    def confined(self, callers: Iterable[Identity]) -> list[Identity]:
        """The callers that may not see all documents."""
        return [caller for caller in callers if self.by_node.keys() - caller.nodes]

    def own(self, identity: Identity, chance: random.Random) -> Hidden | None:
        """A random document in the caller's branches, or None."""
        nodes = [node for node in sorted(identity.nodes) if self.by_node.get(node)]
        return chance.choice(self.by_node[chance.choice(nodes)]) if nodes else None

    @property
    def documents(self) -> int:
        """The number of all documents."""
        return len(self.hidden)

    async def count(self, identity: Identity) -> int:
        """The number of documents that the caller may see."""
        return sum(len(self.by_node.get(node, ())) for node in identity.nodes)

    async def altered(self, texts: Mapping[str, str]) -> list[str]:
        """Those of the chunk ids and document ids in a response whose text is not theirs."""
        return []

    async def policy_faults(self, identity: Identity) -> list[str]:
        """What the policies of the database show the caller that it may not see."""
        return []

    async def seen(self, body: str, identity: Identity) -> list[str]:
        """The canaries and ids in a response that the caller may not see."""
        plain = unicodedata.normalize("NFKC", body).casefold()
        words = [*TOKEN.findall(plain), *ID.findall(plain)]
        return [word for word in words if self.node_of.get(word, ROOT) not in {*identity.nodes, ROOT}]


def identities(taxonomy: Taxonomy, paths: Sequence[tuple[str, ...]], count: int, seed: int) -> list[Identity]:
    """Callers restricted to one to three branches of any level; the first one may see no document."""
    chance = random.Random(seed)  # nosec B311  # noqa: S311 - no secret: the same seed gives the same callers
    callers = []
    for number in range(count):
        chosen = chance.sample(list(paths), k=min(len(paths), chance.randint(1, 3))) if number else [("Nowhere", "yet")]
        parsed = tuple(CategoryPath.parse(path) for path in chosen)
        access = Access((Grant.of(parsed, taxonomy),))
        nodes = access.resolved(taxonomy).nodes or frozenset()
        callers.append(Identity(f"canary-{number}", access, nodes, parsed))
    return callers


@dataclass(frozen=True)
class WordHashes:
    """An embedder without a model: hashes words into a few dimensions, so that vector retrieval is tested, too."""

    id: str = "wordhashes@1"
    dim: int = 16
    max_tokens: int = 256
    languages: frozenset[str] = frozenset({"*"})
    floor: float = 0.0
    decides: bool = True

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        """Shape (len(texts), 16), L2-normalised."""
        vectors = np.full((len(texts), self.dim), 0.01, np.float32)
        for row, text in enumerate(texts):
            for word in text.casefold().split():
                digest = blake2b(word.encode("utf-8", "replace"), digest_size=2).digest()
                vectors[row, digest[0] % self.dim] += 1 + digest[1] % 2
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """The same as for documents."""
        return self.embed_documents(texts)
