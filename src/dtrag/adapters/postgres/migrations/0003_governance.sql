-- Governance: versions of the tree as operations on their parents, who may see what (keys, agents), what waits for a
-- person, and a log that can only grow. No text of any document is in these tables but the titles of the review queue.

-- A version is what its operations make of its parent. The first has none; paths that documents name on ingest are
-- added to the active version itself.
alter table taxonomy_versions
    add column operations jsonb not null default '[]',
    add column created_by text not null default '';

-- Which version came into force when, in order; a rollback is an activation, too.
create table taxonomy_activations (
    activation   int primary key,
    version      text not null references taxonomy_versions,
    previous     text references taxonomy_versions,
    kind         text not null check (kind in ('start', 'activate', 'rollback')),
    activated_by text not null,
    activated_at timestamptz not null,
    -- Nodes that were in the tree until then, each with the node that its documents went to.
    vacated      jsonb not null default '{}'
);
insert into taxonomy_activations (activation, version, previous, kind, activated_by, activated_at)
select 1, version, null, 'start', '', created_at from taxonomy_versions where active;

-- Documents that an activation has hung elsewhere, so that a rollback can hang them back.
create table taxonomy_moves (
    activation  int not null references taxonomy_activations,
    document_id uuid not null,
    from_node   int not null,
    to_node     int not null,
    primary key (activation, document_id)
);

-- The head of a segment holds the node of each of its documents. When documents move to other nodes, heads are
-- rewritten under the same id with a higher edition; postings do not change.
alter table lexical_segments add column edition int not null default 0;

-- What a key may see: a list of {"path": [...], "node_id": n or null}, or null for the whole tree.
create table api_keys (
    key_id       uuid primary key,
    name         text not null,
    prefix       text not null unique,
    digest       bytea not null,
    role         text not null check (role in ('reader', 'editor', 'admin')),
    scope        jsonb,
    rate         int not null,
    created_at   timestamptz not null,
    expires_at   timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz
);
create unique index api_keys_name on api_keys (name) where revoked_at is null;

-- Agents: the current manifest; every edition of it in agent_manifests. `scope` as in api_keys, never null.
create table agents (
    agent_id   uuid primary key,
    name       text not null,
    edition    int not null,
    manifest   jsonb not null,
    scope      jsonb not null,
    created_by text not null,
    created_at timestamptz not null,
    updated_at timestamptz not null
);
create table agent_manifests (
    agent_id   uuid not null references agents on delete cascade,
    edition    int not null,
    manifest   jsonb not null,
    scope      jsonb not null,
    created_by text not null,
    created_at timestamptz not null,
    primary key (agent_id, edition)
);
-- What the models of an agent have used on a day (UTC); cost in millionths of a won.
create table agent_spending (
    agent_id uuid not null references agents on delete cascade,
    day      date not null,
    calls    int not null,
    tokens   bigint not null,
    cost     bigint not null,
    primary key (agent_id, day)
);

-- What waits for a person: categories that ingest was not sure of, and answers below an agent's threshold.
create table review_queue (
    item_id     uuid primary key,
    kind        text not null check (kind in ('classification', 'answer')),
    document_id uuid,
    agent_id    uuid references agents on delete cascade,
    node_id     int not null,
    proposal    jsonb not null,
    confidence  real not null,
    status      text not null check (status in ('waiting', 'approved', 'corrected', 'skipped')),
    note        text not null default '',
    created_at  timestamptz not null,
    decided_at  timestamptz,
    decided_by  text not null default ''
);
create index review_queue_waiting on review_queue (confidence, created_at, item_id) where status = 'waiting';
create index review_queue_document on review_queue (document_id);

-- Decisions of people: what classification learns from. They outlive the document, which may come back changed.
create table classification_signals (
    document_id uuid primary key,
    node_id     int not null,
    decided_at  timestamptz not null,
    decided_by  text not null
);

-- Documents that classification has placed without a person, and how sure it was: only very sure ones teach others.
create table classification_placements (
    document_id uuid primary key,
    confidence  real not null,
    placed_at   timestamptz not null
);

-- Who did or asked what, when, over which scope, about which ids, with which decision; never a text. Each row's hash is
-- over its content and the hash of the row before it.
create table audit_log (
    number   bigint primary key,
    at       timestamptz not null,
    actor    text not null,
    action   text not null,
    scope    jsonb,
    subjects jsonb not null,
    decision text not null,
    details  jsonb not null,
    previous bytea not null,
    hash     bytea not null
);
-- An owner's own rights can be taken away, too; what remains is to add and to read.
revoke update, delete, truncate on audit_log from dtrag_owner;

grant select on taxonomy_activations, taxonomy_moves to dtrag_search, dtrag_reader;
grant select on agents to dtrag_search;
-- Joined with documents under row-level security: what a caller may not see has no item either.
grant select on review_queue to dtrag_reader;
