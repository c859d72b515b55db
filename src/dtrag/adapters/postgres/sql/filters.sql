-- Conditions that the scope and the filters of a request become, on a row `i` with document_id and node_id.

-- name: scope
and i.node_id = any (:nodes::int[])

-- name: content_types
and exists (select from documents d where d.document_id = i.document_id and d.content_type = any (:content_types::text[]))

-- name: date_from
and exists (select from documents d where d.document_id = i.document_id and d.processed_at >= :date_from)

-- name: date_to
and exists (select from documents d where d.document_id = i.document_id and d.processed_at <= :date_to)

-- name: metadata
and i.document_id in (select documents_having(:metadata::jsonb))
