-- People who sign in with an identity provider. As the owner.

-- fragment: person
key_id, issuer, subject, groups, checked_at from people

-- name: every
select {person} order by issuer, subject

-- name: of_key
select {person} where key_id = :key_id

-- name: key_of
select key_id from people where issuer = :issuer and subject = :subject for update

-- name: insert
insert into people (key_id, issuer, subject, groups, checked_at)
values (:key_id, :issuer, :subject, :groups, :checked_at)

-- name: update
update people set groups = :groups, checked_at = :checked_at where key_id = :key_id

-- name: rights
update api_keys set role = :role, scope = :scope, expires_at = :expires_at
where key_id = :key_id and revoked_at is null

-- name: allow
-- Expired until the next sign-in, which writes the rights of today.
update api_keys k set revoked_at = null, expires_at = :now from people p
where p.key_id = k.key_id and k.revoked_at is not null and (:name::text is null or k.name = :name)
returning k.name, k.key_id
