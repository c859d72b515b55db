-- Everyday questions that a passage answers, written by a language model or imported: a search compares them with the
-- question; they are never text of the document. They belong to a text (its hash) of a document: a passage that is
-- indexed again with the same text keeps them, wherever it is in the document now; with its text they are deleted.

create table imagined_questions (
    document_id uuid not null,
    text_hash   bytea not null,
    number      smallint not null,
    ordinal     int not null,
    node_id     int not null,
    language    text not null,
    question    text not null,
    origin      text not null,
    created_at  timestamptz not null,
    terms       int[] not null,
    vec         halfvec,
    space       smallint,
    primary key (document_id, text_hash, number)
);
alter table imagined_questions alter column vec set storage plain;
alter table imagined_questions alter column vec set statistics 0, alter column question set statistics 0;
create index imagined_questions_passage on imagined_questions (document_id, ordinal);
create index imagined_questions_node on imagined_questions (node_id);
create index imagined_questions_terms on imagined_questions using gin (terms);
create index imagined_questions_waiting on imagined_questions (language) where space is null;

-- The vector's dimension is that of the passages' vectors, once it is known.
do $$
declare
    dim int := (select atttypmod from pg_attribute where attrelid = 'embeddings'::regclass and attname = 'vec');
begin
    if dim > 0 then
        execute format('alter table imagined_questions alter column vec type halfvec(%s)', dim);
        execute 'create index imagined_questions_hnsw on imagined_questions using hnsw (vec halfvec_cosine_ops) '
                'with (m = 16, ef_construction = 100)';
    end if;
end $$;

alter table imagined_questions enable row level security;
alter table imagined_questions force row level security;
create policy imagined_of_owner on imagined_questions to dtrag_owner using (true) with check (true);
create policy imagined_in_scope on imagined_questions for select to dtrag_reader using (
    (select nullif(current_setting('dtrag.full_scope', true), '')) = 'on'
    or node_id = any ((select nullif(current_setting('dtrag.scope', true), '')::int[])::int[])
);
-- The search role reads keys, terms and vectors, and takes the scope as a predicate; the column grant keeps the
-- questions from it.
create policy imagined_keys on imagined_questions for select to dtrag_search using (true);
grant select (document_id, number, ordinal, node_id, language, terms, vec, space) on imagined_questions to dtrag_search;
grant select on imagined_questions to dtrag_reader;
