-- Advisory locks; `locks.Lock` has the numbers. Those of a session are held until they are released.

-- name: transaction
select pg_advisory_xact_lock(:lock)

-- name: transaction_shared
select pg_advisory_xact_lock_shared(:lock)

-- name: try_transaction
select pg_try_advisory_xact_lock(:lock) as free

-- name: session
select pg_advisory_lock(:lock)

-- name: session_shared
select pg_advisory_lock_shared(:lock)

-- name: release
select pg_advisory_unlock(:lock)

-- name: release_all
select pg_advisory_unlock_all()

-- name: try_session
select pg_try_advisory_lock(:lock) as free

-- name: try_each
-- Those of the locks that are free, taken until the transaction ends.
select k.lock from unnest(:locks::bigint[]) as k (lock) where pg_try_advisory_xact_lock(k.lock)
