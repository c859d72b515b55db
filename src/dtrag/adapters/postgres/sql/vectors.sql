-- Making the vectors of the passages, as the owner; `pending` as the searcher, who reads no text.
-- :languages and :spaces are parallel: the space of each language that was assigned, null for no model. :deciding are the
-- languages whose models decide which sentences answer.

-- fragment: unmade
left join unnest(:languages::text[], :spaces::smallint[]) as w (language, space) on w.language = i.language
left join embeddings e on e.document_id = i.document_id and e.ordinal = i.ordinal
where (w.language is null or e.space is distinct from w.space)

-- fragment: without_sentences
join unnest(:languages::text[], :spaces::smallint[]) as w (language, space) on w.language = i.language
left join sentence_vectors s on s.document_id = i.document_id and s.ordinal = i.ordinal and s.space = w.space
where i.language = any (:deciding::text[]) and s.document_id is null

-- name: spaces
select id, space, dim, decides from vector_spaces

-- name: add_space
insert into vector_spaces (space, id, dim, decides)
select coalesce(max(space), 0) + 1, :id, :dim, :decides from vector_spaces
on conflict (id) do update set decides = excluded.decides

-- name: drop_spaces
delete from vector_spaces

-- name: empty_vectors
truncate embeddings, sentence_vectors

-- name: all_wait
insert into waiting_documents (document_id, node_id, processed_at)
select document_id, node_id, processed_at from documents
on conflict (document_id) do update set sentences = excluded.sentences

-- name: languages_wait
insert into waiting_documents (document_id, node_id, processed_at)
select document_id, node_id, processed_at from documents d
where exists (select 1 from lexical_index i where i.document_id = d.document_id and i.language = any (:changed::text[]))
on conflict (document_id) do update set sentences = excluded.sentences

-- name: drop_sentences
delete from sentence_vectors s using lexical_index i
where i.document_id = s.document_id and i.ordinal = s.ordinal and i.language = any (:changed::text[])

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
-- Locks the number until the transaction ends: changes become visible in the order of their numbers.
update index_settings set value = to_jsonb(value::text::bigint + 1) where name = 'vectors'
returning value::text::bigint as change

-- name: waiting_documents
select document_id, processed_at from waiting_documents
where not sentences
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
insert into embeddings (document_id, ordinal, node_id, vec, space, change)
select d.document_id, v.ordinal, d.node_id, v.vec::halfvec, v.space, :change
from unnest(:document_ids::uuid[], :ordinals::int[], :vectors::text[], :spaces::smallint[])
    as v (document_id, ordinal, vec, space)
join unnest(:documents::uuid[], :times::timestamptz[]) as t (document_id, processed_at)
    on t.document_id = v.document_id
join documents d on d.document_id = v.document_id and d.processed_at = t.processed_at
on conflict (document_id, ordinal)
do update set vec = excluded.vec, space = excluded.space, node_id = excluded.node_id, change = excluded.change

-- name: drop_vectors
delete from embeddings e
using unnest(:document_ids::uuid[], :ordinals::int[]) as v (document_id, ordinal)
where e.document_id = v.document_id and e.ordinal = v.ordinal

-- name: settle
-- Sentences wait for vectors next, where a passage is of a language whose model decides.
with ready as (
    select d.document_id, exists (
        select 1 from lexical_index i where i.document_id = d.document_id and i.language = any (:deciding::text[])
    ) as sentences
    from waiting_documents d
    join unnest(:documents::uuid[], :times::timestamptz[]) as t (document_id, processed_at)
        on t.document_id = d.document_id and t.processed_at = d.processed_at
    where not d.sentences and not exists (select 1 from lexical_index i {unmade} and i.document_id = d.document_id)
), complete as (
    delete from waiting_documents d using ready r where d.document_id = r.document_id and not r.sentences
)
update waiting_documents d set sentences = true from ready r where d.document_id = r.document_id and r.sentences

-- name: pending
select count(*) as passages
from waiting_documents d
join lexical_index i on i.document_id = d.document_id
{unmade}
  and not d.sentences and (:nodes::int[] is null or d.node_id = any (:nodes))

-- name: waiting_sentence_documents
select document_id, processed_at from waiting_documents
where sentences
order by processed_at desc, document_id
limit :limit

-- name: waiting_sentence_passages
select p.document_id, p.ordinal, p.language, c.text
from (
    select i.document_id, i.ordinal, i.language
    from lexical_index i
    {without_sentences}
      and i.document_id = any (:document_ids::uuid[])
    order by i.document_id, i.ordinal
    limit :limit
) p
join chunks c on c.document_id = p.document_id and c.ordinal = p.ordinal
order by p.document_id, p.ordinal

-- name: put_sentences
insert into sentence_vectors (document_id, ordinal, node_id, space, text_hash, vectors)
select d.document_id, v.ordinal, d.node_id, v.space, v.text_hash, v.vectors
from unnest(:document_ids::uuid[], :ordinals::int[], :spaces::smallint[], :hashes::bytea[], :vectors::bytea[])
    as v (document_id, ordinal, space, text_hash, vectors)
join unnest(:documents::uuid[], :times::timestamptz[]) as t (document_id, processed_at)
    on t.document_id = v.document_id
join documents d on d.document_id = v.document_id and d.processed_at = t.processed_at
on conflict (document_id, ordinal)
do update set space = excluded.space, text_hash = excluded.text_hash, vectors = excluded.vectors,
    node_id = excluded.node_id

-- name: settle_sentences
delete from waiting_documents d
using unnest(:documents::uuid[], :times::timestamptz[]) as t (document_id, processed_at)
where d.document_id = t.document_id and d.processed_at = t.processed_at and d.sentences
  and not exists (select 1 from lexical_index i {without_sentences} and i.document_id = d.document_id)
