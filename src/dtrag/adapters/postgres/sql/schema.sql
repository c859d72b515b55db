-- Databases, roles, the schema and its migrations. {name} marks an identifier that is composed into the statement.

-- name: database_exists
select 1 from pg_database where datname = :name

-- name: create_database
create database {name}

-- name: copy_database
create database {name} template {template} strategy file_copy

-- name: drop_database
drop database if exists {name}

-- name: sessions_of_database
select application_name, usename, state, wait_event, backend_start, query_start, left(query, 200)
from pg_stat_activity where datname = :database

-- name: identities
-- Of the databases of this cluster; a copy of a cluster shares them, a copy of a database has its own.
select c.system_identifier || '-' || d.oid from pg_control_system() c, pg_database d

-- name: identity
select c.system_identifier || '-' || d.oid from pg_control_system() c, pg_database d
where d.datname = current_database()

-- name: connections_allowed
-- Of all roles but superusers and those with pg_use_reserved_connections (from PostgreSQL 16).
select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
    - coalesce(current_setting('reserved_connections', true)::int, 0)

-- name: schema_exists
select 1 from pg_namespace where nspname = 'dtrag'

-- name: create_schema
create extension if not exists vector;
create schema if not exists dtrag authorization dtrag_owner;

-- name: roles_ready
-- Whether the login may act as all three roles, and the schema exists.
select 1
where (select count(*) from pg_roles where rolname = any (:roles) and pg_has_role(current_user, oid, 'member')) = 3
  and exists (select 1 from pg_namespace where nspname = 'dtrag')

-- name: role_exists
select 1 from pg_roles where rolname = :role

-- name: create_role
create role {role} nologin

-- name: create_login
create role {role} login

-- name: grant_role
grant {role} to current_user

-- name: migrations_table
select to_regclass('dtrag.migrations')

-- name: create_migrations
-- Tables of earlier versions have no version.
create table if not exists migrations (name text primary key, applied_at timestamptz not null);
alter table migrations add column if not exists version text not null default '';

-- name: migrations
select name from migrations

-- name: add_migration
insert into migrations (name, applied_at, version) values (:name, now(), :version)

-- name: newest_unknown_migration
-- The version of dtrag that applied it; null where none was recorded.
select name, to_jsonb(migrations) ->> 'version' from migrations
where name <> all (:known::text[]) order by name desc limit 1

-- name: role_rights
select rolname as role, rolsuper or rolbypassrls as unrestricted from pg_roles where rolname = current_user

-- name: index_counts
select (select count(*) from embeddings) as vectors,
       (select count(*) from lexical_segments where not counted) as uncounted

-- name: personal_data_counts
select personal_data as policy, coalesce(metadata ->> 'personal_data', '') as kinds, count(*) as documents
from documents
group by 1, 2
order by 1, 2

-- name: tables
-- Those without a log cannot be read on a standby.
select relname as name from pg_class
where relnamespace = 'dtrag'::regnamespace and relkind = 'r' and relpersistence = 'p' order by relname

-- name: read_table
select count(whole) from dtrag.{table} as whole
