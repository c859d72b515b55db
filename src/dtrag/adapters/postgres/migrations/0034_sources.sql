-- Sources: what each holds, which categories the rights of a source restrict, and who is in its groups. `origin` is the
-- address of the source, `mark` what the source states about a file's content ("" until it has been read).

create table source_items (
    source_id uuid primary key,
    origin    text not null,
    uri       text not null,
    mark      text not null
);
create index source_items_origin on source_items (origin);

-- `rights` are gates of pairs: a principal, and whether it is let through. Without a gate none is.
create table source_nodes (
    node_id int primary key,
    origin  text not null,
    rights  jsonb not null
);

create table source_groups (
    origin    text not null,
    principal text not null,
    users     text[] not null,
    complete  boolean not null,
    primary key (origin, principal)
);

-- The users of sources as whom a key reads.
alter table api_keys add column principals text[] not null default '{}';

grant select on source_nodes, source_groups to dtrag_search;
grant select (principals, revoked_at) on api_keys to dtrag_search;
