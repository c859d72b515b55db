-- Work that survives the process which does it. `fence` counts how often a job was taken: who holds it names that number,
-- and each of its transactions checks it (`check_job`). `lease_until` is extended while the job runs; after it another
-- process may take the job. `maker` is the key that requested it, null for the owner of the data folder.

create table jobs (
    job_id      uuid primary key,
    kind        text not null,
    priority    smallint not null,
    state       text not null default 'waiting'
                check (state in ('waiting', 'running', 'done', 'failed', 'cancelled')),
    created_at  timestamptz not null,
    run_at      timestamptz not null,
    started_at  timestamptz,
    ended_at    timestamptz,
    lease_until timestamptz,
    fence       bigint not null default 0,
    worker      text not null default '',
    attempts    int not null default 0,
    reason      text not null default '',
    done        bigint not null default 0,
    total       bigint not null default 0,
    lock_keys   text[] not null default '{}',
    maker       uuid,
    maker_name  text not null,
    input       jsonb not null,
    result      jsonb
);
create index jobs_waiting on jobs (priority, created_at, job_id) where state = 'waiting';
create index jobs_running on jobs (lease_until) where state = 'running';
create index jobs_newest on jobs (created_at desc, job_id);

-- What jobs work on. Those of one key run in the order in which they were made, one at a time.
create table job_locks (
    lock_key   text not null,
    job_id     uuid not null references jobs on delete cascade,
    created_at timestamptz not null,
    running    boolean not null default false,
    primary key (lock_key, job_id)
);
create unique index job_locks_running on job_locks (lock_key) where running;
create index job_locks_of_job on job_locks (job_id);

-- The bytes of uploaded files in pieces, until their job has ended.
create table job_files (
    job_id uuid not null references jobs on delete cascade,
    file   int not null,
    part   int not null,
    bytes  bytea not null,
    primary key (job_id, file, part)
);
alter table job_files alter column bytes set storage external;

-- The processes that take jobs, and when each last looked for some.
create table job_workers (
    worker  text primary key,
    kinds   text[] not null,
    seen_at timestamptz not null
);

-- Raises unless the caller still holds the job, and keeps others from taking it until the transaction ends. Extending the
-- lease does not wait for that: it changes no key.
create function check_job(job uuid, held bigint) returns void
language plpgsql
as $$
begin
    perform 1 from jobs where job_id = job and fence = held and state = 'running' for key share;
    if not found then
        raise exception 'the lease of job % is lost', job using errcode = 'DT001';
    end if;
end
$$;
revoke all on function check_job(uuid, bigint) from public;
grant execute on function check_job(uuid, bigint) to dtrag_owner;
