-- The case memory in a file of its own. Lists, paths and metadata are JSON; times are ISO 8601 in UTC.

-- name: write_ahead
pragma journal_mode = wal

-- name: on_disk
pragma synchronous = full

-- name: format
pragma user_version

-- name: write_format
pragma user_version = {}

-- name: begin
begin immediate

-- name: commit
commit

-- name: rollback
rollback

-- name: ping
select 1

-- The columns that the acceptance texts name; the others are added, so that a file of other origin is read, too.
-- name: create_cases
create table if not exists cbr_cases (
    case_id       text primary key,
    query         text not null,
    category_path text not null,
    content       text not null,
    quality_score real not null default 0.0,
    usage_count   integer not null default 0,
    success_rate  real not null default 0.0,
    metadata      text not null default '{}',
    created_at    text not null default '1970-01-01T00:00:00+00:00',
    updated_at    text not null default '1970-01-01T00:00:00+00:00'
)

-- name: create_logs
create table if not exists cbr_logs (
    log_id             text primary key,
    timestamp          text not null,
    query              text not null,
    category_path      text,
    suggested_case_ids text,
    picked_case_ids    text,
    success_flag       integer,
    feedback           text,
    execution_time_ms  real,
    similarity_method  text,
    user_id            text
)

-- name: create_decisions
create table if not exists cbr_decisions (
    case_id    text not null,
    asker      text not null,
    log_id     text not null,
    kind       text not null,
    correct    integer not null,
    decided_at text not null,
    primary key (case_id, asker)
) without rowid

-- name: columns
select name from pragma_table_info(:table)

-- name: cbr_cases.query_hash
alter table cbr_cases add column query_hash blob not null default x''

-- name: cbr_cases.node_id
alter table cbr_cases add column node_id integer

-- name: cbr_cases.passages
alter table cbr_cases add column passages text not null default '[]'

-- name: cbr_cases.origin
alter table cbr_cases add column origin text not null default 'manual'

-- name: cbr_cases.author
alter table cbr_cases add column author text not null default ''

-- name: cbr_cases.as_of
alter table cbr_cases add column as_of text

-- name: cbr_cases.answered_in
alter table cbr_cases add column answered_in text

-- name: cbr_cases.asked_in
alter table cbr_cases add column asked_in text;
update cbr_cases set asked_in = case
    when origin = 'manual' and case_id not glob 'answer-*' and case_id not glob 'review-*' then '[]'
    else nullif(answered_in, '[]')
end;

-- name: cbr_cases.upvotes
alter table cbr_cases add column upvotes integer not null default 0

-- name: cbr_cases.downvotes
alter table cbr_cases add column downvotes integer not null default 0

-- name: cbr_cases.status
alter table cbr_cases add column status text not null default 'active'

-- name: cbr_cases.vector
alter table cbr_cases add column vector blob

-- name: cbr_cases.space
alter table cbr_cases add column space text;
update cbr_cases set vector = null;

-- name: cbr_logs.query_hash
alter table cbr_logs add column query_hash blob not null default x''

-- name: cbr_logs.node_id
alter table cbr_logs add column node_id integer

-- name: cbr_logs.kind
alter table cbr_logs add column kind text not null default 'suggestion'

-- name: cbr_logs.passages
alter table cbr_logs add column passages text not null default '[]'

-- name: cbr_logs.shown_case_id
alter table cbr_logs add column shown_case_id text

-- name: cbr_logs.as_of
alter table cbr_logs add column as_of text

-- name: cbr_logs.details
alter table cbr_logs add column details text not null default '{}'

-- name: cbr_logs.asked_in
alter table cbr_logs add column asked_in text;
update cbr_logs set asked_in = nullif(json_extract(details, '$.answered_in'), '[]');

-- name: cbr_decisions.asked_in
alter table cbr_decisions add column asked_in text

