-- The case memory. What a caller reads, the reader reads under row-level security; everything else is done by the owner.

-- fragment: next
next as (update cbr_revision set revision = revision + 1 where name = 'cases' returning revision)

-- name: revision
select revision from cbr_revision where name = 'cases'

-- name: changes
select h.revision, h.case_id as changed_id, c.case_id, c.query, c.query_hash, c.category_path, c.node_id,
       c.quality_score, c.usage_count, c.status, case when :vectors then c.vector end as vector, c.space
from cbr_changes h
left join cbr_cases c on c.case_id = h.case_id
where h.revision > :known
order by h.revision
limit :limit

-- name: changed
with {next}
insert into cbr_changes (case_id, revision) select :case_id, revision from next
on conflict (case_id) do update set revision = excluded.revision

-- name: add_case
with added as (
    insert into cbr_cases (
        case_id, query, query_hash, category_path, node_id, content, chunk_ids, content_hashes, document_ids,
        quality_score, usage_count, success_rate, upvotes, downvotes, origin, author, status, as_of, answered_in,
        asked_in, metadata, vector, space, created_at, updated_at
    ) values (
        :case_id, :query, :query_hash, :category_path, :node_id, :content, :chunk_ids, :content_hashes, :document_ids,
        :quality_score, :usage_count, :success_rate, :upvotes, :downvotes, :origin, :author, :status, :as_of, :answered_in,
        :asked_in, :metadata, :vector, :space, :created_at, :updated_at
    )
    on conflict do nothing
    returning case_id
), next as (
    update cbr_revision set revision = revision + 1 where name = 'cases' and exists (select 1 from added)
    returning revision
)
insert into cbr_changes (case_id, revision) select added.case_id, next.revision from added, next
on conflict (case_id) do update set revision = excluded.revision

-- name: update_case
update cbr_cases set
    query = :query, query_hash = :query_hash, category_path = :category_path, node_id = :node_id, content = :content,
    chunk_ids = :chunk_ids, content_hashes = :content_hashes, document_ids = :document_ids,
    quality_score = :quality_score, usage_count = :usage_count, success_rate = :success_rate, upvotes = :upvotes,
    downvotes = :downvotes, status = :status, metadata = :metadata, vector = :vector, space = :space, updated_at = :updated_at, origin = :origin,
    author = :author, answered_in = :answered_in, asked_in = :asked_in
where case_id = :case_id

-- The interactions that name only this case.
-- name: delete_logs
delete from cbr_logs where case_ids @> array[:case_id]::text[] and case_ids <@ array[:case_id]::text[]

-- name: unname_case
update cbr_logs set
    suggested_case_ids = array_remove(suggested_case_ids, :case_id::text),
    picked_case_ids = array_remove(picked_case_ids, :case_id::text),
    shown_case_id = nullif(shown_case_id, :case_id::text), case_ids = array_remove(case_ids, :case_id::text)
where case_ids @> array[:case_id]::text[]

-- name: delete_case
delete from cbr_cases where case_id = :case_id

-- name: locked_case
select * from cbr_cases where case_id = :case_id for update

-- In the order of their ids, so that two processes that lock several wait for each other and not in a circle.
-- name: locked_cases
select * from cbr_cases where case_id = any (:case_ids) order by case_id for update

-- name: cases
select * from cbr_cases where case_id = any (:case_ids)

-- The first visible ones of these, in their order.
-- The revision of the store is in every row; in one without a case when none is visible.
-- name: nearest
select r.revision as store_revision, c.*
from cbr_revision r
left join (
    select seen.*
    from unnest(:case_ids::text[]) with ordinality as w (case_id, place)
    join cbr_cases seen on seen.case_id = w.case_id
    order by w.place
    limit :limit
) c on true
where r.name = 'cases'

-- name: without_vector
select * from cbr_cases
where status = 'active' and query <> '' and (space = any (:spaces)) is not true and (:after::text is null or case_id > :after)
order by case_id limit :limit

-- The vector belongs to this question: the case may have got another one since.
-- name: put_vector
update cbr_cases set vector = :vector, space = :space where case_id = :case_id and query = :query

-- name: page
select * from cbr_cases where :after::text is null or case_id > :after order by case_id limit :limit

-- name: votes
select * from cbr_votes where case_id = any (:case_ids) order by case_id, voted_at, voter, log_id

-- name: votes_of_voter
select * from cbr_votes where case_id = :case_id and voter = :voter

-- name: tally
select count(*) as votes, count(*) filter (where success) as successes from cbr_votes where case_id = :case_id

-- name: put_vote
insert into cbr_votes (case_id, voter, log_id, feedback, success, moved, voted_at)
values (:case_id, :voter, :log_id, :feedback, :success, :moved, :voted_at)
on conflict (case_id, voter, log_id) do update
set feedback = excluded.feedback, success = excluded.success, moved = excluded.moved, voted_at = excluded.voted_at

-- name: remove_votes
delete from cbr_votes where case_id = :case_id and log_id = any (:log_ids)

-- name: forget_support
delete from cbr_votes where case_id = :case_id and feedback in ('thumbs_up', 'selected')

