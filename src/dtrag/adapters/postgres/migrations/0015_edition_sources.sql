-- Which files contain an edition. The document of the edition names the one that was read last (source_id); when that does
-- not contain it any more, it goes to another one. Rows are written with the document, and stay when it is replaced.
create table edition_sources (
    document_id uuid not null,
    source_id   uuid not null,
    source_uri  text not null,
    source_path text not null,
    listed_at   timestamptz not null,
    primary key (document_id, source_id)
);
create index edition_sources_source on edition_sources (source_id);

insert into edition_sources (document_id, source_id, source_uri, source_path, listed_at)
select document_id, source_id, source_uri, source_path, processed_at
from documents
where work_id is not null and not retained;
