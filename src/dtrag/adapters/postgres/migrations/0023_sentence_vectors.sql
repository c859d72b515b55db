-- The vectors of the sentences of passages, by models whose cosines decide which sentences answer (`vector_spaces.decides`):
-- an answer need not embed them. They belong to a text (its hash) of a passage. `documents.sentences_embedded`: no
-- passage of the document waits for them.

create table sentence_vectors (
    document_id uuid not null references documents on delete cascade,
    ordinal     int not null,
    node_id     int not null,
    space       smallint not null,
    text_hash   bytea not null,
    vectors     bytea not null,
    primary key (document_id, ordinal)
);
-- Vectors in int8 do not shrink: no attempt is made to compress them.
alter table sentence_vectors alter column vectors set storage external;
alter table sentence_vectors alter column vectors set statistics 0, alter column text_hash set statistics 0;

alter table sentence_vectors enable row level security;
alter table sentence_vectors force row level security;
create policy sentences_of_owner on sentence_vectors to dtrag_owner using (true) with check (true);
create policy sentences_in_scope on sentence_vectors for select to dtrag_reader using (
    (select nullif(current_setting('dtrag.full_scope', true), '')) = 'on'
    or node_id = any ((select nullif(current_setting('dtrag.scope', true), '')::int[])::int[])
);
grant select on sentence_vectors, vector_spaces to dtrag_reader;

alter table vector_spaces add column decides boolean not null default false;
alter table documents add column sentences_embedded boolean not null default false;
create index documents_sentences_waiting on documents (processed_at desc, document_id)
where embedded and not sentences_embedded;
