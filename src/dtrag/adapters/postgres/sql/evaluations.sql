-- Runs of evaluations. As the owner.

-- name: add
insert into evaluations (run_id, created_at, run) values (:run_id, :created_at, :run) on conflict do nothing

-- name: get
select run from evaluations where run_id = :run_id

-- name: newest
select run
from evaluations
where :last_at::timestamptz is null or (created_at, run_id) < (:last_at, :last_id::uuid)
order by created_at desc, run_id desc
limit :limit

-- name: delete
delete from evaluations where run_id = :run_id
