-- Runs of evaluations that were kept, with the question and answer of each row. Read by administrators of the whole tree.

create table evaluations (
    run_id     uuid primary key,
    created_at timestamptz not null,
    -- json, not jsonb: measures and settings keep their order.
    run        json not null
);
create index evaluations_created on evaluations (created_at, run_id);
