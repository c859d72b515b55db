-- The queue of jobs, as the owner. Times are those of the database, since the clocks of processes differ. One statement a
-- change: a process that stalls in between holds no row.

-- fragment: job
j.job_id, j.kind, j.priority, j.state, j.created_at, j.run_at, j.started_at, j.ended_at, j.fence, j.worker, j.attempts,
j.reason, j.done, j.total, j.lock_keys, j.maker, j.maker_name, j.input, j.result

-- name: add
with job as (
    insert into jobs (job_id, kind, priority, created_at, run_at, lock_keys, maker, maker_name, input)
    values (:job_id, :kind, :priority, clock_timestamp(), clock_timestamp(), :lock_keys, :maker, :maker_name, :input)
    returning *
), locks as (
    insert into job_locks (lock_key, job_id, created_at) select unnest(lock_keys), job_id, created_at from job
)
select {job} from job j

-- name: add_part
insert into job_files (job_id, file, part, bytes) values (:job_id, :file, :part, :bytes)

-- name: part
select bytes from job_files where job_id = :job_id and file = :file and part = :part

-- name: ensure
-- A job of which there is one, for ever: it waits again when it has ended.
insert into jobs as j (job_id, kind, priority, created_at, run_at, maker_name, input)
values (:job_id, :kind, :priority, now(), now(), '', '{}')
on conflict (job_id) do update
set state = 'waiting', created_at = now(), run_at = now(), started_at = null, ended_at = null, attempts = 0, done = 0,
    total = 0, result = null
where j.state = any (:states)

-- name: take
-- The first job that may run: of those with a key in common none runs, and none was made earlier.
with next as (
    select j.job_id from jobs j
    where j.state = 'waiting' and j.run_at <= now() and j.kind = any (:kinds)
      and (:job_id::uuid is null or j.job_id = :job_id)
      and not exists (
          select 1 from job_locks own join job_locks other using (lock_key)
          where own.job_id = j.job_id and other.job_id <> j.job_id
            and (other.running or (other.created_at, other.job_id) < (own.created_at, own.job_id))
      )
    order by j.priority, j.created_at, j.job_id
    limit 1
    for update skip locked
), locked as (
    update job_locks l set running = true from next where l.job_id = next.job_id
)
update jobs j
set state = 'running', fence = fence + 1, worker = :worker, attempts = attempts + 1, started_at = now(),
    lease_until = now() + :lease
from next where j.job_id = next.job_id
returning {job}

-- name: expire
-- Jobs whose process has not extended the lease wait again, or have failed after too many attempts.
with lost as (
    select job_id, attempts >= :most as over from jobs
    where state = 'running' and lease_until < now()
    for update skip locked
), unlocked as (
    update job_locks l set running = false from lost where l.job_id = lost.job_id and not over
), dropped as (
    delete from job_locks l using lost where l.job_id = lost.job_id and over
)
update jobs j
set state = case when over then 'failed' else 'waiting' end, run_at = now(), lease_until = null, reason = :reason,
    ended_at = case when over then now() end
from lost where j.job_id = lost.job_id
returning j.job_id, j.kind, j.state

-- name: as_login
-- Who has logged in may see and end all sessions of this login.
set local role none

-- name: stalled
-- Sessions of which the server has read half a request: none of its time limits counts then, and what they have locked
-- stays locked. Ends those that are given.
select pid, backend_start, state_change,
       case when (pid, backend_start, state_change) in (
                select * from unnest(:pids::int[], :starts::timestamptz[], :changes::timestamptz[])
            ) then pg_terminate_backend(pid) else false end as ended
from pg_stat_activity
where usename = session_user and datname = current_database() and state = 'active' and wait_event = 'ClientRead'

-- name: beat
update jobs set lease_until = now() + :lease, done = :done, total = :total
where job_id = :job_id and fence = :fence and state = 'running'

-- name: release
with released as (
    update jobs set state = 'waiting', run_at = now() + :delay, lease_until = null, reason = :reason,
                    attempts = attempts - :uncounted
    where job_id = :job_id and fence = :fence and state = 'running'
    returning job_id
), locks as (
    update job_locks l set running = false from released where l.job_id = released.job_id
)
select job_id from released

-- fragment: dropped
locks as (
    delete from job_locks l using ended where l.job_id = ended.job_id
), files as (
    delete from job_files f using ended where f.job_id = ended.job_id and ended.state <> 'failed'
)

-- name: finish
-- The files of a failed job stay until it is tried again or forgotten.
with ended as (
    update jobs set state = :state, ended_at = now(), lease_until = null, reason = :reason, result = :result,
                    done = :done, total = :total
    where job_id = :job_id and fence = :fence and state = 'running'
    returning job_id, state
), {dropped}
select job_id from ended

-- name: locked
select exists (select 1 from job_locks join jobs using (job_id)
               where lock_key = any (:keys) and (:everything or maker is not distinct from :maker)) as locked

-- name: cancel
-- Waits for a transaction of the job that is about to commit; none commits afterwards.
with held as (
    select job_id from jobs where job_id = :job_id and state in ('waiting', 'running') for update
), ended as (
    update jobs j set state = 'cancelled', fence = fence + 1, ended_at = now(), lease_until = null, reason = :reason
    from held where j.job_id = held.job_id
    returning j.job_id, j.state
), {dropped}
select job_id from ended

-- name: retry
with again as (
    update jobs set state = 'waiting', run_at = now(), ended_at = null, attempts = 0, done = 0, total = 0, result = null
    where job_id = :job_id and (state = 'failed' or state = 'waiting' or state = 'cancelled' and job_id = any (:standing))
    returning job_id, lock_keys, created_at
), locks as (
    insert into job_locks (lock_key, job_id, created_at) select unnest(lock_keys), job_id, created_at from again
    on conflict do nothing
)
select job_id from again

-- name: job
select {job} from jobs j where j.job_id = :job_id

-- name: jobs
select {job}, count(*) over () as listed from jobs j
where (:everything or j.maker = :maker) and (:states::text[] is null or j.state = any (:states))
  and (:kind::text is null or j.kind = :kind)
order by j.created_at desc, j.job_id limit :limit offset :offset

-- name: waiting_of
select count(*) as waiting from jobs where state in ('waiting', 'running') and maker is not distinct from :maker

-- name: counts
select kind, state, count(*) as jobs,
       coalesce(extract(epoch from now() - min(run_at) filter (where state = 'waiting')), 0)::float8 as oldest_s,
       max(reason) filter (where maker_name = '' and attempts > 0) as reason
from jobs where state in ('waiting', 'running', 'failed') group by kind, state

-- name: forget
delete from jobs where ended_at < now() - :age

-- name: announce
with gone as (delete from job_workers where seen_at < now() - interval '1 hour')
insert into job_workers (worker, kinds, seen_at) values (:worker, :kinds, now())
on conflict (worker) do update set kinds = excluded.kinds, seen_at = excluded.seen_at

-- name: leave
delete from job_workers where worker = :worker

-- name: served
select exists (
    select 1 from job_workers where seen_at > now() - :age and (:kind::text is null or :kind = any (kinds))
) as served
