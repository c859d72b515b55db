-- The index of mode strict, created when that mode is first used.

-- name: index_state
select i.indisvalid as valid
from pg_index i
where i.indexrelid = to_regclass('dtrag.chunks_strict')

-- name: drop_index
drop index if exists dtrag.chunks_strict

-- name: create_index
-- Concurrently: documents are written meanwhile.
create index concurrently chunks_strict on dtrag.chunks using gin (to_tsvector('english', text))

-- name: skip_statistics
-- No plan needs them, and ANALYZE would parse every sampled text again.
alter index dtrag.chunks_strict alter column 1 set statistics 0
