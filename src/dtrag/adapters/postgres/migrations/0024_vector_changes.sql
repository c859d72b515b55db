-- Searches read vectors from mapped files. A vector has the number of the change that it came with, the value of the
-- setting `vectors`, so that a process finds those that are in no file yet. `vectors_emptied` is the number of the last
-- change that removed vectors of documents which stay.

alter table embeddings add column change bigint not null default 0;
alter table embeddings alter column change drop default;
create index embeddings_change on embeddings (change);
grant select (segment_id) on documents to dtrag_search;
