-- Conversations. As the owner; content.sql decides whether a caller may see the documents of an answer.

-- name: add_turn
-- The first part locks the conversation until the end: turns at the same time get numbers one after another.
with opened as (
    insert into conversations (owner, conversation_id, created_at, updated_at, turns)
    values (:owner, :conversation_id, :at, :at, 1)
    on conflict (owner, conversation_id) do update
    set turns = conversations.turns + excluded.turns, updated_at = excluded.updated_at
    returning turns
), trimmed as (
    delete from conversation_turns t using opened o
    where t.owner = :owner and t.conversation_id = :conversation_id and t.turn <= o.turns - :max_turns
), traced as (
    insert into traces (trace_id, created_at, owner, trace)
    select * from unnest(:trace_ids::uuid[], :times::timestamptz[], :owners::text[], :traces::jsonb[])
    on conflict do nothing
)
insert into conversation_turns (owner, conversation_id, turn, question, answer, document_ids, created_at, trace_id)
select :owner, :conversation_id, turns, :question, :answer, :document_ids::uuid[], :at, :trace_id::uuid from opened
returning turn

-- name: turns
select t.turn, t.question, t.answer, t.document_ids, t.created_at, t.trace_id
from conversation_turns t
join conversations c on c.owner = t.owner and c.conversation_id = t.conversation_id
where t.owner = :owner and t.conversation_id = :conversation_id and c.updated_at >= :since
  and t.turn > c.turns - :limit
order by t.turn

-- name: turn_of
select t.turn, t.question, t.answer, t.document_ids, t.created_at, t.trace_id
from conversation_turns t
join conversations c on c.owner = t.owner and c.conversation_id = t.conversation_id
where t.owner = :owner and t.trace_id = :trace_id and c.updated_at >= :since

-- name: conversation
select c.conversation_id, c.created_at, c.updated_at, c.turns, t.question, c.title
from conversations c
join conversation_turns t on t.owner = c.owner and t.conversation_id = c.conversation_id
where c.owner = :owner and c.conversation_id = :conversation_id and c.updated_at >= :since
  and t.turn = greatest(1, c.turns - :max_turns + 1)

-- fragment: with_text
(:text::text = '' or strpos(lower(c.title), lower(:text::text)) > 0 or exists (
    select 1 from conversation_turns s
    where s.owner = c.owner and s.conversation_id = c.conversation_id
      and strpos(lower(s.question), lower(:text::text)) > 0
))

-- name: conversations
select c.conversation_id, c.created_at, c.updated_at, c.turns, t.question, c.title
from conversations c
join conversation_turns t on t.owner = c.owner and t.conversation_id = c.conversation_id
where c.owner = :owner and c.updated_at >= :since and t.turn = greatest(1, c.turns - :max_turns + 1) and {with_text}
order by c.updated_at desc, c.conversation_id
limit :limit offset :offset

-- name: conversation_count
select count(*) as total from conversations c where c.owner = :owner and c.updated_at >= :since and {with_text}

-- name: rename
update conversations set title = :title
where owner = :owner and conversation_id = :conversation_id and updated_at >= :since
returning conversation_id

-- name: delete_conversation
delete from conversations where owner = :owner and conversation_id = :conversation_id returning conversation_id

-- name: forget
delete from conversations where updated_at < :before
