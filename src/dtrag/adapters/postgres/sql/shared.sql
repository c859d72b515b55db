-- Fragments of statements of several files.

-- name: document_text
-- The text of the document `d`. `d.text` has what no passage contains, the part before each passage and the one behind the
-- last, with U+001E between them (rows of earlier versions, and of documents of which a passage is no span, have all of
-- it). Each passage is looked at once.
case when length(d.text) = d.characters then d.text else coalesce((
    select string_agg(p.part || o.own, '' order by o.number)
    from (
        select row_number() over earlier as number, substr(c.text, 1 + greatest(
            max(c.end_offset) over (earlier rows between unbounded preceding and 1 preceding) - c.start_offset, 0
        )) as own
        from chunks c where c.document_id = d.document_id
        window earlier as (partition by c.document_id order by c.start_offset, c.ordinal)
    ) o
    join unnest(string_to_array(d.text, chr(30))) with ordinality as p (part, number) on p.number = o.number
), '') || split_part(d.text, chr(30), -1) end
