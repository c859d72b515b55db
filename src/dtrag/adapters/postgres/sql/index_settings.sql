-- What the index was built with, and emptying it. {dim} marks a number that is composed into the statement.

-- name: setting
select value from index_settings where name = :name

-- name: set_setting
insert into index_settings (name, value) values (:name, :value)
on conflict (name) do update set value = excluded.value

-- name: forget_settings
delete from index_settings where name = any (:names::text[])

-- name: empty_index
truncate embeddings, sentence_vectors, lexical_index, lexical_corrections, lexical_segments, sources

-- name: forget_fingerprints
update documents set fingerprint = ''

-- name: shape_vectors
alter table embeddings alter column vec type halfvec({dim})

-- name: shape_questions
alter table imagined_questions alter column vec type halfvec({dim})

-- name: create_question_index
create index if not exists imagined_questions_hnsw on imagined_questions using hnsw (vec halfvec_cosine_ops)
with (m = 16, ef_construction = 100)
