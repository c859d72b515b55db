-- Editions of works: which passages are valid when. As the owner.

-- name: works
-- The editions of each work with one of these codes and names ("" for no code) in each category, the newest first.
select work_id, work_code, work_name, node_id,
       (array_agg(source_id order by effective_from desc))[1] as source_id,
       array_agg(document_id order by effective_from desc) as document_ids,
       array_agg(effective_from order by effective_from desc) as days
from documents
where work_id is not null
  and (work_code, work_name) in (select * from unnest(:codes::text[], :names::text[]))
group by work_id, work_code, work_name, node_id
order by work_id, node_id

-- name: editions_of_source
select distinct on (source_uri) source_uri, work_code, work_name, effective_from
from documents
where source_id = :source_id and work_id is not null and not retained
order by source_uri, effective_from desc

-- name: editions
select document_id, node_id, work_name, effective_from, article_dates, least(ends_on, followed_on) as ends_on
from documents
where work_id = :work_id
order by effective_from

-- name: passages
select document_id, metadata ->> 'kind' as kind, metadata ->> 'article' as label
from chunks
where document_id = any (:document_ids)
order by document_id, ordinal

-- name: repealed_on
select distinct effective_from as day
from documents
where repeals @> array[:name]::text[] and node_id = :node_id and work_id <> :work_id

-- name: repealed_works
-- The works in the same category that a regulation repeals.
select distinct work_id
from documents
where work_name = any (:names::text[]) and node_id = :node_id and work_id is not null

-- name: forget_validity
delete from passage_validity where document_id = any (:document_ids)

-- name: add_validity
insert into passage_validity (document_id, first, last, valid_from, valid_until)
select * from unnest(:document_ids::uuid[], :first::int[], :last::int[], :starts::date[], :ends::date[])

-- name: set_superseded
update documents d set superseded_from = m.day
from unnest(:document_ids::uuid[], :days::date[]) as m (document_id, day)
where d.document_id = m.document_id and d.superseded_from is distinct from m.day

-- name: end_before
-- A later edition was removed because its file is gone: the earlier ones do not become valid again, but for one that the
-- same file contains now, with a corrected date.
update documents set followed_on = least(followed_on, :day)
where work_id = :work_id and node_id = :node_id and effective_from < :day
  and (retained or source_id <> :source_id)

-- name: stay_followed
-- The text was read again.
update documents set followed_on = :day where document_id = :document_id

-- name: mark_retained
update documents set retained = :retained where document_id = any (:document_ids) and retained <> :retained

-- name: retained_below
select document_id from documents where retained and starts_with(source_uri, :prefix) order by document_id

-- name: list_source
insert into edition_sources (document_id, source_id, source_uri, source_path, listed_at)
values (:document_id, :source_id, :source_uri, :source_path, :now)
on conflict (document_id, source_id) do update
set source_uri = excluded.source_uri, source_path = excluded.source_path, listed_at = excluded.listed_at

-- name: listed_editions
select document_id from edition_sources where source_id = :source_id

-- name: unlist_source
delete from edition_sources where source_id = :source_id and document_id = any (:document_ids)

-- name: shared_editions
-- The editions of a source that others contain, too, each with the one of them that was read last.
select distinct on (other.document_id) other.document_id, other.source_id, other.source_uri, other.source_path
from edition_sources own
join edition_sources other on other.document_id = own.document_id and other.source_id <> own.source_id
where own.source_id = :source_id
order by other.document_id, other.listed_at desc, other.source_id

-- name: read_again
update sources set fingerprint = '' where source_id = any (:source_ids::uuid[])

-- name: hand_over
update documents d
set source_id = h.source_id, source_uri = h.source_uri, source_path = h.source_path, retained = false
from unnest(:document_ids::uuid[], :source_ids::uuid[], :source_uris::text[], :source_paths::text[])
    as h (document_id, source_id, source_uri, source_path)
where d.document_id = h.document_id

-- name: contains_others
-- Whether the source contains an edition whose document belongs to another one.
select exists (
    select 1 from edition_sources e
    join documents d on d.document_id = e.document_id
    where e.source_id = :source_id and d.source_id <> :source_id
) as present

-- name: forget_sources
delete from sources where source_id in (select source_id from edition_sources where document_id = :document_id)

-- name: forget_edition
delete from edition_sources where document_id = :document_id
