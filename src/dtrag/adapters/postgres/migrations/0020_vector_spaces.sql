-- Vectors are made after the words of a document are indexed, and by several models: each has a space, and only vectors
-- of one space are compared. `embedded`: no passage of the document waits for a vector. The settings get `spaces`
-- (language -> id of its model), `vectors` (the number of their last change), and `sources_read_with`: what earlier
-- releases added to the fingerprints of sources, so that unchanged files are not read again.

create table vector_spaces (
    space smallint primary key,
    id    text not null unique,
    dim   int not null
);
grant select on vector_spaces to dtrag_search;

insert into vector_spaces (space, id, dim)
select 1, value ->> 'id', (value ->> 'dim')::int from index_settings where name = 'embedder';
insert into index_settings (name, value)
select 'sources_read_with', value -> 'id' from index_settings where name = 'embedder';
insert into index_settings (name, value) values ('vectors', '0');
delete from index_settings where name = 'embedder';

-- With a default, no row is rewritten; every later row states its space.
alter table embeddings add column space smallint not null default 1;
alter table embeddings alter column space drop default;

alter table documents add column embedded boolean not null default false;
grant select (embedded) on documents to dtrag_search;
create index documents_waiting on documents (processed_at desc, document_id) where not embedded;
create index documents_waiting_nodes on documents (node_id) where not embedded;
