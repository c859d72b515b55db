-- The index of mode strict took most of the database's time while documents were written, for a mode that few ask for:
-- it is created when that mode is first used (adapters/postgres/lexical/strict_index.py).
drop index if exists chunks_strict;

-- The strict ranker among given passages: for large collections that do not have the index yet.
create function strict_among(query text, document_ids uuid[], ordinals int[], wanted int)
returns table (document_id uuid, ordinal int, score real)
language plpgsql stable security definer
set search_path = dtrag, public, pg_temp
as $$
declare
    everything boolean := coalesce(nullif(current_setting('dtrag.full_scope', true), ''), 'off') = 'on';
    nodes int[] := nullif(current_setting('dtrag.scope', true), '')::int[];
begin
    return query
        select c.document_id, c.ordinal,
               ts_rank_cd(to_tsvector('english', c.text), plainto_tsquery('english', strict_among.query), 32|1)
        from unnest(strict_among.document_ids, strict_among.ordinals) as k(document_id, ordinal)
        join chunks c on c.document_id = k.document_id and c.ordinal = k.ordinal
        where to_tsvector('english', c.text) @@ plainto_tsquery('english', strict_among.query)
          and (everything or c.node_id = any (nodes))
        order by 3 desc, 1, 2
        limit wanted;
end;
$$;
revoke all on function strict_among(text, uuid[], int[], int) from public;
grant execute on function strict_among(text, uuid[], int[], int) to dtrag_search;