-- `moved`: by how much the vote moved the quality. `cbr_changes` numbers the last change of every case, deleted ones
-- included; `cbr_log_cases` finds the interactions that name a case. Triggers keep both, also for changes by other
-- programs. Without `or replace`: a conflict clause of the outer statement would be used instead of it.
-- name: create_rest
create table if not exists cbr_votes (
    case_id  text not null,
    voter    text not null,
    log_id   text not null,
    feedback text not null,
    success  integer not null,
    moved    real not null,
    voted_at text not null,
    primary key (case_id, voter, log_id)
) without rowid;
create table if not exists cbr_changes (
    case_id  text primary key,
    revision integer not null
) without rowid;
create unique index if not exists cbr_changes_revision on cbr_changes (revision);
create table if not exists cbr_log_cases (
    case_id text not null,
    log_id  text not null,
    primary key (case_id, log_id)
) without rowid;
create index if not exists cbr_log_cases_of_log on cbr_log_cases (log_id, case_id);
create index if not exists cbr_logs_timestamp on cbr_logs (timestamp, log_id);
create trigger if not exists cbr_case_added after insert on cbr_cases begin
    update cbr_changes set revision = (select max(revision) + 1 from cbr_changes) where case_id = new.case_id;
    insert into cbr_changes select new.case_id, (select coalesce(max(revision), 0) + 1 from cbr_changes)
    where not exists (select 1 from cbr_changes where case_id = new.case_id);
end;
create trigger if not exists cbr_case_changed after update on cbr_cases begin
    update cbr_changes set revision = (select max(revision) + 1 from cbr_changes) where case_id = new.case_id;
    insert into cbr_changes select new.case_id, (select coalesce(max(revision), 0) + 1 from cbr_changes)
    where not exists (select 1 from cbr_changes where case_id = new.case_id);
end;
create trigger if not exists cbr_case_renamed after update of case_id on cbr_cases when old.case_id <> new.case_id begin
    update cbr_changes set revision = (select max(revision) + 1 from cbr_changes) where case_id = old.case_id;
    insert into cbr_changes select old.case_id, (select coalesce(max(revision), 0) + 1 from cbr_changes)
    where not exists (select 1 from cbr_changes where case_id = old.case_id);
end;
drop trigger if exists cbr_case_deleted;
create trigger cbr_case_deleted after delete on cbr_cases begin
    update cbr_changes set revision = (select max(revision) + 1 from cbr_changes) where case_id = old.case_id;
    insert into cbr_changes select old.case_id, (select coalesce(max(revision), 0) + 1 from cbr_changes)
    where not exists (select 1 from cbr_changes where case_id = old.case_id);
    delete from cbr_votes where case_id = old.case_id;
    delete from cbr_decisions where case_id = old.case_id;
    delete from cbr_logs where log_id in (
        select log_id from cbr_log_cases own where case_id = old.case_id and not exists (
            select 1 from cbr_log_cases other where other.log_id = own.log_id and other.case_id <> old.case_id
        )
    );
    update cbr_logs set
        suggested_case_ids = (
            select json_group_array(value) from json_each(coalesce(suggested_case_ids, '[]')) where value <> old.case_id
        ),
        picked_case_ids = (
            select json_group_array(value) from json_each(coalesce(picked_case_ids, '[]')) where value <> old.case_id
        ),
        shown_case_id = nullif(shown_case_id, old.case_id)
    where log_id in (select log_id from cbr_log_cases where case_id = old.case_id);
    delete from cbr_log_cases where case_id = old.case_id;
end;
create trigger if not exists cbr_log_added after insert on cbr_logs begin
    delete from cbr_log_cases where log_id = new.log_id and case_id in (
        select value from json_each(coalesce(new.suggested_case_ids, '[]'))
        union select value from json_each(coalesce(new.picked_case_ids, '[]'))
        union select new.shown_case_id
    );
    insert into cbr_log_cases
    select value, new.log_id from json_each(coalesce(new.suggested_case_ids, '[]'))
    union select value, new.log_id from json_each(coalesce(new.picked_case_ids, '[]'))
    union select new.shown_case_id, new.log_id where new.shown_case_id is not null;
