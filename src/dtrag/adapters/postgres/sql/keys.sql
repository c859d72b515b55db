-- Keys of the HTTP service: what is stored of a secret is its prefix and its digest.

-- name: insert_key
insert into api_keys (key_id, name, prefix, digest, role, scope, rate, created_at, expires_at)
values (:key_id, :name, :prefix, :digest, :role, :scope, :rate, :created_at, :expires_at)
on conflict do nothing
returning key_id

-- name: key_of_prefix
select key_id, name, prefix, digest, role, scope, rate, created_at, expires_at, revoked_at, last_used_at
from api_keys where prefix = :prefix

-- name: keys
select key_id, name, prefix, digest, role, scope, rate, created_at, expires_at, revoked_at, last_used_at
from api_keys order by created_at desc, key_id

-- Revoked and expired ones count: a service that has had keys does not open when the last one goes.
-- name: any_key
select exists (select from api_keys) as found

-- name: revoke_key
update api_keys set revoked_at = :now where name = :name and revoked_at is null
returning key_id, name, prefix, digest, role, scope, rate, created_at, expires_at, revoked_at, last_used_at

-- Several processes see the same key used: only the first in a minute writes.
-- name: use_key
update api_keys set last_used_at = :now
where key_id = :key_id and (last_used_at is null or last_used_at <= :before)
