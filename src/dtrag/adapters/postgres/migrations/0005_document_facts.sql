-- Filters and lists of documents by media type and by time: `content_types`, `date_from`, `date_to`, newest first.

create index documents_content_type on documents (content_type);
create index documents_processed_at on documents (processed_at desc, document_id);
