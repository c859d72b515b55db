-- Vectors are searched in mapped files: the graph took more than half of the bytes of a vector and most of the time to
-- add it. docs/explanation/architecture.md has the statement that makes one.

drop index if exists embeddings_hnsw;
