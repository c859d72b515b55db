-- Backups: what their manifests contain, and what is compared and changed after a restore. As the owner.
-- {name} marks an identifier, {number} and {mark} literals that are composed into the statement.

-- name: no_time_limit
-- The snapshot of a dump is held by an idle transaction, and a large table may take long to be counted.
set idle_in_transaction_session_timeout = 0; set statement_timeout = 0

-- name: snapshot
select pg_export_snapshot() as snapshot

-- name: count_table
select count(*) as rows from dtrag.{table}

-- name: migrations
select name from dtrag.migrations order by name

-- name: generation
select value from dtrag.index_settings where name = 'generation'

-- name: audit_log
select to_regclass('dtrag.audit_log')::text as present

-- name: audit_line
-- The line of this number, or the newest one.
select number, hash from dtrag.audit_log where :number::bigint is null or number = :number order by number desc limit 1

-- name: has_content
-- Of a database with a schema that is not older than 0011: whether anything was stored in it.
select exists (select from dtrag.documents) or exists (select from dtrag.api_keys) or exists (select from dtrag.agents)
    or exists (select from dtrag.audit_log) as content

-- name: mark
select obj_description(to_regnamespace('dtrag'), 'pg_namespace') as mark

-- name: set_mark
comment on schema dtrag is {mark}

-- name: clear_mark
comment on schema dtrag is null

-- name: drop_schema
drop schema if exists dtrag cascade

-- name: grant_schema
-- Programs of PostgreSQL that restore one schema leave its own rights out.
grant usage on schema dtrag to dtrag_search, dtrag_reader

-- name: rename_database
alter database {name} rename to {new}

-- name: databases
select datname as name from pg_database where not datistemplate and datname <> 'postgres' order by datname

-- name: sessions
-- Of other processes in this database.
select count(*) as sessions from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and usesysid is not null

-- name: keys
select key_id, name, revoked_at is null as active from dtrag.api_keys order by name, key_id

-- name: document_ids
select document_id from dtrag.documents

-- name: titles
select document_id, title from dtrag.documents where document_id = any (:ids) order by title, document_id limit :limit

-- name: revoke_keys
update dtrag.api_keys set revoked_at = :now where revoked_at is null and key_id = any (:ids) returning key_id

-- name: forget_sessions
delete from dtrag.sessions

-- name: changed_settings
select value from dtrag.index_settings where name = 'settings'

-- name: close_public
with stored as (select value from index_settings where name = 'settings' and value ? 'public' for update)
update index_settings set value = index_settings.value - 'public' from stored where name = 'settings'
returning stored.value #>> '{public,value}' as public

-- name: end_jobs
-- They belong to the moment of the backup: what they would write may have been deleted since.
delete from dtrag.jobs where state in ('waiting', 'running', 'failed')

-- name: lines_after
copy (select * from dtrag.audit_log where number > {number} order by number) to stdout

-- name: add_lines
copy dtrag.audit_log from stdin

-- name: restored_from
-- Whether this database was made from the backup.
select 1 from dtrag.audit_log where action = 'database.restore' and details ->> 'backup' = :backup

-- name: deletions
-- Lines after this one that report deleted documents or revoked keys.
select number, action, subjects from dtrag.audit_log
where number > :number and action = any (:actions) and decision = 'done' order by number
