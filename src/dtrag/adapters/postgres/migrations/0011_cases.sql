-- The case memory: questions that were answered, the passages that answered them, votes, interactions and decisions on
-- reuse. Text of questions is content: cases and interactions are under row-level security.

create table cbr_cases (
    case_id        text collate "C" primary key,
    query          text not null,
    query_hash     bytea not null,
    category_path  text[] not null,
    node_id        int,
    content        text not null,
    -- The cited passages in order, each with the SHA-256 of its text; and the documents that they belong to.
    chunk_ids      text[] not null,
    content_hashes bytea[] not null,
    document_ids   uuid[] not null,
    quality_score  double precision not null,
    usage_count    int not null,
    success_rate   double precision not null,
    upvotes        int not null,
    downvotes      int not null,
    origin         text not null check (origin in ('manual', 'answer', 'review')),
    author         text not null,
    status         text not null check (status in ('active', 'archived')),
    as_of          date,
    -- The nodes of the scope in which the question was answered; null for the whole tree.
    answered_in    int[],
    metadata       jsonb not null,
    vector         bytea,
    created_at     timestamptz not null,
    updated_at     timestamptz not null
);

-- `moved`: by how much the vote moved the quality.
create table cbr_votes (
    case_id  text collate "C" not null references cbr_cases on delete cascade,
    voter    text not null,
    log_id   text not null,
    feedback text not null,
    success  boolean not null,
    moved    double precision not null,
    voted_at timestamptz not null,
    primary key (case_id, voter, log_id)
);

-- One decision of each caller about a case.
create table cbr_decisions (
    case_id    text collate "C" not null references cbr_cases on delete cascade,
    asker      text not null,
    log_id     text not null,
    kind       text not null check (kind in ('vote', 'replay')),
    correct    boolean not null,
    decided_at timestamptz not null,
    primary key (case_id, asker)
);

create table cbr_logs (
    log_id             text collate "C" primary key,
    logged_at          timestamptz not null,
    kind               text not null check (kind in ('suggestion', 'answer')),
    query              text not null,
    query_hash         bytea not null,
    category_path      text[] not null,
    node_id            int,
    suggested_case_ids text[] not null,
    picked_case_ids    text[] not null,
    shown_case_id      text,
    -- All cases that it names.
    case_ids           text[] not null,
    chunk_ids          text[] not null,
    content_hashes     bytea[] not null,
    document_ids       uuid[] not null,
    success            boolean,
    feedback           text,
    execution_time_ms  double precision not null,
    similarity_method  text not null,
    user_id            text not null,
    as_of              date,
    details            jsonb not null
);
create index cbr_logs_newest on cbr_logs (logged_at, log_id);
create index cbr_logs_cases on cbr_logs using gin (case_ids);

-- The number of the last change of every case, deleted ones included: processes bring their index up to date with it.
-- The counter is locked until the change is committed, so that changes become visible in the order of their numbers.
create table cbr_changes (
    case_id  text collate "C" primary key,
    revision bigint not null unique
);
create table cbr_revision (
    name     text primary key,
    revision bigint not null
);
insert into cbr_revision values ('cases', 0);

alter table cbr_cases enable row level security;
alter table cbr_cases force row level security;
alter table cbr_logs enable row level security;
alter table cbr_logs force row level security;

create policy cases_of_owner on cbr_cases to dtrag_owner using (true) with check (true);
create policy logs_of_owner on cbr_logs to dtrag_owner using (true) with check (true);
-- A case is in scope with its category and every document that it cites; `documents` is under its own policy here.
create policy cases_in_scope on cbr_cases for select to dtrag_reader using (
    (select nullif(current_setting('dtrag.full_scope', true), '')) = 'on'
    or node_id = any ((select nullif(current_setting('dtrag.scope', true), '')::int[])::int[])
    and not exists (
        select from unnest(document_ids) as cited (id)
        where not exists (select from documents d where d.document_id = cited.id)
    )
);
create policy logs_in_scope on cbr_logs for select to dtrag_reader using (
    (select nullif(current_setting('dtrag.full_scope', true), '')) = 'on'
    or node_id = any ((select nullif(current_setting('dtrag.scope', true), '')::int[])::int[])
    and not exists (
        select from unnest(document_ids) as cited (id)
        where not exists (select from documents d where d.document_id = cited.id)
    )
    and not exists (
        select from unnest(case_ids) as named (id)
        where not exists (select from cbr_cases c where c.case_id = named.id)
    )
);

grant select on cbr_cases, cbr_logs, cbr_revision to dtrag_reader;
