-- Keys for pages of other sites: they may only ask one agent, and only from these origins. The branches of such a key are
-- those of its agent at any time; `scope` has those of the day on which it was created.

alter table api_keys
    add column agent_id uuid,
    add column origins jsonb not null default '[]',
    drop constraint api_keys_role_check,
    add constraint api_keys_role_check check (role in ('public', 'reader', 'editor', 'admin')),
    add constraint api_keys_agent_check check ((role = 'public') = (agent_id is not null));
