-- The text of a document is stored once: `documents.text` contains what no passage does (the rows of earlier versions, and
-- of documents of which a passage is no span, all of it). This function puts `stored`, that column, and the passages together.
-- It runs with the rights of its caller: the policies of the tables apply.
create function document_text(document uuid, stored text, characters int) returns text
language plpgsql stable
as $$
declare
    parts text[] := '{}';
    used int := 0;
    reached int := 0;
    gap int;
    passage record;
begin
    if length(stored) = characters then
        return stored;
    end if;
    for passage in
        select start_offset, end_offset, text from chunks where document_id = document order by start_offset, ordinal
    loop
        gap := greatest(passage.start_offset - reached, 0);
        parts := parts || array[
            substr(stored, used + 1, gap), substr(passage.text, 1 + greatest(reached - passage.start_offset, 0))
        ];
        used := used + gap;
        reached := greatest(reached, passage.end_offset);
    end loop;
    return array_to_string(parts, '') || substr(stored, used + 1);
end;
$$;
revoke all on function document_text(uuid, text, int) from public;
grant execute on function document_text(uuid, text, int) to dtrag_reader;
