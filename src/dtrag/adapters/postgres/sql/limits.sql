-- Token buckets of callers, over all services. By the clock of the database: those of the services may differ.

-- name: take
-- Return :unspent tokens to the bucket, which holds :rate at most and refills by as many a minute, and take up to :tokens.
insert into rate_limits as b (caller, level, since, taken)
values (:caller, :rate::float8 - :tokens, clock_timestamp(), :tokens)
on conflict (caller) do update set (level, since, taken) = (
    select r.level - t.taken, c.moment, t.taken
    from (select clock_timestamp() as moment) c
    cross join lateral (
        select least(:rate::float8, b.level + :unspent
            + greatest(0, extract(epoch from c.moment - b.since))::float8 * :rate / 60) as level
    ) r
    cross join lateral (select least(:tokens, greatest(0, floor(r.level + 1e-9)))::int as taken) t
)
returning level, taken

-- name: forget
-- Buckets that are full again.
delete from rate_limits where since < clock_timestamp() - interval '2 minutes'
