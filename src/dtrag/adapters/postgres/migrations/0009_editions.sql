-- Editions of regulations: one document an edition. Documents that are no edition have NULL in all of these columns, and no
-- row in passage_validity.

alter table documents
    -- Code and folded name: the work, within a category. `work_id` is set when the edition has a date.
    add column work_code      text,
    add column work_name      text,
    add column work_id        uuid,
    add column effective_from date,
    -- The day on which the next edition takes effect, or the regulation is repealed (exclusive; NULL: none).
    add column superseded_from date,
    -- The day on which the text says that it ends.
    add column ends_on        date,
    -- The day on which a later edition took effect that has been removed since.
    add column followed_on    date,
    -- Label of a provision -> day on which it takes effect, where that is not effective_from.
    add column article_dates  jsonb,
    -- Folded names of the regulations that this one repeals.
    add column repeals        text[],
    -- A superseded edition that its file no longer contains.
    add column retained       boolean not null default false;

create index documents_work on documents (work_id) where work_id is not null;
create index documents_work_name on documents (work_name) where work_name is not null;
create index documents_repeals on documents using gin (repeals) where repeals is not null;

-- From which day until which (exclusive; NULL: open) the passages of an edition are valid. Derived from the editions of a
-- work whenever one of them is written or removed, in the same transaction (adapters/postgres/editions.py).
create table passage_validity (
    document_id uuid not null references documents on delete cascade,
    first       int not null,
    last        int not null,
    valid_from  date not null,
    valid_until date,
    primary key (document_id, first)
);

grant select on passage_validity to dtrag_search, dtrag_reader;
