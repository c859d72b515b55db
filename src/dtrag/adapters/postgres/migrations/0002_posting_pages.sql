-- The lexical index as immutable segments with postings in pages, instead of a GIN index over the rows and a vector of
-- weights in each. Postings hold occurrences, not weights: nothing is recomputed when the mean length changes.

drop table lexical_index;
drop table statistics_segments;
delete from index_settings where name = 'mean_lengths';

-- What each passage holds, one row a passage: the source from which segments can be built again, and what a deleted
-- document takes out of the statistics. Arrays as little-endian bytes: terms int32, frequencies uint8 (quarters).
create table lexical_index (
    document_id uuid not null references documents on delete cascade,
    ordinal     int not null,
    node_id     int not null,
    language    text not null,
    length      int not null,
    terms       bytea not null,
    frequencies bytea not null,
    primary key (document_id, ordinal)
) with (toast_tuple_target = 8160);
-- Not compressed: random numbers do not get smaller, and trying costs more than the writing.
alter table lexical_index alter column terms set storage external, alter column frequencies set storage external;
alter table lexical_index alter column terms set statistics 0, alter column frequencies set statistics 0;

-- The head of a segment; see core/ranking/segments.py. It is opened before its documents are written and counted after them; an
-- uncounted one belongs to a batch in progress or to a crash, after which it is rebuilt from lexical_index.
create table lexical_segments (
    segment_id  uuid primary key,
    counted     boolean not null,
    created_at  timestamptz not null,
    passages    int not null default 0,
    languages   text[] not null default '{}',
    documents   bytea not null default '',
    chunks      bytea not null default '',
    term_ids    bytea not null default '',
    frequencies bytea not null default ''
);
alter table lexical_segments
    alter column documents set storage external, alter column chunks set storage external,
    alter column term_ids set storage external, alter column frequencies set storage external;

-- The run of a segment's postings, cut every so many (adapters/postgres/lexical/rows.py); a row stays within a block.
create table posting_pages (
    segment_id uuid not null references lexical_segments on delete cascade,
    page       int not null,
    postings   bytea not null,
    primary key (segment_id, page)
) with (toast_tuple_target = 8160);
alter table posting_pages alter column postings set storage external, alter column postings set statistics 0;

-- Documents that are gone though segments still hold them, and what they had counted there. A merge that leaves them
-- out folds these rows into one.
create table lexical_corrections (
    correction_id uuid primary key,
    created_at    timestamptz not null,
    document_ids  uuid[] not null,
    origins       uuid[] not null,
    passages      int not null,
    lengths       jsonb not null,
    term_ids      bytea not null,
    frequencies   bytea not null
);

create index documents_metadata on documents using gin (metadata jsonb_path_ops);

grant select on lexical_index, lexical_segments, posting_pages, lexical_corrections to dtrag_search;

-- Which documents have some facts in their metadata. The search role may ask, but not read the metadata.
create function documents_having(facts jsonb) returns setof uuid
language plpgsql stable security definer
set search_path = dtrag, public, pg_temp
as $$
begin
    return query select d.document_id from documents d where d.metadata @> facts;
end;
$$;
revoke all on function documents_having(jsonb) from public;
grant execute on function documents_having(jsonb) to dtrag_search;

-- An index that was filled before has to be rebuilt; searches say so until it is done.
insert into index_settings
select 'rebuilding', 'true' where exists (select from documents)
on conflict (name) do update set value = excluded.value;
update index_settings set value = to_jsonb(value::text::bigint + 1) where name = 'generation';
