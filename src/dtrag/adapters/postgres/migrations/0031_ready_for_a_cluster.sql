-- A category is never deleted, and writers check it under a lock. A cluster (docs/how-to/citus.md) distributes documents, not
-- categories, and keeps no foreign key between the two.
alter table documents drop constraint documents_node_id_fkey;
