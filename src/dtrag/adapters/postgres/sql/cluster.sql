-- A database on a cluster (Citus): what is distributed, and the conversion. {name} marks identifiers and literals that are
-- composed into a statement. Tables of documents are distributed by document; everything else stays on the coordinator.

-- fragment: in_scope
nullif(current_setting('dtrag.full_scope', true), '') = 'on'
or node_id = any (nullif(current_setting('dtrag.scope', true), '')::int[])

-- fragment: asked_in_scope
nullif(current_setting('dtrag.full_scope', true), '') = 'on'
or node_id = any (nullif(current_setting('dtrag.scope', true), '')::int[])
and asked_in <@ nullif(current_setting('dtrag.scope', true), '')::int[]
and dtrag.sees_documents(document_ids)

-- name: server
select current_setting('is_superuser') = 'on' as superuser, current_database() as name,
       (select extversion from pg_extension where extname = 'citus') as citus,
       (select extversion from pg_extension where extname = 'vector') as vector

-- name: nodes
select nodename || ':' || nodeport as address, groupid = 0 as coordinator, isactive as active, shouldhaveshards as holds
from pg_dist_node where noderole = 'primary' order by nodeid

-- name: node_health
-- Every node asked about every other one; null: the node itself cannot be reached.
select from_nodename || ':' || from_nodeport as from_address, to_nodename || ':' || to_nodeport as to_address, result
from citus_check_cluster_node_health()

-- name: others
-- Who else is connected to the database, but for the cluster itself.
select usename as login, coalesce(nullif(application_name, ''), 'a program') as program, pid
from pg_stat_activity
where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
  and application_name not like 'citus%'
order by pid

-- name: distributed
-- Table -> by which column, and with which others its shards lie.
select p.logicalrelid::regclass::text as name, column_to_column_name(p.logicalrelid, p.partkey) as key, p.colocationid as place
from pg_dist_partition p join pg_class c on c.oid = p.logicalrelid
where c.relnamespace = 'dtrag'::regnamespace and p.partmethod = 'h' order by 1

-- name: logins
select rolname as role, rolcanlogin as login from pg_roles where rolname = any (:roles) order by rolname

-- name: database_settings
select coalesce(array_agg(setting), '{}') as settings
from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase, unnest(s.setconfig) as setting
where d.datname = current_database() and s.setrole = 0

-- name: propagated
select current_setting('citus.propagate_set_commands', true) as value

-- name: marked
select exists (select 1 from migrations where name = :mark) as marked

-- name: mark
insert into migrations (name, applied_at) values ({mark}, now()) on conflict (name) do nothing

-- name: unmark
delete from migrations where name = {mark}

-- name: let_log_in
alter role {role} login

-- name: set_for_database
alter database {database} set {setting} = {value}

-- name: policies
-- Those of the reader that look at more than the row: a cluster refuses them.
select p.tablename::text as name, p.policyname::text as policy from pg_policies p
where p.schemaname = 'dtrag' and p.roles = array['dtrag_reader']::name[] and position('SELECT' in p.qual) > 0 order by 1

-- name: forced
-- Tables whose owner is subject to their policies, too.
select relname::text as name from pg_class where oid = any (:tables::regclass[]) and relforcerowsecurity order by 1

-- name: do_not_force
-- The policy of the owner lets it read and write every row. A cluster copies rows into shards, which no role may under
-- row-level security.
alter table dtrag.{table} no force row level security

-- name: confine_documents
alter policy {policy} on dtrag.{table} using ({in_scope})

-- name: sees_documents
-- With the rights of its caller: the policy of the table decides. Documents are not joined with local tables otherwise.
create or replace function dtrag.sees_documents(cited uuid[]) returns boolean
language plpgsql stable
as $$
begin
    return (select count(*) from dtrag.documents d where d.document_id = any (cited))
        = (select count(distinct id) from unnest(cited) as c (id));
end
$$

-- name: revoke_sees_documents
revoke all on function dtrag.sees_documents(uuid[]) from public

-- name: grant_sees_documents
grant execute on function dtrag.sees_documents(uuid[]) to dtrag_reader

-- name: confine_cases
alter policy cases_in_scope on dtrag.cbr_cases using ({asked_in_scope})

-- name: confine_logs
alter policy logs_in_scope on dtrag.cbr_logs using (
    {asked_in_scope}
    and not exists (
        select 1 from unnest(case_ids) as named (id)
        where not exists (select 1 from dtrag.cbr_cases c where c.case_id = named.id)
    )
)

-- name: sees_documents_exists
select to_regprocedure('dtrag.sees_documents(uuid[])') is not null
   and (select count(*) from pg_policies where schemaname = 'dtrag' and policyname in ('cases_in_scope', 'logs_in_scope')
        and position('sees_documents' in qual) > 0) = 2 as complete

-- name: foreign_keys
-- Of tables of documents, to whatever table.
select conrelid::regclass::text as name, conname as constraint from pg_constraint
where contype = 'f' and connamespace = 'dtrag'::regnamespace and conrelid = any (:tables::regclass[]) order by 1

-- name: drop_foreign_key
alter table dtrag.{table} drop constraint {constraint}

-- name: distribute_first
select create_distributed_table('dtrag.documents', 'document_id', shard_count := {shards})

-- name: distribute
select create_distributed_table({table}, 'document_id', colocate_with := 'dtrag.documents')

-- name: local_copies
-- Tables whose rows the coordinator still has beside the shards.
select c.relname::text as name from pg_class c join pg_dist_partition p on p.logicalrelid = c.oid
where c.oid = any (:tables::regclass[]) and pg_relation_size(c.oid) > 0 order by 1

-- name: drop_local_copy
select truncate_local_data_after_distributing_table({table})

-- name: add_foreign_key
alter table dtrag.{table} add constraint {constraint} foreign key (document_id) references dtrag.documents on delete cascade

-- name: statistics
analyze

-- name: count
select count(*) as rows from dtrag.{table}

-- name: placements
-- How many shards of documents each server has.
select nodename || ':' || nodeport as address, count(*) as shards from citus_shards
where table_name = 'dtrag.documents'::regclass group by 1 order by 1
