-- The pipeline: what happened in its runs, conversations, and tools of other servers that were approved. Traces and
-- conversations are found by their own ids and hold no text of documents but what an answer quoted.

create table traces (
    trace_id   uuid primary key,
    created_at timestamptz not null,
    -- Id of the key that asked; '' without keys.
    owner      text not null,
    trace      jsonb not null
);
create index traces_created on traces (created_at, trace_id);
create index traces_of_owner on traces (owner, created_at, trace_id);

create table conversations (
    conversation_id text not null,
    owner           text not null,
    created_at      timestamptz not null,
    updated_at      timestamptz not null,
    -- Turns that there have been: the number of the last one.
    turns           int not null,
    primary key (owner, conversation_id)
);
create index conversations_updated on conversations (updated_at);
create table conversation_turns (
    owner           text not null,
    conversation_id text not null,
    turn            int not null,
    question        text not null,
    answer          text not null,
    -- All documents that had a part in the answer: who may not see one of them is not shown the answer.
    document_ids    uuid[] not null,
    created_at      timestamptz not null,
    primary key (owner, conversation_id, turn),
    foreign key (owner, conversation_id) references conversations on delete cascade
);

-- A tool of an MCP server as it was approved: `fingerprint` is the SHA-256 of its name, description and schema.
create table approved_tools (
    tool        text primary key,
    fingerprint bytea not null,
    approved_by text not null,
    approved_at timestamptz not null
);
