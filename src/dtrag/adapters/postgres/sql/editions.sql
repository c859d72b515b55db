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
