-- Sessions of the web page: of each only the digest of its token. A session belongs to a key and is deleted with it.

create table sessions (
    digest     bytea primary key,
    key_prefix text not null references api_keys (prefix) on delete cascade,
    created_at timestamptz not null,
    used_at    timestamptz not null
);
create index sessions_key on sessions (key_prefix, created_at, digest);
create index sessions_used on sessions (used_at);
