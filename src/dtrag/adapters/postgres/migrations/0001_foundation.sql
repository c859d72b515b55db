-- The foundation: a taxonomy of stable nodes, documents with their chunks (content, under row-level security), and the
-- two indexes that hold no text. Distribution key of every large table: document_id, first in every primary key.

create table taxonomy_versions (
    version    text primary key,
    parent     text,
    rationale  text not null default '',
    active     boolean not null,
    created_at timestamptz not null
);

-- A node is only an identity; its name and place belong to a version.
create table taxonomy_nodes (
    node_id    int primary key,
    created_at timestamptz not null
);

create table taxonomy_tree (
    version   text not null references taxonomy_versions,
    node_id   int not null references taxonomy_nodes,
    parent_id int not null references taxonomy_nodes,
    name      text not null,
    key       text not null,
    primary key (version, node_id),
    unique (version, parent_id, key)
);

insert into taxonomy_nodes values (0, now()), (1, now());
insert into taxonomy_versions (version, active, created_at) values ('1.0.0', true, now());

-- What the index was built with (embedder, analyzer, mean lengths) and its generation.
create table index_settings (
    name  text primary key,
    value jsonb not null
);
insert into index_settings values ('generation', '0');

-- Term statistics as segments that are added up in memory: one row a batch of documents instead of an update a term.
-- A segment is opened before its documents are written and counted after them; an uncounted one belongs to a batch in
-- progress or to a crash, after which it is counted again from lexical_index.
create table statistics_segments (
    segment_id  uuid primary key,
    counted     boolean not null,
    created_at  timestamptz not null,
    chunks      int not null default 0,
    lengths     jsonb not null default '{}',
    term_ids    int[] not null default '{}',
    frequencies int[] not null default '{}'
);

-- A file that was read to its end, so that reading the same bytes again can be skipped.
create table sources (
    source_id    uuid primary key,
    source_uri   text not null,
    fingerprint  bytea not null,
    documents    int not null,
    completed_at timestamptz not null
);

create table documents (
    document_id  uuid primary key,
    source_id    uuid not null,
    source_uri   text not null,
    title        text not null,
    content_type text not null,
    language     text not null,
    node_id      int not null references taxonomy_nodes,
    metadata     jsonb not null,
    text         text not null,
    chunks       int not null,
    characters   int not null,
    fingerprint  bytea not null,
    segment_id   uuid not null,
    processed_at timestamptz not null
);
create index documents_source on documents (source_id);
create index documents_node on documents (node_id);

create table chunks (
    document_id  uuid not null references documents on delete cascade,
    ordinal      int not null,
    node_id      int not null,
    start_offset int not null,
    end_offset   int not null,
    text         text not null,
    breadcrumb   text[] not null,
    metadata     jsonb not null,
    primary key (document_id, ordinal)
);
-- For the strict ranker, which reads the text itself.
create index chunks_strict on chunks using gin (to_tsvector('english', text));

create table lexical_index (
    document_id uuid not null references documents on delete cascade,
    ordinal     int not null,
    node_id     int not null,
    language    text not null,
    length      int not null,
    terms       int[] not null,
    weights     sparsevec not null,
    primary key (document_id, ordinal)
) with (toast_tuple_target = 8160);
-- Inline: every candidate's weights are read, and a detour through TOAST costs ten times the scoring.
alter table lexical_index alter column weights set storage main, alter column terms set storage main;
create index lexical_index_terms on lexical_index using gin (terms);
create index lexical_index_node on lexical_index (node_id);

-- The vector's dimension is fixed when the first embedder is registered.
create table embeddings (
    document_id uuid not null references documents on delete cascade,
    ordinal     int not null,
    node_id     int not null,
    vec         halfvec not null,
    primary key (document_id, ordinal)
);
alter table embeddings alter column vec set storage plain;
create index embeddings_node on embeddings (node_id);

-- What no plan asks for is not sampled by ANALYZE: parsing every sampled text again took most of its time.
alter table documents alter column text set statistics 0, alter column metadata set statistics 0;
alter table chunks
    alter column text set statistics 0, alter column breadcrumb set statistics 0, alter column metadata set statistics 0;
alter index chunks_strict alter column 1 set statistics 0;
alter table lexical_index alter column terms set statistics 0, alter column weights set statistics 0;
alter table embeddings alter column vec set statistics 0;

-- Row-level security. An unset scope shows no row; the whole tree has a marker of its own.
-- nullif: after a transaction's SET LOCAL the setting is '', not null. Scalar sub-selects: parsed once a statement.
alter table documents enable row level security;
alter table documents force row level security;
alter table chunks enable row level security;
alter table chunks force row level security;

create policy documents_of_owner on documents to dtrag_owner using (true) with check (true);
create policy chunks_of_owner on chunks to dtrag_owner using (true) with check (true);
create policy documents_in_scope on documents for select to dtrag_reader using (
    (select nullif(current_setting('dtrag.full_scope', true), '')) = 'on'
    or node_id = any ((select nullif(current_setting('dtrag.scope', true), '')::int[])::int[])
);
create policy chunks_in_scope on chunks for select to dtrag_reader using (
    (select nullif(current_setting('dtrag.full_scope', true), '')) = 'on'
    or node_id = any ((select nullif(current_setting('dtrag.scope', true), '')::int[])::int[])
);
-- The search role may filter by these facts; column grants keep everything else from it.
create policy documents_facts on documents for select to dtrag_search using (true);

-- Keys and scores of the acceptance text's ranker. It needs the text, so it runs as the owner and takes the scope from
-- the session; under a policy of the caller's the index would not be used (@@ is not leakproof).
create function strict_candidates(query text, wanted int)
returns table (document_id uuid, ordinal int, score real)
language plpgsql stable security definer
set search_path = dtrag, public, pg_temp
as $$
declare
    everything boolean := coalesce(nullif(current_setting('dtrag.full_scope', true), ''), 'off') = 'on';
    nodes int[] := nullif(current_setting('dtrag.scope', true), '')::int[];
begin
    return query
        select c.document_id, c.ordinal,
               ts_rank_cd(to_tsvector('english', c.text), plainto_tsquery('english', strict_candidates.query), 32|1)
        from chunks c
        where to_tsvector('english', c.text) @@ plainto_tsquery('english', strict_candidates.query)
          and (everything or c.node_id = any (nodes))
        order by 3 desc, 1, 2
        limit wanted;
end;
$$;
revoke all on function strict_candidates(text, int) from public;
grant execute on function strict_candidates(text, int) to dtrag_search;

grant usage on schema dtrag to dtrag_search, dtrag_reader;
grant select on taxonomy_versions, taxonomy_nodes, taxonomy_tree, index_settings to dtrag_search, dtrag_reader;
grant select on lexical_index, embeddings, statistics_segments to dtrag_search;
grant select (document_id, node_id, content_type, language, processed_at) on documents to dtrag_search;
grant select on documents, chunks to dtrag_reader;
