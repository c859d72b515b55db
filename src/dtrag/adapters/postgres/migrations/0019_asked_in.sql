-- The branches of the scope in which a question was asked: who does not see all of them reads none of its words. Null:
-- the whole tree, also of rows whose scope is not known. Empty: a case by hand, whose category is its audience.

alter table cbr_cases add column asked_in int[];
alter table cbr_logs add column asked_in int[];
alter table cbr_decisions add column asked_in int[];

-- A case of an answer or a review stays one when it was changed by hand.
update cbr_cases set asked_in = case
    when origin = 'manual' and case_id !~ '^(answer|review)-' then '{}'::int[] else nullif(answered_in, '{}'::int[])
end;
update cbr_logs
set asked_in = (select array_agg(node::int) from jsonb_array_elements_text(details -> 'answered_in') as node)
where jsonb_typeof(details -> 'answered_in') = 'array';

-- As `Scope.reads`.
alter policy cases_in_scope on cbr_cases using (
    (select nullif(current_setting('dtrag.full_scope', true), '')) = 'on'
    or node_id = any ((select nullif(current_setting('dtrag.scope', true), '')::int[])::int[])
    and asked_in <@ (select nullif(current_setting('dtrag.scope', true), '')::int[])
    and not exists (
        select from unnest(document_ids) as cited (id)
        where not exists (select from documents d where d.document_id = cited.id)
    )
);
alter policy logs_in_scope on cbr_logs using (
    (select nullif(current_setting('dtrag.full_scope', true), '')) = 'on'
    or node_id = any ((select nullif(current_setting('dtrag.scope', true), '')::int[])::int[])
    and asked_in <@ (select nullif(current_setting('dtrag.scope', true), '')::int[])
    and not exists (
        select from unnest(document_ids) as cited (id)
        where not exists (select from documents d where d.document_id = cited.id)
    )
    and not exists (
        select from unnest(case_ids) as named (id)
        where not exists (select from cbr_cases c where c.case_id = named.id)
    )
);
