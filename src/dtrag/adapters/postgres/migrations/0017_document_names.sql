-- Lists of documents are searched by title and file name, and sorted by title or size. Both columns are folded by
-- core/document_listing.py when a document is written; rows from before get the same from SQL, as far as the
-- locale of the database folds letters.

alter table documents
    add column search_name text not null default '',
    add column sort_title  text collate "C" not null default '';

update documents
set search_name = lower(normalize(title || ' ' || case
        when source_uri not like 'file:%' then regexp_replace(source_uri, '^upload:', '')
        when source_path <> '' then source_path
        else regexp_replace(split_part(source_uri, '#', 1), '^.*/', '')
    end, NFKC)),
    sort_title = left(lower(normalize(title, NFKC)), 100);

create index documents_title on documents (sort_title, document_id);
create index documents_size on documents (characters desc, document_id);
