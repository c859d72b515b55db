-- People who sign in with an identity provider: the key that stands for each has no secret, and the rights of the groups.

create table people (
    key_id     uuid primary key references api_keys on delete cascade,
    issuer     text not null,
    subject    text not null,
    groups     text[] not null,
    checked_at timestamptz not null,
    unique (issuer, subject)
);

alter table sessions
    add column checked_at    timestamptz,
    add column sealed        bytea,
    add column claimed_until timestamptz;
