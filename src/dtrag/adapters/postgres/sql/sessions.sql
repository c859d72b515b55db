-- Sessions of the web page. As the owner.

-- name: insert
insert into sessions (digest, key_prefix, created_at, used_at)
select :digest, prefix, :created_at, :used_at from api_keys where prefix = :key_prefix
on conflict do nothing

-- name: trim
-- The oldest sessions of a key beyond the allowed number.
delete from sessions where digest in (
    select digest from sessions where key_prefix = :key_prefix
    order by created_at desc, digest desc offset :most
)

-- name: get
select digest, key_prefix, created_at, used_at from sessions where digest = :digest

-- name: use
update sessions set used_at = :now where digest = :digest and used_at <= :before

-- name: delete
delete from sessions where digest = :digest

-- name: forget
delete from sessions where used_at < :idle_since or created_at < :longest_since
