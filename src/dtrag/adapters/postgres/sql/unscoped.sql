-- What the database answers its owner, for the isolation test of a live collection.

-- name: documents_of_each_node
select document_id, node_id, title
from (
    select document_id, node_id, title, row_number() over (partition by node_id order by document_id) as place
    from documents
) d
where place <= :per_node
order by document_id

-- name: total
select count(*) as documents from documents

-- name: nodes
select document_id, node_id from documents where document_id = any (:document_ids::uuid[])

-- name: passages
select c.document_id || ':' || c.ordinal as key, c.text
from unnest(:document_ids::uuid[], :ordinals::int[]) as k (document_id, ordinal)
join chunks c on c.document_id = k.document_id and c.ordinal = k.ordinal

-- name: texts
select document_id::text as key, {document_text} as text
from documents d
where document_id = any (:document_ids::uuid[])

-- name: tables_without_policy
-- Tables that a caller's reads rely on to hide rows.
select c.relname as name
from pg_class c
where c.oid = any (array['documents', 'chunks', 'sentence_vectors', 'originals', 'imagined_questions', 'cbr_cases', 'cbr_logs']::regclass[])
  and not (
      c.relrowsecurity
      and exists (select 1 from pg_policy p where p.polrelid = c.oid and 'dtrag_reader'::regrole = any (p.polroles))
  )
order by 1

-- name: rows_under_policy
-- As the reader. The passages are those of some documents of every node: no index counts them by node.
select (select count(*) from documents) as documents,
       (select count(*) from chunks where document_id = any (:document_ids::uuid[])) as chunks,
       (select count(*) from sentence_vectors where document_id = any (:document_ids::uuid[])) as sentence_vectors,
       (select count(*) from originals) as originals,
       (select count(*) from imagined_questions where document_id = any (:document_ids::uuid[])) as imagined_questions,
       (select count(*) from cbr_cases) as cbr_cases,
       (select count(*) from cbr_logs) as cbr_logs

-- name: rows_in_scope
-- As the owner: the conditions of the policies as conditions of the statement.
with readable as (
    select case_id from cbr_cases
    where node_id = any (:nodes::int[]) and asked_in <@ :nodes::int[] and not exists (
        select 1 from unnest(document_ids) as cited (id)
        where not exists (select 1 from documents d where d.document_id = cited.id and d.node_id = any (:nodes::int[]))
    )
)
select (select count(*) from documents where node_id = any (:nodes::int[])) as documents,
       (select count(*) from chunks
        where document_id = any (:document_ids::uuid[]) and node_id = any (:nodes::int[])) as chunks,
       (select count(*) from sentence_vectors
        where document_id = any (:document_ids::uuid[]) and node_id = any (:nodes::int[])) as sentence_vectors,
       (select count(*) from originals where node_id = any (:nodes::int[])) as originals,
       (select count(*) from imagined_questions
        where document_id = any (:document_ids::uuid[]) and node_id = any (:nodes::int[])) as imagined_questions,
       (select count(*) from readable) as cbr_cases,
       (select count(*) from cbr_logs
        where node_id = any (:nodes::int[]) and asked_in <@ :nodes::int[]
          and not exists (
              select 1 from unnest(document_ids) as cited (id)
              where not exists (select 1 from documents d where d.document_id = cited.id and d.node_id = any (:nodes::int[]))
          )
          and not exists (
              select 1 from unnest(case_ids) as named (id)
              where not exists (select 1 from readable r where r.case_id = named.id)
          )) as cbr_logs
