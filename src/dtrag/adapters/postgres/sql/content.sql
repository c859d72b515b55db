-- Gate 2: text and titles by key, as a role under row-level security.

-- name: passages_in_scope
-- Gate 2 (migrations/0025_passages_in_scope.sql): it sets the scope for its own transaction, and needs no other.
select * from passages_in_scope(:nodes::text, :document_ids::uuid[], :ordinals::int[], :cached::int)

-- name: chunks_before
select k.document_id, k.ordinal, b.ordinal as before, b.start_offset, b.text
from unnest(:document_ids::uuid[], :ordinals::int[]) as k (document_id, ordinal)
join chunks c on c.document_id = k.document_id and c.ordinal = k.ordinal
join chunks b on b.document_id = c.document_id and b.ordinal < c.ordinal and b.ordinal >= c.ordinal - :limit::int
    and b.breadcrumb = c.breadcrumb
order by k.document_id, k.ordinal, b.ordinal desc

-- name: sentence_vectors
-- Those of the texts that were read (their hashes), by one model.
select s.document_id || ':' || s.ordinal as chunk_id, s.vectors
from unnest(:document_ids::uuid[], :ordinals::int[], :hashes::bytea[]) as k (document_id, ordinal, text_hash)
join sentence_vectors s
    on s.document_id = k.document_id and s.ordinal = k.ordinal and s.text_hash = k.text_hash
where s.space = (select v.space from vector_spaces v where v.id = :space)

-- fragment: valid_passages
-- Those of a dated edition. The edition before it has some, too, until the last of the changes has taken effect.
from passage_validity v
where v.document_id = d.document_id and v.valid_from <= :as_of and (v.valid_until is null or v.valid_until > :as_of)

-- fragment: valid
(d.effective_from is null or exists (select 1 {valid_passages}))

-- fragment: listed
-- The text is in the folded column: no function of an expression runs for each row.
{valid}
and (:text::text = '' or strpos(d.search_name, :text::text) > 0)
and (:content_types::text[] is null or d.content_type = any (:content_types::text[]))

-- fragment: page_of_documents
-- A list goes on behind the position (:after_key, :after); the first comparison of each is one that an index answers.
select document_id, title, source_uri, source_path, content_type, node_id, language, chunks, characters, metadata, processed_at,
       effective_from, superseded_from
from documents d
where {listed}

-- name: without_order_index
-- For lists that need most rows anyway: reading them in the order of an index jumps through the table.
set local enable_indexscan = off

-- name: documents_newest
{page_of_documents}
and (:after::uuid is null or (d.processed_at <= :after_key::timestamptz
     and (d.processed_at < :after_key::timestamptz or d.document_id > :after::uuid)))
order by d.processed_at desc, d.document_id
limit :limit offset :offset

-- name: documents_oldest
{page_of_documents}
and (:after::uuid is null or (d.processed_at >= :after_key::timestamptz
     and (d.processed_at > :after_key::timestamptz or d.document_id < :after::uuid)))
order by d.processed_at, d.document_id desc
limit :limit offset :offset

-- name: documents_title
{page_of_documents}
and (:after::uuid is null or (d.sort_title >= :after_key::text
     and (d.sort_title > :after_key::text or d.document_id > :after::uuid)))
order by d.sort_title, d.document_id
limit :limit offset :offset

-- name: documents_largest
{page_of_documents}
and (:after::uuid is null or (d.characters <= :after_key::int
     and (d.characters < :after_key::int or d.document_id > :after::uuid)))
order by d.characters desc, d.document_id
limit :limit offset :offset

-- name: documents_smallest
{page_of_documents}
and (:after::uuid is null or (d.characters >= :after_key::int
     and (d.characters > :after_key::int or d.document_id < :after::uuid)))
order by d.characters, d.document_id desc
limit :limit offset :offset

-- fragment: count_of_documents
select count(*) as documents,
       coalesce(
           sum(case when d.effective_from is null then d.chunks else (select sum(v.last - v.first + 1) {valid_passages}) end), 0
       ) as chunks
from documents d
where {listed}

-- name: document_count
{count_of_documents}

-- name: document_count_in
-- For the owner, whom no policy restricts.
{count_of_documents}
and d.node_id = any (:nodes::int[])

-- name: document
select document_id, title, source_uri, source_path, content_type, node_id, language, chunks, characters, metadata, processed_at,
       {document_text} as text, effective_from, superseded_from
from documents d
where document_id = :document_id

-- name: document_text
-- One statement, so that text and passages are of the same version of the document.
select d.characters, substr({document_text}, :start::int + 1, :end::int - :start::int) as text,
       coalesce((
           select json_agg(json_build_array(c.ordinal, c.start_offset, c.end_offset, c.breadcrumb, c.metadata)
                           order by c.ordinal)
           from chunks c
           where c.document_id = d.document_id and c.start_offset < :end::int and c.end_offset > :start::int
       ), '[]') as passages,
       exists (select 1 from originals o where o.document_id = d.document_id) as original
from documents d
where d.document_id = :document_id

-- name: original
select content from originals where document_id = :document_id

-- name: passage_count
select chunks from documents where document_id = :document_id

-- name: passage_spans
select c.ordinal, c.start_offset, c.end_offset, c.breadcrumb, c.metadata
from chunks c
where c.document_id = :document_id
order by c.document_id, c.ordinal
limit :limit offset :offset

-- name: sample
-- Passages in an order that depends on the seed only.
select c.document_id, c.ordinal
from chunks c
order by hashtextextended(c.document_id::text || c.ordinal::text, :seed), c.document_id, c.ordinal
limit :limit

-- name: ordinals
select ordinal from chunks where document_id = :document_id order by ordinal

-- name: visible
select document_id from documents where document_id = any (:document_ids)

-- name: visible_titles
select document_id, title from documents where document_id = any (:document_ids)

-- name: holds_kind
select exists (select 1 from documents where metadata ->> 'kind' = :kind) as present

-- name: work_beginnings
-- The oldest edition of each work in each category: the editions of one category have a validity of their own. Some of its
-- passages may be valid before its date.
select distinct on (work_id, node_id) title,
       (select least(d.effective_from, min(v.valid_from)) from passage_validity v where v.document_id = d.document_id)
           as first_day
from documents d
where work_id is not null and effective_from is not null
order by work_id, node_id, effective_from