-- name: forget_confirmations
delete from cbr_decisions where case_id = :case_id and correct

-- name: put_decision
insert into cbr_decisions (case_id, asker, log_id, kind, correct, decided_at, asked_in)
select case_id, :asker, :log_id, :kind, :correct, :decided_at, :asked_in::int[] from cbr_cases where case_id = :case_id
on conflict (case_id, asker) do update
set log_id = excluded.log_id, kind = excluded.kind, correct = excluded.correct, decided_at = excluded.decided_at,
    asked_in = excluded.asked_in
where excluded.kind = 'vote' or cbr_decisions.kind = 'replay'

-- name: decisions
select * from cbr_decisions where case_id = any (:case_ids) order by case_id, asker

-- name: decision_counts
select count(*) filter (where correct) as correct, count(*) as total
from cbr_decisions where :case_id::text is null or case_id = :case_id

-- name: decisions_by_case
select case_id, count(*) filter (where correct) as correct, count(*) as total
from cbr_decisions
where (:case_id::text is null or case_id = :case_id) and asked_in <@ :nodes::int[]
group by case_id

-- As the reader.
-- name: ids_in_scope
select case_id from cbr_cases where case_id = any (:case_ids)

-- An interaction of its own for a vote without one, so that votes on it wait for each other.
-- name: open_log
insert into cbr_logs (
    log_id, logged_at, kind, query, query_hash, category_path, node_id, suggested_case_ids, picked_case_ids, case_ids,
    chunk_ids, content_hashes, document_ids, execution_time_ms, similarity_method, user_id, asked_in, details
)
select :log_id, :at, 'suggestion', query, query_hash, category_path, node_id, '{}', '{}', '{}', '{}', '{}', '{}', 0, '',
       :voter, asked_in, '{}'
from cbr_cases where case_id = :case_id
on conflict do nothing

-- name: locked_log
select * from cbr_logs where log_id = :log_id for update

-- An interaction with feedback is replaced only by one that was voted on.
-- name: put_log
insert into cbr_logs (
    log_id, logged_at, kind, query, query_hash, category_path, node_id, suggested_case_ids, picked_case_ids,
    shown_case_id, case_ids, chunk_ids, content_hashes, document_ids, success, feedback, execution_time_ms,
    similarity_method, user_id, as_of, asked_in, details
) values (
    :log_id, :logged_at, :kind, :query, :query_hash, :category_path, :node_id, :suggested_case_ids, :picked_case_ids,
    :shown_case_id, :case_ids, :chunk_ids, :content_hashes, :document_ids, :success, :feedback, :execution_time_ms,
    :similarity_method, :user_id, :as_of, :asked_in, :details
)
on conflict (log_id) do update
set logged_at = excluded.logged_at, kind = excluded.kind, query = excluded.query, query_hash = excluded.query_hash,
    category_path = excluded.category_path, node_id = excluded.node_id,
    suggested_case_ids = excluded.suggested_case_ids, picked_case_ids = excluded.picked_case_ids,
    shown_case_id = excluded.shown_case_id, case_ids = excluded.case_ids, chunk_ids = excluded.chunk_ids,
    content_hashes = excluded.content_hashes, document_ids = excluded.document_ids, success = excluded.success,
    feedback = excluded.feedback, execution_time_ms = excluded.execution_time_ms,
    similarity_method = excluded.similarity_method, user_id = excluded.user_id, as_of = excluded.as_of,
    asked_in = excluded.asked_in, details = excluded.details
where :voted or cbr_logs.feedback is null

-- name: log
select * from cbr_logs where log_id = :log_id

-- name: logs
select * from cbr_logs where not :success_only or success order by logged_at desc, log_id desc limit :limit

-- name: log_page
select * from cbr_logs where :after::text is null or log_id > :after order by log_id limit :limit

-- name: shown_since
select shown_case_id as case_id, max(logged_at) as shown_at
from cbr_logs where logged_at >= :since and shown_case_id is not null group by shown_case_id

-- name: forget_logs
delete from cbr_logs where logged_at < :before

-- name: case_totals
select count(*) filter (where status = 'active') as total_cases,
       count(*) filter (where status <> 'active') as archived_cases,
       coalesce(avg(quality_score), 0) as average_quality_score, coalesce(sum(usage_count), 0) as total_usage_count
from cbr_cases

-- name: most_used
select case_id from cbr_cases where usage_count > 0 order by usage_count desc, case_id limit 1

-- name: largest_categories
select node_id, max(category_path) as category_path, count(*) as cases
from cbr_cases group by node_id, case when node_id is null then category_path end
order by cases desc, category_path, node_id limit 10

-- name: interactions
select count(*) as total_interactions,
       coalesce(avg(execution_time_ms) filter (where kind = 'suggestion' and similarity_method <> ''), 0)
           as average_response_time_ms
from cbr_logs

-- name: voters
select user_id, kind = 'answer' as answered, count(*) as interactions,
       count(*) filter (where success) as successes
from cbr_logs where feedback is not null group by 1, 2 order by 1, 2

-- name: methods
select similarity_method, count(*) as logs
from cbr_logs where similarity_method <> '' group by similarity_method order by similarity_method
