-- Experiences of ways to answer, and the share of answers that explore. As the owner.

-- name: add
insert into experiences (experience_id, at, state, action, propensity, reward, next_state, explored)
select * from unnest(
    :ids::text[], :times::timestamptz[], :states::smallint[], :actions::smallint[], :propensities::float8[],
    :rewards::float8[], :next_states::smallint[], :explored::boolean[]
)
on conflict do nothing

-- name: trim
delete from experiences
where (at, experience_id) <= (
    select at, experience_id from experiences order by at desc, experience_id desc limit 1 offset :most
)

-- name: follow
update experiences set next_state = :state where experience_id = :experience_id

-- name: experiences
select experience_id, at, state, action, propensity, reward, next_state, explored from experiences
order by at, experience_id

-- name: exploration
select share from exploration

-- name: explore
insert into exploration (share) values (:share) on conflict (single) do update set share = excluded.share
