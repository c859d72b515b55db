-- Documents that wait for vectors, in a table of their own: as columns of `documents`, each of two steps wrote the whole
-- row and all entries of its indexes again. `sentences`: the passages have their vectors, and only their sentences wait.

create table waiting_documents (
    document_id  uuid primary key references documents on delete cascade,
    node_id      int not null,
    processed_at timestamptz not null,
    sentences    boolean not null default false
);
insert into waiting_documents
select document_id, node_id, processed_at, embedded from documents where not (embedded and sentences_embedded);

create index waiting_documents_newest on waiting_documents (sentences, processed_at desc, document_id);
create index waiting_documents_nodes on waiting_documents (node_id) where not sentences;
grant select on waiting_documents to dtrag_search;

alter table documents drop column embedded, drop column sentences_embedded;
