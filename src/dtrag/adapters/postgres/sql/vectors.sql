-- Making the vectors of the passages, as the owner; `pending` as the searcher, who reads no text.
-- :languages and :spaces are parallel: the space of each language that was assigned, null for no model.

-- fragment: unmade
left join unnest(:languages::text[], :spaces::smallint[]) as w (language, space) on w.language = i.language
left join embeddings e on e.document_id = i.document_id and e.ordinal = i.ordinal
where (w.language is null or e.space is distinct from w.space)

-- name: spaces
select id, space, dim from vector_spaces

-- name: add_space
insert into vector_spaces (space, id, dim)
select coalesce(max(space), 0) + 1, :id, :dim from vector_spaces
returning space

-- name: drop_spaces
delete from vector_spaces

-- name: empty_vectors
truncate embeddings

-- name: all_wait
update documents set embedded = false where embedded

-- name: languages_wait
update documents d set embedded = false
where d.embedded and exists (
    select from lexical_index i where i.document_id = d.document_id and i.language = any (:changed::text[])
)

-- name: questions_wait
update imagined_questions set space = null where space is not null and language = any (:changed::text[])

-- name: empty_questions
update imagined_questions set vec = null, space = null where vec is not null or space is not null

-- name: waiting_languages
select distinct language from imagined_questions where space is null

-- name: waiting_questions
select document_id, text_hash, number, language, question, created_at from imagined_questions
where space is null and language = any (:languages::text[])
order by language, document_id, text_hash, number
limit :limit

-- name: put_questions
update imagined_questions q set vec = v.vec::halfvec, space = v.space
from unnest(:document_ids::uuid[], :hashes::bytea[], :numbers::smallint[], :times::timestamptz[], :vectors::text[],
            :spaces::smallint[]) as v (document_id, text_hash, number, created_at, vec, space)
where q.document_id = v.document_id and q.text_hash = v.text_hash and q.number = v.number
  and q.created_at = v.created_at

-- name: bump_vectors
update index_settings set value = to_jsonb(value::text::bigint + 1) where name = 'vectors'

-- name: waiting_documents
select document_id, processed_at from documents
where not embedded
order by processed_at desc, document_id
limit :limit

-- name: waiting_passages
select p.document_id, p.ordinal, p.language, p.assigned, p.title, c.breadcrumb, c.text
from (
    select i.document_id, i.ordinal, i.language, w.language is not null as assigned, d.title, d.processed_at
    from documents d
    join lexical_index i on i.document_id = d.document_id
    {unmade}
      and d.document_id = any (:document_ids::uuid[])
    order by d.processed_at desc, d.document_id, i.ordinal
    limit :limit
) p
join chunks c on c.document_id = p.document_id and c.ordinal = p.ordinal
order by p.processed_at desc, p.document_id, p.ordinal

-- name: put_vectors
-- A document that was replaced has another time. Its category is that of the moment.
insert into embeddings (document_id, ordinal, node_id, vec, space)
select d.document_id, v.ordinal, d.node_id, v.vec::halfvec, v.space
from unnest(:document_ids::uuid[], :ordinals::int[], :vectors::text[], :spaces::smallint[])
    as v (document_id, ordinal, vec, space)
join unnest(:documents::uuid[], :times::timestamptz[]) as t (document_id, processed_at)
    on t.document_id = v.document_id
join documents d on d.document_id = v.document_id and d.processed_at = t.processed_at
on conflict (document_id, ordinal)
do update set vec = excluded.vec, space = excluded.space, node_id = excluded.node_id

-- name: drop_vectors
delete from embeddings e
using unnest(:document_ids::uuid[], :ordinals::int[]) as v (document_id, ordinal)
where e.document_id = v.document_id and e.ordinal = v.ordinal

-- name: settle
update documents d set embedded = true
from unnest(:documents::uuid[], :times::timestamptz[]) as t (document_id, processed_at)
where d.document_id = t.document_id and d.processed_at = t.processed_at and not d.embedded
  and not exists (select from lexical_index i {unmade} and i.document_id = d.document_id)

-- name: pending
select count(*) as passages
from documents d
join lexical_index i on i.document_id = d.document_id
{unmade}
  and not d.embedded and (:nodes::int[] is null or d.node_id = any (:nodes))