end;
create trigger if not exists cbr_log_deleted after delete on cbr_logs begin
    delete from cbr_log_cases
    where log_id = old.log_id and case_id in (
        select value from json_each(coalesce(old.suggested_case_ids, '[]'))
        union select value from json_each(coalesce(old.picked_case_ids, '[]'))
        union select old.shown_case_id where old.shown_case_id is not null
    );
end;

-- Cases of a file that was made without these triggers.
-- name: number_unnumbered
insert into cbr_changes (case_id, revision)
select case_id, (select coalesce(max(revision), 0) from cbr_changes) + row_number() over (order by case_id)
from cbr_cases where case_id not in (select case_id from cbr_changes)

-- name: add_case
insert into cbr_cases (
    case_id, query, category_path, content, quality_score, usage_count, success_rate, metadata, created_at, updated_at,
    query_hash, node_id, passages, origin, author, as_of, upvotes, downvotes, status, vector, space,
    answered_in, asked_in
) values (
    :case_id, :query, :category_path, :content, :quality_score, :usage_count, :success_rate, :metadata, :created_at,
    :updated_at, :query_hash, :node_id, :passages, :origin, :author, :as_of, :upvotes, :downvotes, :status, :vector, :space,
    :answered_in, :asked_in
)
on conflict (case_id) do nothing

-- name: update_case
update cbr_cases set
    query = :query, category_path = :category_path, content = :content, quality_score = :quality_score,
    usage_count = :usage_count, success_rate = :success_rate, metadata = :metadata, updated_at = :updated_at,
    query_hash = :query_hash, node_id = :node_id, passages = :passages, upvotes = :upvotes, downvotes = :downvotes,
    status = :status, vector = :vector, space = :space, origin = :origin, author = :author, answered_in = :answered_in,
    asked_in = :asked_in
where case_id = :case_id

-- name: delete_case
delete from cbr_cases where case_id = :case_id

-- name: cases
select * from cbr_cases where case_id in (select value from json_each(:case_ids))

-- name: without_vector
select * from cbr_cases
where status = 'active' and query <> '' and (space is null or space not in (select value from json_each(:spaces)))
      and (:after is null or case_id > :after)
order by case_id limit :limit

-- The vector belongs to this question: the case may have got another one since.
-- name: put_vector
update cbr_cases set vector = :vector, space = :space where case_id = :case_id and query = :query

-- name: page
select * from cbr_cases where :after is null or case_id > :after order by case_id limit :limit

-- name: revision
select coalesce(max(revision), 0) as revision from cbr_changes

-- name: changes
select c.revision, c.case_id as changed_id, k.case_id, k.query, k.query_hash, k.category_path, k.node_id,
       k.passages, k.quality_score, k.usage_count, k.status, k.asked_in, k.space,
       case when :vectors then k.vector end as vector
from cbr_changes c left join cbr_cases k on k.case_id = c.case_id
where c.revision > :known
order by c.revision

-- name: votes
select * from cbr_votes
where case_id in (select value from json_each(:case_ids)) order by case_id, voted_at, voter, log_id

-- name: votes_of_voter
select * from cbr_votes where case_id = :case_id and voter = :voter

-- name: tally
select count(*) as votes, coalesce(sum(success), 0) as successes from cbr_votes where case_id = :case_id

-- name: put_vote
insert or replace into cbr_votes (case_id, voter, log_id, feedback, success, moved, voted_at)
values (:case_id, :voter, :log_id, :feedback, :success, :moved, :voted_at)

-- name: remove_votes
delete from cbr_votes where case_id = :case_id and log_id in (select value from json_each(:log_ids))

-- name: forget_support
delete from cbr_votes where case_id = :case_id and feedback in ('thumbs_up', 'selected')

-- name: forget_confirmations
delete from cbr_decisions where case_id = :case_id and correct

