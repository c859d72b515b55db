-- Sources: what is known of their files, and their rights. The first two statements are part of every tree that is read.

-- name: restricted
select node_id, origin, rights from source_nodes

-- name: groups
-- Of the users for whom keys exist, and the groups that could not be read completely.
with held as (select distinct unnest(principals) as name from api_keys where revoked_at is null)
select g.origin, g.principal, g.complete, array(select name from held where name = any (g.users)) as users
from source_groups g
where not g.complete or exists (select from held where name = any (g.users))

-- name: items
select source_id, uri, mark from source_items where origin = :origin

-- name: others_on
-- Documents of these categories that do not come from this source.
select count(*)::int as documents from documents d
where d.node_id = any (:node_ids)
  and d.source_id <> all (array(select source_id from source_items where origin = :origin))

-- name: misplaced
with d as materialized (
    select document_id, source_id, node_id from documents where source_id = any (:source_ids)
)
select d.document_id, w.node_id
from d join unnest(:source_ids::uuid[], :node_ids::int[]) as w (source_id, node_id) on w.source_id = d.source_id
where d.node_id <> w.node_id
order by d.document_id

-- name: restrict
insert into source_nodes (node_id, origin, rights) values (:node_id, :origin, :rights)
on conflict (node_id) do update set origin = excluded.origin, rights = excluded.rights

-- name: groups_of
select principal, users, complete from source_groups where origin = :origin

-- name: drop_groups
delete from source_groups where origin = :origin

-- name: add_group
insert into source_groups (origin, principal, users, complete) values (:origin, :principal, :users, :complete)

-- name: note
insert into source_items (source_id, origin, uri, mark)
select source_id, :origin, uri, mark
from unnest(:source_ids::uuid[], :uris::text[], :marks::text[]) as i (source_id, uri, mark)
on conflict (source_id) do update set origin = excluded.origin, uri = excluded.uri, mark = excluded.mark

-- name: forget
delete from source_items where source_id = any (:source_ids)
