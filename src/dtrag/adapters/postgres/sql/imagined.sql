-- Imagined questions: passages and their questions as the reader, under row-level security; changes as the owner.
-- {filters}: conditions of filters.sql.

-- fragment: hash
sha256(convert_to(i.text, 'UTF8'))

-- name: without
-- Passages without questions, of which one of each text of a document.
select i.document_id, i.ordinal, i.text, i.breadcrumb, i.metadata, d.title, d.source_uri, d.language,
       d.metadata as document_metadata, array[]::text[] as questions, '' as origin
from chunks i join documents d on d.document_id = i.document_id
where (i.document_id, i.ordinal) > (:document_id::uuid, :ordinal::int)
  and not exists (select 1 from imagined_questions q where q.document_id = i.document_id and q.text_hash = {hash})
  {filters}
order by i.document_id, i.ordinal
limit :limit

-- name: with
select i.document_id, i.ordinal, i.text, i.breadcrumb, i.metadata, d.title, d.source_uri, d.language,
       d.metadata as document_metadata, q.questions, q.origin
from (
    select document_id, ordinal, array_agg(question order by number) as questions, min(origin) as origin
    from imagined_questions
    where (document_id, ordinal) > (:document_id::uuid, :ordinal::int)
    group by document_id, ordinal
    order by document_id, ordinal
    limit :limit
) q
join chunks i on i.document_id = q.document_id and i.ordinal = q.ordinal
join documents d on d.document_id = i.document_id
order by i.document_id, i.ordinal

-- name: all
select i.document_id, i.ordinal, i.text, i.breadcrumb, i.metadata, d.title, d.source_uri, d.language,
       d.metadata as document_metadata, array[]::text[] as questions, '' as origin
from chunks i join documents d on d.document_id = i.document_id
where (i.document_id, i.ordinal) > (:document_id::uuid, :ordinal::int) {filters}
order by i.document_id, i.ordinal
limit :limit

-- name: counts
select q.questions, q.passages, m.missing, m.characters
from (select coalesce(sum(p.questions), 0)::bigint as questions, count(*) as passages
      from (select count(*) as questions from imagined_questions group by document_id, ordinal) p) q,
     (select count(*) as missing, coalesce(sum(length(i.text)), 0)::bigint as characters from chunks i
      where not exists (select 1 from imagined_questions q where q.document_id = i.document_id and q.text_hash = {hash})
      {filters}) m

-- name: forget
-- The questions of passages that get new ones.
delete from imagined_questions q
using unnest(:document_ids::uuid[], :hashes::bytea[]) as k (document_id, text_hash)
where q.document_id = k.document_id and q.text_hash = k.text_hash
  and (:nodes::int[] is null or q.node_id = any (:nodes))

-- name: put
-- Only of passages that exist with this text, in the categories :nodes (null: all).
insert into imagined_questions (document_id, text_hash, number, ordinal, node_id, language, question, origin, created_at, terms)
select i.document_id, k.text_hash, k.number, i.ordinal, i.node_id, k.language, k.question, :origin, :now, k.terms::int[]
from unnest(:document_ids::uuid[], :ordinals::int[], :hashes::bytea[], :numbers::smallint[], :languages::text[],
            :questions::text[], :terms::text[])
    as k (document_id, ordinal, text_hash, number, language, question, terms)
join chunks i on i.document_id = k.document_id and i.ordinal = k.ordinal and {hash} = k.text_hash
where :nodes::int[] is null or i.node_id = any (:nodes)
on conflict (document_id, text_hash, number) do nothing

-- name: drop
delete from imagined_questions
where (:nodes::int[] is null or node_id = any (:nodes))
  and (:document_ids::uuid[] is null or document_id = any (:document_ids))

-- name: texts
select document_id || ':' || ordinal as chunk_id, array_agg(question order by number) as questions
from imagined_questions
where (document_id, ordinal) in (
    select * from unnest(:document_ids::uuid[], :ordinals::int[])
)
group by document_id, ordinal

-- name: follow_texts
-- After a document was replaced: its questions follow their texts.
update imagined_questions q set ordinal = c.ordinal, node_id = c.node_id
from (
    select distinct on (1) {hash} as text_hash, i.ordinal, i.node_id
    from chunks i
    where i.document_id = :document_id
      and exists (select 1 from imagined_questions where document_id = :document_id)
    order by 1, i.ordinal
) c
where q.document_id = :document_id and q.text_hash = c.text_hash

-- name: erase_without_text
-- After a document was replaced or deleted: the questions whose text it does not contain.
delete from imagined_questions q
where q.document_id = :document_id and not exists (
    select 1 from chunks i
    where i.document_id = q.document_id and i.ordinal = q.ordinal and {hash} = q.text_hash
)