-- name: put_decision
insert into cbr_decisions (case_id, asker, log_id, kind, correct, decided_at, asked_in)
select case_id, :asker, :log_id, :kind, :correct, :decided_at, :asked_in from cbr_cases where case_id = :case_id
on conflict (case_id, asker) do update
set log_id = excluded.log_id, kind = excluded.kind, correct = excluded.correct, decided_at = excluded.decided_at,
    asked_in = excluded.asked_in
where excluded.kind = 'vote' or cbr_decisions.kind = 'replay'

-- name: decisions
select * from cbr_decisions where case_id in (select value from json_each(:case_ids)) order by case_id, asker

-- name: decision_counts
select coalesce(sum(correct), 0) as correct, count(*) as total
from cbr_decisions where :case_id is null or case_id = :case_id

-- name: decisions_on
select * from cbr_decisions where :case_id is null or case_id = :case_id

-- name: delete_log
delete from cbr_logs where log_id = :log_id

-- name: put_log
insert into cbr_logs (
    log_id, timestamp, query, category_path, suggested_case_ids, picked_case_ids, success_flag, feedback,
    execution_time_ms, similarity_method, user_id, query_hash, node_id, kind, passages, shown_case_id, as_of, asked_in,
    details
) values (
    :log_id, :timestamp, :query, :category_path, :suggested_case_ids, :picked_case_ids, :success_flag, :feedback,
    :execution_time_ms, :similarity_method, :user_id, :query_hash, :node_id, :kind, :passages, :shown_case_id, :as_of,
    :asked_in, :details
)

-- name: log
select * from cbr_logs where log_id = :log_id

-- name: logs_before
select * from cbr_logs
where (:timestamp is null or (timestamp, log_id) < (:timestamp, :log_id)) and (not :success_only or success_flag = 1)
order by timestamp desc, log_id desc
limit :limit

-- name: log_page
select * from cbr_logs where :after is null or log_id > :after order by log_id limit :limit

-- name: shown_since
select shown_case_id as case_id, max(timestamp) as shown_at
from cbr_logs where timestamp >= :since and shown_case_id is not null group by shown_case_id

-- name: forget_logs
delete from cbr_logs where timestamp < :before

-- What decides who may see a case or an interaction.
-- name: case_places
select case_id, asked_in, passages from cbr_cases where node_id in (select value from json_each(:nodes))

-- name: log_places
select log_id, asked_in, suggested_case_ids, picked_case_ids, shown_case_id, passages
from cbr_logs where node_id in (select value from json_each(:nodes))

-- `cases` and `logs` are null, or the ids that are counted.
-- name: case_totals
select count(*) filter (where status = 'active') as total_cases,
       count(*) filter (where status <> 'active') as archived_cases,
       coalesce(avg(quality_score), 0.0) as average_quality_score, coalesce(sum(usage_count), 0) as total_usage_count
from cbr_cases where :cases is null or case_id in (select value from json_each(:cases))

-- name: most_used
select case_id from cbr_cases
where usage_count > 0 and (:cases is null or case_id in (select value from json_each(:cases)))
order by usage_count desc, case_id limit 1

-- name: largest_categories
select node_id, max(category_path) as category_path, count(*) as cases
from cbr_cases where :cases is null or case_id in (select value from json_each(:cases))
group by node_id, case when node_id is null then category_path end
order by cases desc, category_path, node_id limit 10

-- name: interactions
select count(*) as total_interactions,
       coalesce(avg(execution_time_ms) filter (where kind = 'suggestion' and similarity_method <> ''), 0.0)
           as average_response_time_ms
from cbr_logs where :logs is null or log_id in (select value from json_each(:logs))

-- name: voters
select user_id, kind = 'answer' as answered, count(*) as interactions,
       count(*) filter (where success_flag = 1) as successes
from cbr_logs
where feedback is not null and (:logs is null or log_id in (select value from json_each(:logs)))
group by 1, 2 order by 1, 2

-- name: methods
select similarity_method, count(*) as logs
from cbr_logs
where similarity_method <> '' and (:logs is null or log_id in (select value from json_each(:logs)))
group by similarity_method order by similarity_method
