-- The files that documents were read from, where the setting keep_originals says so: pages of them are shown to callers whose
-- key may see originals. Their content is compressed already. The policy has no sub-selects, which a cluster cannot have.

create table originals (
    document_id uuid primary key references documents on delete cascade,
    node_id     int not null,
    content     bytea not null
);
alter table originals alter column content set storage external, alter column content set statistics 0;
alter table originals enable row level security;
alter table originals force row level security;
create policy originals_of_owner on originals to dtrag_owner using (true) with check (true);
create policy originals_in_scope on originals for select to dtrag_reader using (
    nullif(current_setting('dtrag.full_scope', true), '') = 'on'
    or node_id = any (nullif(current_setting('dtrag.scope', true), '')::int[])
);
grant select on originals to dtrag_reader;

alter table api_keys add column originals boolean not null default false;
