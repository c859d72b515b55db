-- Runs of evaluations. As the owner.

-- name: add
insert into evaluations (run_id, created_at, run) values (:run_id, :created_at, :run) on conflict do nothing

-- name: get
select run from evaluations where run_id = :run_id

-- name: newest
-- Without the rows: one run may have megabytes of questions and answers.
select run_id, created_at, summary.kind, summary.dataset, summary.version, summary.settings,
       json_array_length(summary.rows) as questions, summary.measures
from evaluations
cross join json_to_record(run) as summary (kind text, dataset text, version text, settings json, measures json, rows json)
where :last_at::timestamptz is null or (created_at, run_id) < (:last_at, :last_id::uuid)
order by created_at desc, run_id desc
limit :limit

-- name: delete
delete from evaluations where run_id = :run_id
