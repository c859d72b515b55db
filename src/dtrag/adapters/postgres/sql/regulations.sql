-- The regulations of a collection, as a role under row-level security: what a caller may not see is not there.

-- name: versions
-- Of the editions of a work those with valid passages: two where articles of the newer one take effect later. The passages
-- that are valid are part of the version, and so is the time of writing: no version comes back.
select d.document_id,
       d.fingerprint || timestamptz_send(d.processed_at) || coalesce(v.passages, ''::bytea)
           || coalesce(int4send(d.superseded_from - date '1970-01-01'), ''::bytea) as fingerprint
from documents d
left join (
    select document_id, string_agg(int4send(first) || int4send(last), ''::bytea order by first) as passages
    from passage_validity
    where valid_from <= :as_of and (valid_until is null or valid_until > :as_of)
    group by document_id
) v on v.document_id = d.document_id and d.effective_from is not null
where d.metadata ->> 'kind' = 'regulation' and (d.effective_from is null or v.passages is not null)
order by d.title collate "C", coalesce(d.effective_from > :as_of or d.superseded_from <= :as_of, false), d.document_id

-- fragment: regulation
d.document_id, d.title, d.metadata ->> 'code' as code, d.metadata ->> 'book_headings' as headings,
{document_text} as text, d.work_id, d.effective_from, d.superseded_from

-- fragment: pieces
json_agg(
    json_build_array(
        c.ordinal, c.start_offset, c.end_offset, c.metadata ->> 'kind', c.metadata ->> 'article',
        c.metadata ->> 'article_title', coalesce((c.metadata ->> 'occurrence')::int, 1)
    )
    order by c.ordinal
)

-- name: editions
select d.document_id, d.processed_at, d.fingerprint, d.work_id, d.effective_from, d.superseded_from
from documents d
where d.work_id in (select w.work_id from documents w where w.document_id = any (:document_ids::uuid[]))
  and d.metadata ->> 'kind' = 'regulation'
order by d.work_id, d.effective_from

-- name: edition_texts
select {regulation}, d.processed_at, d.fingerprint,
       (select {pieces} from chunks c where c.document_id = d.document_id) as pieces
from documents d
where d.document_id = any (:document_ids::uuid[]) and d.metadata ->> 'kind' = 'regulation'

-- name: regulations
select {regulation},
       (
           select {pieces}
           from chunks c
           where c.document_id = d.document_id and not exists (
               select 1 from passage_validity v
               where v.document_id = c.document_id and c.ordinal between v.first and v.last
                 and (v.valid_from > :as_of or v.valid_until <= :as_of)
           )
       ) as pieces
from documents d
where d.document_id = any (:document_ids::uuid[]) and d.metadata ->> 'kind' = 'regulation'
order by d.title collate "C", d.document_id
