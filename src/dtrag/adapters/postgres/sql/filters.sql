-- Conditions that the scope and the filters of a request become, on a row `i` with document_id and node_id.

-- name: scope
and i.node_id = any (:nodes::int[])

-- name: content_types
and exists (select 1 from documents d where d.document_id = i.document_id and d.content_type = any (:content_types::text[]))

-- name: date_from
and exists (select 1 from documents d where d.document_id = i.document_id and d.processed_at >= :date_from)

-- name: date_to
and exists (select 1 from documents d where d.document_id = i.document_id and d.processed_at <= :date_to)

-- name: metadata
and i.document_id in (select documents_having(:metadata::jsonb))

-- name: valid_on
-- On a row with an ordinal, too; only used while an edition is not valid on that day.
and not exists (
    select 1 from passage_validity v
    where v.document_id = i.document_id and i.ordinal between v.first and v.last
      and (v.valid_from > :as_of or v.valid_until <= :as_of)
)
