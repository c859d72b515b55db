-- Which files the documents came from, and what follows a file that was renamed. As the owner.

-- name: files_below
-- The address of a document is that of its file, with its part behind a "#" (which file names have as %23). A file may only
-- contain editions whose documents belong to others.
select f.source_id, split_part(min(f.source_uri), '#', 1) as source_uri, sum(f.documents)::int as documents,
       coalesce(s.fingerprint, ''::bytea) as fingerprint
from (
    select source_id, source_uri, 1 as documents
    from documents
    where starts_with(source_uri, :prefix) and not retained
    union all
    select source_id, source_uri, 0 from edition_sources where starts_with(source_uri, :prefix)
) f
left join sources s on s.source_id = f.source_id
group by f.source_id, s.fingerprint
order by source_uri

-- name: read_documents_of
select document_id, source_id, source_uri, source_path, title, content_type, node_id, metadata,
       {document_text} as text,
       work_code, work_name, work_id, effective_from, ends_on, article_dates, repeals, retained, personal_data
from documents d
where source_id = :source_id and (:after::uuid is null or document_id > :after)
order by document_id
limit :limit

-- name: copy_vectors
-- The rows of the one document are read before those of the other: in a cluster they may be on different servers.
insert into embeddings (document_id, ordinal, node_id, vec, space, change)
with e as materialized (
    select m.new as document_id, e.ordinal, e.vec, e.space
    from unnest(:old::uuid[], :new::uuid[]) as m (old, new) join embeddings e on e.document_id = m.old
)
select d.document_id, e.ordinal, d.node_id, e.vec, e.space, :change
from e
join documents d on d.document_id = e.document_id
join lexical_index i on i.document_id = e.document_id and i.ordinal = e.ordinal
on conflict (document_id, ordinal) do nothing

-- name: copy_sentences
insert into sentence_vectors (document_id, ordinal, node_id, space, text_hash, vectors)
with s as materialized (
    select m.new as document_id, s.ordinal, s.space, s.text_hash, s.vectors
    from unnest(:old::uuid[], :new::uuid[]) as m (old, new) join sentence_vectors s on s.document_id = m.old
)
select d.document_id, s.ordinal, d.node_id, s.space, s.text_hash, s.vectors
from s
join documents d on d.document_id = s.document_id
join lexical_index i on i.document_id = s.document_id and i.ordinal = s.ordinal
on conflict (document_id, ordinal) do nothing

-- name: copy_originals
insert into originals (document_id, node_id, content)
with o as materialized (
    select m.new as document_id, o.content
    from unnest(:old::uuid[], :new::uuid[]) as m (old, new) join originals o on o.document_id = m.old
)
select d.document_id, d.node_id, o.content from o join documents d on d.document_id = o.document_id
on conflict (document_id) do nothing

-- name: copy_imagined
insert into imagined_questions
    (document_id, text_hash, number, ordinal, node_id, language, question, origin, created_at, terms, vec, space)
with q as materialized (
    select m.new as renamed, q.*
    from unnest(:old::uuid[], :new::uuid[]) as m (old, new) join imagined_questions q on q.document_id = m.old
)
select distinct on (c.document_id, q.text_hash, q.number)
       c.document_id, q.text_hash, q.number, c.ordinal, c.node_id, q.language, q.question, q.origin, q.created_at,
       q.terms, q.vec, q.space
from q
join chunks c on c.document_id = q.renamed and sha256(convert_to(c.text, 'UTF8')) = q.text_hash
order by c.document_id, q.text_hash, q.number, c.ordinal
on conflict (document_id, text_hash, number) do nothing

-- name: drop_signals
-- What was decided about an earlier document of the new address is replaced by what is known of the renamed one.
delete from classification_signals where document_id in (
    select m.new from unnest(:old::uuid[], :new::uuid[]) as m (old, new)
    join classification_signals s on s.document_id = m.old
)

-- name: move_signals
update classification_signals s set document_id = m.new
from unnest(:old::uuid[], :new::uuid[]) as m (old, new) where s.document_id = m.old

-- name: drop_placements
delete from classification_placements where document_id in (
    select m.new from unnest(:old::uuid[], :new::uuid[]) as m (old, new)
    join classification_placements p on p.document_id = m.old
)

-- name: move_placements
update classification_placements p set document_id = m.new
from unnest(:old::uuid[], :new::uuid[]) as m (old, new) where p.document_id = m.old

-- name: move_review_items
update review_queue q set document_id = m.new
from unnest(:old::uuid[], :new::uuid[]) as m (old, new) where q.document_id = m.old
