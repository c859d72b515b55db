-- Gate 2 in one statement: the passages with these keys, as far as row-level security shows them to the caller, in the
-- scope `nodes` (null: the whole tree). Of the first `cached` keys only the version. It runs with the rights of its caller,
-- and sets the scope for the transaction, which is the statement: the policies of the tables decide as for any other one.
-- Each query is one of its own: content is not joined with other tables, and the generation is read after the texts.
create function passages_in_scope(nodes text, document_ids uuid[], ordinals int[], cached int)
returns table (
    number int, -- position of the key, from 1; 0: `metadata` are the generation and the number of changes of vectors
    node_id int, processed_at timestamptz, fingerprint bytea,
    start_offset int, end_offset int, text text, breadcrumb text[], metadata jsonb,
    title text, source_uri text, source_path text, content_type text, language text, document_metadata jsonb
)
language plpgsql
as $$
#variable_conflict use_column
begin
    if nodes is null then
        set local dtrag.full_scope = 'on';
    else
        set local dtrag.full_scope = 'off';
        execute format('set local dtrag.scope = %L', nodes);
    end if;
    if cached > 0 then
        return query
            select k.number::int, c.node_id, d.processed_at, d.fingerprint,
                   null::int, null::int, null, null::text[], null::jsonb, null, null, null, null, null, null::jsonb
            from unnest(document_ids[:cached], ordinals[:cached]) with ordinality as k (document_id, ordinal, number)
            join chunks c on c.document_id = k.document_id and c.ordinal = k.ordinal
            join documents d on d.document_id = c.document_id;
    end if;
    if cached < cardinality(ordinals) then
        return query
            select cached + k.number::int, c.node_id, d.processed_at, d.fingerprint,
                   c.start_offset, c.end_offset, c.text, c.breadcrumb, c.metadata,
                   d.title, d.source_uri, d.source_path, d.content_type, d.language, d.metadata
            from unnest(document_ids[cached + 1 :], ordinals[cached + 1 :])
                 with ordinality as k (document_id, ordinal, number)
            join chunks c on c.document_id = k.document_id and c.ordinal = k.ordinal
            join documents d on d.document_id = c.document_id;
    end if;
    return query
        select 0, null::int, null::timestamptz, null::bytea, null::int, null::int, null, null::text[],
               (select jsonb_object_agg(s.name, s.value) from index_settings s where s.name in ('generation', 'vectors')),
               null, null, null, null, null, null::jsonb;
end;
$$;
revoke all on function passages_in_scope(text, uuid[], int[], int) from public;
grant execute on function passages_in_scope(text, uuid[], int[], int) to dtrag_reader;
