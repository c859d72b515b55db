"""Hops in a search: the provisions that the first articles cite are put behind the first places.

`citations_from` reads what the first articles cite, and `cited_mentions` chooses from it with `MultiHopRetriever`,
which holds the rules: at most two hops, no cycle, nothing of little relevance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dtrag.core.access.scope import Scope
from dtrag.core.documents import SearchResult
from dtrag.packs.regulation_ko.citations import citations
from dtrag.packs.regulation_ko.collection import Collection, Source
from dtrag.packs.regulation_ko.hops import MAX_HOPS, MultiHopRetriever
from dtrag.ports import CitedProvision, Index, IndexSnapshot
from dtrag.retrieval.multihop import FIRST_PLACE, MOST, Mention, lexical_shares, vector_shares
from dtrag.retrieval.request import Reach
from dtrag.retrieval.results import Ranking

FOLLOWED = 3
"""Articles of a list of results whose citations are followed."""
MOST_TARGETS = 24
"""Cited provisions of one hop."""
FOLLOWED_KINDS = frozenset({"article", "appendix"})


async def citations_from(
    index: Index, collection: Collection, best: Sequence[SearchResult], snapshot: IndexSnapshot, caller: Scope
) -> list[CitedProvision]:
    """What the first of `best` cite, and what that cites; those at the first places already are left out."""
    first = [source for result in best[:FIRST_PLACE] if (source := collection.source_at(result.chunk_id)) is not None]
    seen = {source.name for source in first}
    frontier = first[:FOLLOWED]
    cited: list[CitedProvision] = []
    for _ in range(MAX_HOPS):
        texts = await _texts(index, frontier, snapshot, caller)
        reached: dict[str, Source] = {}
        for source in frontier:
            for target in _targets(collection, source, texts[source.name]):
                if target.name in seen or (len(reached) >= MOST_TARGETS and target.name not in reached):
                    continue
                reached[target.name] = target
                cited.append(CitedProvision(target.name, source.name, _chunk_ids(target)))
        frontier = list(reached.values())
        seen |= set(reached)
        if not frontier:
            break
    return cited


async def cited_mentions(
    index: Index,
    reach: Reach,
    ranking: Ranking,
    best: Sequence[SearchResult],
    cited: Sequence[CitedProvision],
    *,
    weights: tuple[float, float],
) -> list[Mention]:
    """The best passages of the cited provisions, the more relevant to the query first.

    The relevance is the score by words and meaning as a share of the highest at the first places. A passage that is
    among `best` already stands for its provision.
    """
    passages = list(dict.fromkeys(key for provision in cited for key in provision.chunk_ids))
    highest = max((_mixed(weights, found.bm25_score, found.vector_score) for found in best[:FIRST_PLACE]), default=0.0)
    if not passages or highest <= 0:
        return []
    lexical = await lexical_shares(index, reach, ranking.lexical, passages)
    vector = await vector_shares(index, reach, ranking.vector, passages)
    scores = {key: _mixed(weights, share, vector.get(key, 0.0)) / highest for key, share in lexical.items()}
    present = {result.chunk_id for result in best}
    pieces = {provision.name: [key for key in provision.chunk_ids if key in scores] for provision in cited}
    graph = _Graph(cited, {name: max((scores[key] for key in keys), default=0.0) for name, keys in pieces.items()})
    found = MultiHopRetriever(graph, graph, cited=graph.cited).retrieve("", graph.initial())
    mentions = []
    for hop in sorted(found.hops, key=lambda hop: (-hop.relevance, hop.chunk_id))[:MOST]:
        chosen = max(pieces[hop.chunk_id], key=lambda key: (key in present, scores[key], key))
        mentions.append(Mention(chosen, lexical[chosen], vector.get(chosen, 0.0), hop.source_id, "cited_by"))
    return mentions


class _Graph:
    """Citations that were read, as the stores of a `MultiHopRetriever`: the ids are names (`학칙 제21조`)."""

    def __init__(self, cited: Sequence[CitedProvision], relevance: Mapping[str, float]) -> None:
        self._targets: dict[str, list[str]] = {}
        for provision in cited:
            self._targets.setdefault(provision.source, []).append(provision.name)
        self._relevance = relevance

    def initial(self) -> list[str]:
        return [name for name in self._targets if name not in self._relevance]

    def get(self, chunk_id: str) -> str:
        return chunk_id

    def cited(self, text: str) -> Sequence[str]:
        return self._targets.get(text, ())

    def resolve(self, citation: str, source_id: str) -> str:
        return citation

    def similarity(self, query: str, ids: Sequence[str]) -> Mapping[str, float]:
        return {name: self._relevance[name] for name in ids}


def _mixed(weights: tuple[float, float], lexical: float, vector: float) -> float:
    return weights[0] * lexical + weights[1] * vector


async def _texts(index: Index, sources: Sequence[Source], snapshot: IndexSnapshot, caller: Scope) -> dict[str, str]:
    """Name -> text of the provision, "" for one that is not there any more."""
    passages = await index.fetch([key for source in sources for key in _chunk_ids(source)], caller, snapshot.taxonomy)
    return {
        source.name: "\n".join(passages[key].text for key in _chunk_ids(source) if key in passages)
        for source in sources
    }


def _targets(collection: Collection, source: Source, text: str) -> Iterator[Source]:
    """The articles and appendices that the text cites, each as often as it does."""
    label = source.provisions[0].label
    for citation in citations(text, source.regulation.outline, label, collection.catalog):
        for name in citation.targets:
            target = collection.source(name)
            if target is not None and target.provisions[0].kind in FOLLOWED_KINDS and target.name != source.name:
                yield target


def _chunk_ids(source: Source) -> tuple[str, ...]:
    return tuple(
        f"{source.regulation.document_id}:{ordinal}"
        for provision in source.provisions
        for ordinal in range(provision.first, provision.last + 1)
    )
