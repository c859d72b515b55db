-- Settings and transactions of one connection. {name} marks a literal that is composed into the statement.

-- name: ping
select 1

-- name: begin
begin

-- name: commit
commit

-- name: read_one_state
set transaction isolation level repeatable read read only

-- name: full_scope
set local dtrag.full_scope = 'on'

-- name: scope
-- A literal, since a cluster forwards only that to its workers.
set local dtrag.scope = {nodes}

-- name: ef_search
set local hnsw.ef_search = {candidates}

-- name: commit_before_disk
set synchronous_commit = off

-- name: commit_on_disk
set local synchronous_commit = on

-- name: reset_commit
reset synchronous_commit
