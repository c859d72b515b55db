-- Documents on other nodes.

-- name: move_document
with document as (
    update documents set node_id = :node_id, segment_id = :segment_id where document_id = :document_id
), content as (
    update chunks set node_id = :node_id where document_id = :document_id
), lexical as (
    update lexical_index set node_id = :node_id where document_id = :document_id
), waiting as (
    update waiting_documents set node_id = :node_id where document_id = :document_id
), sentences as (
    update sentence_vectors set node_id = :node_id where document_id = :document_id
), original as (
    update originals set node_id = :node_id where document_id = :document_id
), imagined as (
    update imagined_questions set node_id = :node_id where document_id = :document_id
)
update embeddings set node_id = :node_id where document_id = :document_id

-- name: follow_segment
-- Files hold the vectors with the segment that their document belonged to: those of a moved one are read again.
update embeddings set change = :change where document_id = any (:document_ids)

-- name: lexical_of_document
select terms, length, language from lexical_index where document_id = :document_id
