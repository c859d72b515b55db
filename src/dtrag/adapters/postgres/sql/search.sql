-- Gate 1: keys and scores only, with the caller's scope as an explicit predicate. {filters} takes conditions of filters.sql.

-- fragment: in_space
i.space = (select s.space from vector_spaces s where s.id = :space)

-- fragment: passing
-- Joined with rows of passages, on which the conditions are: a cluster filters no rows of a function.
select i.document_id || ':' || i.ordinal as chunk_id, c.score::float8
from candidates c
join lexical_index i on i.document_id = c.document_id and i.ordinal = c.ordinal
where true {filters}
order by c.score desc, i.document_id, i.ordinal
limit :limit

-- name: strict
-- The scope is taken from the session (set local dtrag.scope).
with candidates as materialized (select * from strict_candidates(:query, :limit))
{passing}

-- name: strict_among
with candidates as materialized (
    select * from strict_among(:query, :document_ids::uuid[], :ordinals::int[], :limit)
)
{passing}

-- name: vector_nearest
-- The sub-select keeps the index (a second sort key would lose it); outside, ties get their order.
select n.document_id || ':' || n.ordinal as chunk_id, 1 - n.distance as score
from (
    select i.document_id, i.ordinal, i.vec <=> :vec::halfvec as distance
    from embeddings i
    where {in_space} {filters}
    order by i.vec <=> :vec::halfvec
    limit :limit
) n
order by n.distance, n.document_id, n.ordinal

-- name: vector_exact
-- "+ 0" keeps the planner from the approximate index.
select i.document_id || ':' || i.ordinal as chunk_id, 1 - (i.vec <=> :vec::halfvec) as score
from embeddings i
where {in_space} {filters}
order by (i.vec <=> :vec::halfvec) + 0, i.document_id, i.ordinal
limit :limit

-- name: vector_count
-- How many vectors are in reach, up to :limit.
select count(*) from (select 1 from embeddings i where true {filters} limit :limit) n

-- name: generation
select (select value::text::bigint from index_settings where name = 'generation') as generation,
       coalesce((select value::text::bigint from index_settings where name = 'vectors'), 0) as vectors

-- name: settings
select name, value from index_settings

-- name: waiting_nodes
-- Looked up one by one: the documents that wait may be many.
select n.node_id from taxonomy_nodes n
where n.node_id in (select d.node_id from waiting_documents d where not d.sentences)

-- name: segment_editions
select segment_id, edition from lexical_segments where counted

-- name: segment_sizes
select segment_id, passages from lexical_segments where counted order by passages, segment_id

-- name: segments
select segment_id, languages, documents, chunks, term_ids, frequencies
from lexical_segments
where counted and segment_id = any (:segment_ids)

-- name: correction_ids
select correction_id from lexical_corrections

-- name: corrections
select correction_id, created_at, document_ids, origins, passages, lengths, term_ids, frequencies
from lexical_corrections
where correction_id = any (:correction_ids)

-- name: validity
-- All spans of passages in one value, 32 bytes each (`SENT` in lexical/snapshot.py): thousands of rows take longer.
-- Days are numbers since 1970-01-01; an open end is the largest.
select string_agg(
    uuid_send(document_id) || int4send(first) || int4send(last) || int4send(valid_from - date '1970-01-01')
    || int4send(coalesce(valid_until - date '1970-01-01', 2147483647)), ''::bytea
) as spans
from passage_validity

-- name: terms_of
-- The terms of the passages of these documents, in order, and for each passage 28 bytes: the number of its document,
-- its ordinal, how many terms, and the segment that the document was written with.
select string_agg(n.passage, ''::bytea order by n.number, n.ordinal) as passages,
       string_agg(n.terms, ''::bytea order by n.number, n.ordinal) as terms,
       string_agg(n.frequencies, ''::bytea order by n.number, n.ordinal) as frequencies
