-- The audit log. The owner's role may add lines and read them; nothing else.

-- name: head
select number, hash from audit_log order by number desc limit 1

-- name: append
insert into audit_log (number, at, actor, action, scope, subjects, decision, details, previous, hash)
values (:number, :at, :actor, :action, :scope, :subjects, :decision, :details, :previous, :hash)

-- name: page
select number, at, actor, action, scope, subjects, decision, details, previous, hash
from audit_log where number > :after order by number limit :limit

-- name: newest
select number, at, actor, action, scope, subjects, decision, details, previous, hash
from audit_log
where (:before::bigint is null or number < :before)
  and (:since::timestamptz is null or at >= :since)
  and (:until::timestamptz is null or at < :until)
  and (:actor::text is null or actor = :actor)
  and (:action::text is null or strpos(lower(action), lower(:action)) > 0)
  and (:decision::text is null or decision = :decision)
  and (:subject::text is null or subjects @> to_jsonb(:subject::text))
order by number desc limit :limit
