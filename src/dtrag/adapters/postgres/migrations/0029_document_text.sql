-- The text of a document is stored once: `documents.text` has what no passage contains, the part before each passage and
-- the one behind the last, with U+001E between them (the rows of earlier versions, and of documents of which a passage is
-- no span, have all of it). This function puts `stored`, that column, and the passages together, each of which is looked
-- at once. It runs with the rights of its caller: the policies of the tables apply.
create function document_text(document uuid, stored text, characters int) returns text
language sql stable
as $$
select case when length(stored) = characters then stored else (
    with passages as (
        select row_number() over earlier as number, substr(text, 1 + greatest(
            max(end_offset) over (earlier rows between unbounded preceding and 1 preceding) - start_offset, 0
        )) as own
        from chunks where document_id = document
        window earlier as (order by start_offset, ordinal)
    )
    select string_agg(p.part || coalesce(own, ''), '' order by number)
    from unnest(string_to_array(stored, chr(30))) with ordinality as p (part, number) left join passages using (number)
) end
$$;
revoke all on function document_text(uuid, text, int) from public;
grant execute on function document_text(uuid, text, int) to dtrag_reader;
