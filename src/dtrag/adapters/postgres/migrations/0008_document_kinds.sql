-- Whether a scope holds regulations is asked once for each state of the index: few documents say what kind they are of.

create index documents_kind on documents ((metadata ->> 'kind'), node_id) where metadata ? 'kind';
