-- Export of documents. As the owner.

-- name: documents
select document_id as id, title, source_uri as source_url, content_type, language, node_id, metadata, processed_at,
    work_code, work_name, effective_from, superseded_from, {document_text} as text
from documents d order by document_id
