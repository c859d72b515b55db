-- Sessions of the web page. As the owner.

-- name: insert
insert into sessions (digest, key_prefix, created_at, used_at, checked_at, sealed)
select :digest, prefix, :created_at, :used_at, :checked_at, :sealed from api_keys where prefix = :key_prefix
on conflict do nothing

-- name: trim
-- The oldest sessions of a key beyond the allowed number.
delete from sessions where digest in (
    select digest from sessions where key_prefix = :key_prefix
    order by created_at desc, digest desc offset :most
)

-- name: get
select digest, key_prefix, created_at, used_at, checked_at, sealed from sessions where digest = :digest

-- name: use
update sessions set used_at = :now where digest = :digest and used_at <= :before

-- name: claim
-- Tokens that a provider exchanges at each use may be sent once: one process asks, the others go on until it is late.
update sessions set claimed_until = :until
where digest = :digest and checked_at = :checked and (claimed_until is null or claimed_until <= :now)

-- name: checked
update sessions set checked_at = :now, sealed = :sealed, claimed_until = null where digest = :digest

-- name: delete
delete from sessions where digest = :digest

-- name: forget
delete from sessions where used_at < :idle_since or created_at < :longest_since
