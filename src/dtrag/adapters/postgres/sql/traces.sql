-- What happened in runs of the pipeline, found by id and by age. As the owner.

-- name: add_traces
insert into traces (trace_id, created_at, owner, trace)
select * from unnest(:trace_ids::uuid[], :times::timestamptz[], :owners::text[], :traces::jsonb[])
on conflict do nothing

-- name: trace
select trace from traces where trace_id = :trace_id and created_at >= :since

-- name: newest
select created_at, trace_id, trace
from traces
where (:owner::text is null or owner = :owner) and created_at >= :since
  and (:until::timestamptz is null or created_at < :until)
  and (:last_at::timestamptz is null or (created_at, trace_id) < (:last_at, :last_id::uuid))
order by created_at desc, trace_id desc
limit :limit

-- name: outcomes
select count(*) as traces,
       count(*) filter (where trace ->> 'decision' <> 'abstain' and trace -> 'cited' <> '[]') as answered
from (select trace from traces where created_at >= :since order by created_at desc, trace_id desc limit :limit) newest

-- name: forget
delete from traces where created_at < :before

-- name: put_feedback
insert into answer_feedback (trace_id, voter, feedback, reason, given_at)
values (:trace_id, :voter, :feedback, :reason, :given_at)
on conflict (trace_id, voter) do update
set feedback = excluded.feedback, reason = excluded.reason, given_at = excluded.given_at

-- name: feedback_by
select trace_id, voter, feedback, reason, given_at
from answer_feedback
where voter = :voter and trace_id = any(:trace_ids)

-- name: forget_feedback
delete from answer_feedback where given_at < :before
