-- Everything that changes the index, as the owner. One document = one transaction; times are passed in.

-- name: bump_generation
update index_settings set value = to_jsonb(value::text::bigint + 1) where name = 'generation'

-- name: insert_node
insert into taxonomy_nodes (node_id, created_at) values (:node_id, :now)

-- name: place_node
insert into taxonomy_tree (version, node_id, parent_id, name, key) values (:version, :node_id, :parent_id, :name, :key)

-- name: last_node
select max(node_id) as node_id from taxonomy_nodes

-- name: fingerprints
select document_id, fingerprint from documents where document_id = any (:document_ids)

-- name: source
select fingerprint, documents from sources where source_id = :source_id

-- name: set_source
insert into sources (source_id, source_uri, fingerprint, documents, completed_at)
values (:source_id, :source_uri, :fingerprint, :documents, :now)
on conflict (source_id) do update
set fingerprint = excluded.fingerprint, documents = excluded.documents, completed_at = excluded.completed_at

-- name: forget_source
delete from sources where source_id = :source_id

-- name: documents_of_source
select document_id, node_id, superseded_from, retained
from documents where source_id = :source_id order by document_id limit :limit

-- name: source_reaches_out
select exists (
    select 1 from documents where source_id = :source_id and node_id <> all (:nodes::int[])
) as found

-- name: decided_elsewhere
select d.document_id, s.node_id
from classification_signals s join documents d on d.document_id = s.document_id
where s.document_id = any (:document_ids) and s.decided_at >= :since and s.node_id <> d.node_id

-- name: delete_document
delete from documents where document_id = :document_id

-- name: lock_document
-- For a deletion in a scope: the row must be visible to the caller.
select node_id from documents where document_id = :document_id for update

-- name: documents_of_segment
select document_id from documents where document_id = any (:document_ids) and segment_id = :segment_id

-- name: write
-- Documents and passages, or more passages of a long document.
with document as (
    insert into documents (document_id, source_id, source_uri, title, content_type, language, node_id, metadata, text,
                           chunks, characters, fingerprint, segment_id, processed_at, source_path, search_name, sort_title, personal_data, work_code, work_name,
                           work_id, effective_from, ends_on, article_dates, repeals, retained)
    select document_id, source_id, source_uri, title, content_type, language, node_id, metadata, text,
           chunks, characters, fingerprint, segment_id, processed_at, source_path, search_name, sort_title, personal_data, work_code, work_name,
           work_id, effective_from, ends_on, article_dates, repeals::text[], retained
    from unnest(
        :document_id::uuid[], :source_id::uuid[], :source_uri::text[], :title::text[], :content_type::text[],
        :language::text[], :node_id::int[], :metadata::jsonb[], :text::text[], :chunks::int[], :characters::int[],
        :fingerprint::bytea[], :segment_id::uuid[], :processed_at::timestamptz[], :source_path::text[],
        :search_name::text[], :sort_title::text[], :personal_data::text[], :work_code::text[], :work_name::text[], :work_id::uuid[],
        :effective_from::date[], :ends_on::date[], :article_dates::jsonb[], :repeals::text[], :retained::bool[]
    ) as d (document_id, source_id, source_uri, title, content_type, language, node_id, metadata, text,
            chunks, characters, fingerprint, segment_id, processed_at, source_path, search_name, sort_title, personal_data, work_code, work_name,
            work_id, effective_from, ends_on, article_dates, repeals, retained)
    returning document_id, node_id, processed_at, chunks
), waiting as (
    insert into waiting_documents
    select document_id, node_id, processed_at from document where chunks > 0
), passage as (
    select * from unnest(
        :passage_of::uuid[], :ordinal::int[], :passage_node::int[], :start::int[], :end::int[], :passage::text[],
        :breadcrumb::text[], :facts::jsonb[], :passage_language::text[], :length::int[], :terms::bytea[],
        :frequencies::bytea[]
    ) as p (document_id, ordinal, node_id, start_offset, end_offset, text, breadcrumb, metadata, language, length,
            terms, frequencies)
), content as (
    insert into chunks (document_id, ordinal, node_id, start_offset, end_offset, text, breadcrumb, metadata)
    select document_id, ordinal, node_id, start_offset, end_offset, text, breadcrumb::text[], metadata from passage
)
insert into lexical_index (document_id, ordinal, node_id, language, length, terms, frequencies)
select document_id, ordinal, node_id, language, length, terms, frequencies from passage

-- name: write_original
insert into originals (document_id, node_id, content) values (:document_id, :node_id, :content)

-- name: original
select content from originals where document_id = :document_id

-- name: read_documents
select document_id, source_id, source_uri, source_path, title, content_type, node_id, metadata,
       {document_text} as text,
       work_code, work_name, work_id, effective_from, ends_on, article_dates, repeals, retained, personal_data
from documents d
where :after::uuid is null or document_id > :after
order by document_id
limit :limit

-- name: read_chunks
select document_id, ordinal, start_offset, end_offset, text, breadcrumb, metadata
from chunks
where document_id = any (:document_ids)
order by document_id, ordinal

-- name: delete_lexical
delete from lexical_index where document_id = :document_id returning terms, length, language

-- name: origin
select document_id, segment_id, node_id, source_id, work_id, effective_from, repeals, followed_on from documents where document_id = :document_id

-- name: counted_segment
-- Whether the segment holds its documents yet; no row if it was merged. The lock holds off the counting.
select counted from lexical_segments where segment_id = :segment_id for share

-- name: lock_uncounted_segment
select segment_id from lexical_segments where segment_id = :segment_id and not counted for update

-- name: open_segment
insert into lexical_segments (segment_id, counted, created_at) values (:segment_id, false, :now)

-- name: count_segment
update lexical_segments
set counted = true, passages = :passages, languages = :languages, documents = :documents, chunks = :chunks,
    term_ids = :term_ids, frequencies = :frequencies
where segment_id = :segment_id

-- name: add_correction
insert into lexical_corrections
    (correction_id, created_at, document_ids, origins, passages, lengths, term_ids, frequencies)
values (:correction_id, :created_at, :document_ids, :origins, :passages, :lengths, :term_ids, :frequencies)

-- name: drop_corrections
delete from lexical_corrections where correction_id = any (:correction_ids)

-- name: drop_segments
delete from lexical_segments where segment_id = any (:segment_ids)

-- name: uncounted_segments
select segment_id from lexical_segments where not counted

-- name: lexical_of_segment
select i.document_id, d.title, i.node_id, i.language, i.length, i.terms, i.frequencies
from lexical_index i join documents d on d.document_id = i.document_id
where d.segment_id = :segment_id
order by i.document_id, i.ordinal

-- name: vacuum_segments
-- A head is one large row; those that were merged away would take several times the space of the rest.
vacuum (skip_locked) lexical_segments

-- name: clean_pending_lists
select gin_clean_pending_list(i.indexrelid)
from pg_index i
where i.indexrelid in (to_regclass('dtrag.chunks_strict'), to_regclass('dtrag.documents_metadata')) and i.indisvalid

-- name: analyze
analyze documents, chunks, lexical_index, embeddings
