-- The name that its owner gave to a conversation; empty without one.

alter table conversations add column title text not null default '';
