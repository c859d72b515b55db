-- The regulations of a collection, as a role under row-level security: what a caller may not see is not there.

-- name: versions
select document_id, fingerprint
from documents
where metadata ->> 'kind' = 'regulation'
order by title collate "C", document_id

-- name: regulations
select d.document_id, d.title, d.metadata ->> 'code' as code, d.text,
       (
           select json_agg(
               json_build_array(
                   c.ordinal, c.start_offset, c.end_offset, c.metadata ->> 'kind', c.metadata ->> 'article',
                   c.metadata ->> 'article_title', coalesce((c.metadata ->> 'occurrence')::int, 1)
               )
               order by c.ordinal
           )
           from chunks c
           where c.document_id = d.document_id
       ) as pieces
from documents d
where d.document_id = any (:document_ids::uuid[]) and d.metadata ->> 'kind' = 'regulation'
order by d.title collate "C", d.document_id
