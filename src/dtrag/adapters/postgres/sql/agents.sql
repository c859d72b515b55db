-- Agents, every edition of their manifests, and what their models spent on a day.

-- name: insert_agent
insert into agents (agent_id, name, edition, manifest, scope, created_by, created_at, updated_at)
values (:agent_id, :name, :edition, :manifest, :scope, :created_by, :created_at, :updated_at)

-- name: insert_edition
insert into agent_manifests (agent_id, edition, manifest, scope, created_by, created_at)
values (:agent_id, :edition, :manifest, :scope, :created_by, :created_at)

-- name: agent
select agent_id, edition, manifest, scope, created_by, created_at, updated_at from agents where agent_id = :agent_id

-- name: agents
select agent_id, edition, manifest, scope, created_by, created_at, updated_at
from agents order by created_at desc, agent_id

-- Optimistic locking: of two concurrent changes of an edition the second updates no row.
-- name: replace_agent
update agents
set name = :name, edition = :edition, manifest = :manifest, scope = :scope, updated_at = :updated_at
where agent_id = :agent_id and edition = :edition - 1
returning agent_id

-- name: delete_agent
delete from agents where agent_id = :agent_id returning agent_id

-- name: editions
select edition, manifest, scope, created_by, created_at
from agent_manifests where agent_id = :agent_id order by edition desc

-- name: charge
insert into agent_spending as spent (agent_id, day, calls, tokens, cost)
values (:agent_id, :day, :calls, :tokens, :cost)
on conflict (agent_id, day) do update
set calls = spent.calls + excluded.calls, tokens = spent.tokens + excluded.tokens, cost = spent.cost + excluded.cost
returning calls, tokens, cost

-- name: spending
select calls, tokens, cost from agent_spending where agent_id = :agent_id and day = :day

-- name: charge_public
insert into public_spending as spent (day, calls, tokens, cost) values (:day, :calls, :tokens, :cost)
on conflict (day) do update
set calls = spent.calls + excluded.calls, tokens = spent.tokens + excluded.tokens, cost = spent.cost + excluded.cost

-- name: public_spending
select calls, tokens, cost from public_spending where day = :day
