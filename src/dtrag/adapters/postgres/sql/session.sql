-- Settings and transactions of one connection. {name} marks a literal that is composed into the statement.

-- name: ping
select 1

-- name: state
-- What a new connection verifies. The values of the settings are in the order of their names.
select current_user::text, pg_backend_pid(), pg_postmaster_start_time(), pg_is_in_recovery(),
    current_setting('default_transaction_read_only') = 'on',
    array(select current_setting(name, true) from unnest(:names::text[]) with ordinality as n (name, place)
          order by place)

-- name: backend
select pg_backend_pid(), pg_postmaster_start_time(), pg_is_in_recovery()

-- name: last_replayed
select pg_last_xact_replay_timestamp() as moment

-- name: set
set {name} to {values}

-- name: read_only
set default_transaction_read_only = on
-- name: reach
-- One document of each server that has some.
select document_id from documents order by document_id limit 1

-- name: distributing
-- Whether this is the coordinator of a cluster (Citus).
select exists (select 1 from pg_extension where extname = 'citus')

-- name: changing
-- The transactions that count a change of the index. They hold this lock until they have ended on all servers.
select virtualtransaction as transaction from pg_locks
where relation = 'dtrag.index_settings'::regclass and mode = 'RowExclusiveLock' and granted
  and database = (select d.oid from pg_database d where d.datname = current_database())

-- name: begin
begin

-- name: commit
commit

-- name: one_shard_at_a_time
-- Of a migration in a cluster: some changes of tables are refused otherwise.
set local citus.multi_shard_modify_mode = 'sequential'

-- name: read_one_state
set transaction isolation level repeatable read read only

-- name: full_scope
set local dtrag.full_scope = 'on'

-- name: scope
-- A literal, since a cluster forwards only that to its workers.
set local dtrag.scope = {nodes}

-- name: ef_search
set local hnsw.ef_search = {candidates}

-- name: commit_on_disk
set local synchronous_commit = on

-- name: check_job
select check_job(:job_id, :fence)

-- name: arm_job
-- The server ends a session that says nothing for so long, so that its locks are released.
set idle_session_timeout = {ms}

-- name: disarm_job
reset idle_session_timeout

-- name: arm_batch
set idle_session_timeout = {ms}; set synchronous_commit = off

-- name: disarm_batch
reset idle_session_timeout; reset synchronous_commit

-- name: compute_inside
-- For a transaction that computes for long between two statements, or waits for a reader.
set local idle_in_transaction_session_timeout = {ms}
