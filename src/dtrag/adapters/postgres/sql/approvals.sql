-- Approved tools of MCP servers, each with its fingerprint at that time.

-- name: approvals
select tool, fingerprint, approved_by, approved_at from approved_tools order by tool

-- name: approve
insert into approved_tools (tool, fingerprint, approved_by, approved_at)
values (:tool, :fingerprint, :approved_by, :approved_at)
on conflict (tool) do update set
    fingerprint = excluded.fingerprint, approved_by = excluded.approved_by, approved_at = excluded.approved_at

-- name: revoke
delete from approved_tools where tool = :tool returning tool
