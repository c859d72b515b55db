-- Keys of the HTTP service: what is stored of a secret is its prefix and its digest.

-- name: insert_key
insert into api_keys
    (key_id, name, prefix, digest, role, scope, rate, created_at, expires_at, agent_id, origins, principals, originals)
values
    (:key_id, :name, :prefix, :digest, :role, :scope, :rate, :created_at, :expires_at, :agent_id, :origins, :principals,
     :originals)
on conflict do nothing
returning key_id

-- fragment: key
-- A public key has the branches that its agent has now, and ends with its agent.
k.key_id, k.name, k.prefix, k.digest, k.role, coalesce(a.scope, k.scope) as scope, k.rate, k.created_at, k.expires_at,
coalesce(k.revoked_at, case when k.agent_id is not null and a.agent_id is null then k.created_at end) as revoked_at,
k.last_used_at, k.agent_id, k.origins, k.principals, k.originals
from api_keys k left join agents a on a.agent_id = k.agent_id

-- name: key_of_prefix
select {key} where k.prefix = :prefix

-- name: key_of_id
select {key} where k.key_id = :key_id

-- name: keys
select {key} order by k.created_at desc, k.key_id

-- Revoked and expired ones count: a service that has had keys does not open when the last one goes.
-- name: any_key
select exists (select 1 from api_keys) as found

-- name: revoke_key
update api_keys set revoked_at = :now where name = :name and revoked_at is null
returning key_id, name, prefix, digest, role, scope, rate, created_at, expires_at, revoked_at, last_used_at, agent_id,
          origins, principals, originals

-- Several processes see the same key used: only the first in a minute writes.
-- name: use_key
update api_keys set last_used_at = :now
where key_id = :key_id and (last_used_at is null or last_used_at <= :before)
