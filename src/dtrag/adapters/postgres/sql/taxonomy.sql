-- Versions of the category tree, and the documents that change their place with them. As the owner.

-- name: versions
select v.version, v.parent, v.rationale, v.active, v.operations, v.created_by, v.created_at, a.activated_at
from taxonomy_versions v
left join (
    select version, max(activated_at) as activated_at from taxonomy_activations group by version
) a on a.version = v.version
order by v.created_at desc, v.version desc

-- name: version
select version, parent, active, operations from taxonomy_versions where version = :version

-- name: tree
-- Of a version; of the active one when :version is null. A tree without nodes is one row of nulls.
select v.version, t.node_id, t.parent_id, t.name, t.key, t.grade
from taxonomy_versions v left join taxonomy_tree t on t.version = v.version
where case when :version::text is null then v.active else v.version = :version end

-- name: insert_version
insert into taxonomy_versions (version, parent, rationale, active, operations, created_by, created_at)
values (:version, :parent, :rationale, false, :operations, :by, :now)

-- name: insert_nodes
insert into taxonomy_nodes (node_id, created_at)
select node_id, :now from unnest(:node_ids::int[]) as n (node_id)
on conflict (node_id) do nothing

-- name: drop_tree
delete from taxonomy_tree where version = :version

-- name: insert_tree
insert into taxonomy_tree (version, node_id, parent_id, name, key, grade)
select :version, n.node_id, n.parent_id, n.name, n.key, n.grade
from unnest(:node_ids::int[], :parent_ids::int[], :names::text[], :keys::text[], :grades::text[])
    as n (node_id, parent_id, name, key, grade)

-- name: activate
update taxonomy_versions set active = (version = :version) where active or version = :version

-- name: last_activation
select coalesce(max(activation), 0) as activation from taxonomy_activations

-- name: activation_of
select max(activation) as activation from taxonomy_activations where version = :version

-- name: insert_activation
insert into taxonomy_activations (activation, version, previous, kind, activated_by, activated_at, vacated)
values (:activation, :version, :previous, :kind, :by, :now, :vacated)

-- name: insert_moves
insert into taxonomy_moves (activation, document_id, from_node, to_node)
select :activation, document_id, :from_node, :to_node from unnest(:document_ids::uuid[]) as d (document_id)

-- name: moves_after
-- With the present node of each document; deleted documents are left out.
select m.document_id, m.from_node, m.to_node, d.node_id
from taxonomy_moves m join documents d on d.document_id = m.document_id
where m.activation > :activation
order by m.activation desc, m.document_id

-- name: vacated
-- Which activations have emptied nodes, the newest first.
select vacated from taxonomy_activations where vacated <> '{}' order by activation desc

-- name: living
select t.node_id from taxonomy_versions v join taxonomy_tree t on t.version = v.version
where v.active and t.node_id = any (:node_ids)

-- name: documents_on
select document_id, node_id, title from documents where node_id = any (:node_ids) order by document_id

-- name: documents_not_on
select document_id, node_id, title from documents where node_id <> all (:node_ids) order by document_id

-- name: titles_of
select document_id, title from documents where document_id = any (:document_ids)

-- name: counts
select node_id, count(*)::int as documents from documents group by node_id

-- name: passages_on
select document_id, terms from lexical_index where node_id = any (:node_ids)

-- name: examples
select title, node_id from documents
where node_id = any (:node_ids) and document_id <> all (:moved)
order by title, document_id
limit :limit

-- name: keys
select 'key' as kind, name, scope from api_keys
where scope is not null and revoked_at is null and (expires_at is null or expires_at > :now)
order by name

-- name: agents
select 'agent' as kind, name, scope from agents order by name

-- name: move_rows
update documents set node_id = :to_node
where document_id = any (:document_ids) and node_id = :from_node
returning document_id, work_id, repeals

-- name: move_chunks
update chunks set node_id = :to_node where document_id = any (:document_ids)

-- name: move_lexical
update lexical_index set node_id = :to_node where document_id = any (:document_ids)

-- name: move_vectors
update embeddings set node_id = :to_node where document_id = any (:document_ids)

-- name: move_waiting
update waiting_documents set node_id = :to_node where document_id = any (:document_ids)

-- name: move_sentences
update sentence_vectors set node_id = :to_node where document_id = any (:document_ids)

-- name: move_originals
update originals set node_id = :to_node where document_id = any (:document_ids)

-- name: move_imagined
update imagined_questions set node_id = :to_node where document_id = any (:document_ids)

-- name: counted_segments
select segment_id from lexical_segments where counted order by segment_id

-- name: head
select documents from lexical_segments where segment_id = :segment_id

-- name: rewrite_head
update lexical_segments set documents = :documents, edition = edition + 1 where segment_id = :segment_id
