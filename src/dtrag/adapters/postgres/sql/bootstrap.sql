-- The template of every database in a new embedded cluster: run once, in single-user mode, by its first superuser.

-- name: extension
-- pgvector is not a trusted extension in the wheel, so that no role of ours could create it.
create extension vector

-- name: owner
create role dtrag_owner login createdb nosuperuser nobypassrls

-- name: search
create role dtrag_search login nosuperuser nobypassrls

-- name: reader
create role dtrag_reader login nosuperuser nobypassrls

-- name: owner_log
-- Errors of the roles' own statements reach the client and stay out of the log: they quote values, which may be text of
-- documents. Errors of the server's own processes are logged.
alter role dtrag_owner set log_min_messages = 'fatal'

-- name: search_log
alter role dtrag_search set log_min_messages = 'fatal'

-- name: reader_log
alter role dtrag_reader set log_min_messages = 'fatal'

-- name: close_superuser
alter role dtrag_bootstrap nologin
