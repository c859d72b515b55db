-- One change of many documents, as the owner; the store compares them with the scope of the caller.

-- name: selected
select document_id, title, source_id, node_id, chunks, fingerprint
from documents where document_id = any (:document_ids)
order by document_id

-- name: of_synced_sources
select source_id from source_items where source_id = any (:source_ids)

-- name: cases_citing
select count(*)::int as number from cbr_cases where document_ids && :document_ids::uuid[]

-- name: conversations_about
select count(*)::int as number from (
    select distinct owner, conversation_id from conversation_turns where document_ids && :document_ids::uuid[]
) as affected

-- name: lock_waiting
-- Before any document is locked: a reviewer who decides holds the item first, too.
select item_id from review_queue
where document_id = any (:document_ids) and status = 'waiting'
order by item_id
for update

-- name: settle_waiting
update review_queue
set status = 'corrected', decided_at = :at, decided_by = :by
where document_id = any (:document_ids) and status = 'waiting'
