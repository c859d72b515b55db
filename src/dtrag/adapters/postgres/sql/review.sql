-- Classification and the review queue. As the owner, but for what callers are shown: that is read as dtrag_reader.

-- name: samples
-- Documents that a reviewer decided, or that were classified with high confidence. Ids are hashes of addresses: the
-- first of a node are a random sample.
select s.node_id, s.document_id, s.decided, i.terms, i.frequencies
from (
    select d.document_id, d.node_id, g.document_id is not null as decided,
           row_number() over (partition by d.node_id order by (g.document_id is null), d.document_id) as place
    from documents d
    left join classification_signals g on g.document_id = d.document_id
    left join classification_placements p on p.document_id = d.document_id
    where d.node_id = any (:nodes::int[])
      and (g.document_id is not null or p.document_id is null or p.confidence >= :trusted)
) s
join lexical_index i on i.document_id = s.document_id and i.ordinal < :passages
where s.place <= :per_node
order by s.document_id, i.ordinal

-- name: sample_vectors
select document_id, avg(vec)::vector as vec
from embeddings
where document_id = any (:document_ids) and ordinal < :passages
  and space = (select s.space from vector_spaces s where s.id = :space)
group by document_id

-- name: decided
select document_id, node_id from classification_signals where document_id = any (:document_ids)

-- name: forget_placements
delete from classification_placements where document_id = any (:document_ids)

-- name: forget_waiting
delete from review_queue where document_id = any (:document_ids) and status = 'waiting'

-- name: add_placements
insert into classification_placements (document_id, confidence, placed_at)
select * from unnest(:document_ids::uuid[], :confidences::real[], :times::timestamptz[])
on conflict (document_id) do update set confidence = excluded.confidence, placed_at = excluded.placed_at

-- name: add_item
insert into review_queue (item_id, kind, document_id, agent_id, node_id, proposal, confidence, status, created_at)
values (:item_id, :kind, :document_id, :agent_id, :node_id, :proposal, :confidence, 'waiting', :created_at)

-- name: same_answer
-- The waiting answer to the same question: of the same agent and scope, so that no answer is missing for a reviewer
-- because of one that he may not see.
select item_id from review_queue
where status = 'waiting' and kind = 'answer'
  and proposal ->> 'question_hash' = :question_hash
  and coalesce(proposal ->> 'as_of', '') = :as_of
  and agent_id is not distinct from :agent_id::uuid
  and coalesce(proposal -> 'grant', 'null') = :grant::jsonb

-- name: surest_answer
-- The most confident waiting answer, and the number of all.
select item_id, confidence, count(*) over () as total
from review_queue
where status = 'waiting' and kind = 'answer'
order by confidence desc, created_at, item_id
limit 1

-- name: forget_item
delete from review_queue where item_id = :item_id

-- fragment: seen
-- As dtrag_reader in the caller's scope: the documents that these items name, as far as the policy shows them. Documents and
-- the queue are never joined otherwise: in a cluster, they are in different places.
seen as materialized (
    select document_id, title from documents
    where document_id in (
        select document_id from items where kind = 'classification'
        union all
        select used.id::uuid from items, jsonb_array_elements_text(proposal -> 'document_ids') as used (id)
        where kind <> 'classification' and not :everything
    )
)

-- fragment: visible
-- Documents outside the scope, and therefore their items, are not visible. An answer is visible to callers who see all the
-- branches of its agent (:grants) and everything that it cites: documents that the answer does not cite influenced it, too.
from items q left join seen d on d.document_id = q.document_id
where case q.kind
      when 'classification' then d.document_id is not null
      else :everything or (q.proposal -> 'grant') = any (:grants::jsonb[]) and not exists (
          select 1 from jsonb_array_elements_text(q.proposal -> 'document_ids') as used (id)
          where used.id::uuid not in (select s.document_id from seen s)
      )
  end

-- name: waiting
-- The confidence of a classification comes from the whole tree: callers with a narrower scope get the order of time.
with items as materialized (select * from review_queue where status = 'waiting'), {seen}
select q.item_id, q.kind, q.document_id, q.agent_id, q.node_id, q.proposal, q.confidence, q.status, q.note,
       q.created_at, q.decided_at, q.decided_by, coalesce(d.title, '') as title, count(*) over () as total
{visible}
order by case when :everything then q.confidence end, q.created_at, q.item_id
limit :limit offset :offset

-- name: item
-- Binary results have a single as the nearest double (.30000001), not as it was written.
with items as materialized (select * from review_queue where item_id = :item_id), {seen}
select q.item_id, q.kind, q.document_id, q.agent_id, q.node_id, q.proposal, q.confidence::text::float8 as confidence,
       q.status, q.note, q.created_at, q.decided_at, q.decided_by, coalesce(d.title, '') as title
{visible}

-- name: answer_grants
-- The branches of the agents whose answers are in the queue, each set once.
select distinct proposal -> 'grant' as branches from review_queue
where kind = 'answer' and jsonb_typeof(proposal -> 'grant') = 'array'

-- name: answered
with items as materialized (
    select * from review_queue where kind = 'answer' and status in ('approved', 'corrected') and proposal ? 'chosen'
), {seen}
select q.item_id, q.kind, q.document_id, q.agent_id, q.node_id, q.proposal, q.confidence::text::float8 as confidence,
       q.status, q.note, q.created_at, q.decided_at, q.decided_by, coalesce(d.title, '') as title
{visible}
order by q.decided_at desc, q.item_id
limit :limit

-- name: settle_item
update review_queue
set status = :status, note = :note, decided_at = :at, decided_by = :by, proposal = proposal || :addition::jsonb
where item_id = :item_id and status = 'waiting'
returning item_id

-- name: set_signals
insert into classification_signals (document_id, node_id, decided_at, decided_by)
select document_id, :node_id, :at, :by from unnest(:document_ids::uuid[]) as d (document_id)
on conflict (document_id) do update
set node_id = excluded.node_id, decided_at = excluded.decided_at, decided_by = excluded.decided_by