from (
    select k.number, i.ordinal, i.terms, i.frequencies,
           int4send(k.number::int) || int4send(i.ordinal) || int4send(length(i.frequencies))
           || uuid_send(d.segment_id) as passage
    from unnest(:document_ids::uuid[]) with ordinality as k (document_id, number)
    join documents d on d.document_id = k.document_id
    join lexical_index i on i.document_id = d.document_id
) n
having count(*) > 0

-- name: documents_with
-- The documents that have the facts, 16 bytes each.
select coalesce(string_agg(uuid_send(i.document_id), ''::bytea), ''::bytea) as ids
from documents i
where true {filters}

-- name: vectors_after
-- The vectors that came after a position until a change, and the segment that each document was written with. Records of equal length,
-- in network order; the order in which they are put together does not matter.
select coalesce(string_agg(n.record, ''::bytea), ''::bytea) as records
from (
    select uuid_send(e.document_id) || uuid_send(d.segment_id) || int4send(e.ordinal) || int4send(e.space)
           || int8send(e.change) || halfvec_send(e.vec) as record
    from embeddings e
    join documents d on d.document_id = e.document_id
    where e.change >= :change and e.change <= :until and (e.change, e.document_id, e.ordinal) > (:change, :document_id, :ordinal)
    order by e.change, e.document_id, e.ordinal
    limit :limit
) n

-- name: origins
-- Which of these documents there are, and the segments that they were written with: 32 bytes each.
select coalesce(string_agg(uuid_send(document_id) || uuid_send(segment_id), ''::bytea), ''::bytea) as ids
from documents
where document_id = any (:document_ids::uuid[])

-- name: vectors_of_chunks
select i.document_id || ':' || i.ordinal as chunk_id, 1 - (i.vec <=> :vec::halfvec) as score
from unnest(:document_ids::uuid[], :ordinals::int[]) as k (document_id, ordinal)
join embeddings i on i.document_id = k.document_id and i.ordinal = k.ordinal
where {in_space} {filters}

-- name: imagined_nodes
select n.node_id from taxonomy_nodes n
where n.node_id in (select q.node_id from imagined_questions q)

-- name: imagined_count
select count(*) from (select 1 from imagined_questions i where true {filters} limit :limit) n

-- name: imagined_nearest
select n.document_id || ':' || n.ordinal as chunk_id, 1 - n.distance as score
from (
    select i.document_id, i.ordinal, i.vec <=> :vec::halfvec as distance
    from imagined_questions i
    where {in_space} {filters}
    order by i.vec <=> :vec::halfvec
    limit :limit
) n
order by n.distance, n.document_id, n.ordinal

-- name: imagined_exact
-- "+ 0" keeps the planner from the approximate index.
select n.document_id || ':' || n.ordinal as chunk_id, 1 - n.distance as score
from (
    select i.document_id, i.ordinal, i.vec <=> :vec::halfvec as distance
    from imagined_questions i
    where {in_space} {filters}
    order by (i.vec <=> :vec::halfvec) + 0, i.document_id, i.ordinal
    limit :limit
) n
order by n.distance, n.document_id, n.ordinal

-- name: imagined_of_chunks
select i.document_id || ':' || i.ordinal as chunk_id, max(1 - (i.vec <=> :vec::halfvec)) as score
from unnest(:document_ids::uuid[], :ordinals::int[]) as k (document_id, ordinal)
join imagined_questions i on i.document_id = k.document_id and i.ordinal = k.ordinal
where {in_space} {filters}
group by i.document_id, i.ordinal

-- name: imagined_by_words
-- The share of the question's terms, by weight, that an imagined question contains.
select i.document_id || ':' || i.ordinal as chunk_id, max((
    select sum(t.weight) from unnest(:terms::int[], :weights::float8[]) as t (term, weight) where t.term = any (i.terms)
)) as score
from imagined_questions i
where i.terms && :terms::int[] {filters}
group by i.document_id, i.ordinal
order by score desc, i.document_id, i.ordinal
limit :limit
