-- The trace of the answer of each turn, by which its owner finds how it was made and what was said of it. Null for turns
-- stored before, and without a foreign key: a trace is written later than its turn, and deleted earlier or later.

alter table conversation_turns add column trace_id uuid;
