-- Gate 1: keys and scores only, with the caller's scope as an explicit predicate. {filters} takes fragments of FILTERS.

-- name: lexical
select i.document_id, i.ordinal, -(i.weights <#> :weights::sparsevec) as score
from lexical_index i
where i.terms && :terms::int[] {filters}
order by i.weights <#> :weights::sparsevec, i.document_id, i.ordinal
limit :wanted

-- name: strict
-- The scope is taken from the session (set local dtrag.scope).
select i.document_id, i.ordinal, i.score
from strict_candidates(:query, :wanted) i
where true {filters}
order by i.score desc, i.document_id, i.ordinal
limit :wanted

-- name: vector_nearest
-- The sub-select keeps the index (a second sort key would lose it); outside, ties get their order.
select n.document_id, n.ordinal, 1 - n.distance as score
from (
    select i.document_id, i.ordinal, i.vec <=> :vec::halfvec as distance
    from embeddings i
    where true {filters}
    order by i.vec <=> :vec::halfvec
    limit :wanted
) n
order by n.distance, n.document_id, n.ordinal

-- name: vector_exact
-- "+ 0" keeps the planner from the approximate index.
select i.document_id, i.ordinal, 1 - (i.vec <=> :vec::halfvec) as score
from embeddings i
where true {filters}
order by (i.vec <=> :vec::halfvec) + 0, i.document_id, i.ordinal
limit :wanted

-- name: vector_count
-- How many vectors are in reach, up to :wanted.
select count(*) from (select 1 from embeddings i where true {filters} limit :wanted) n

-- name: settings
select name, value from index_settings

-- name: segment_ids
select segment_id from statistics_segments where counted

-- name: segments
select segment_id, chunks, lengths, term_ids, frequencies
from statistics_segments
where counted and segment_id = any (:segment_ids)

-- name: taxonomy
select v.version, t.node_id, t.parent_id, t.name, t.key
from taxonomy_versions v left join taxonomy_tree t on t.version = v.version
where v.active
