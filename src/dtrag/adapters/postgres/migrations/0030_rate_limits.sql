-- What is left of the rate of callers (a digest of the limit and the caller), common to all services of the database.
-- Not logged: after a crash, or on a promoted standby, all buckets are full.
create unlogged table rate_limits (
    caller bytea primary key,
    level float8 not null,
    since timestamptz not null,
    taken int not null
);
