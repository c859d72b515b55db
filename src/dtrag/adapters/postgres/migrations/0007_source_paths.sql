-- Below the folder that was ingested: the path of a document's file. Callers who are no administrators are shown it in
-- place of the whole address. '' for documents from before: of those they are shown the file's name.

alter table documents add column source_path text not null default '';
