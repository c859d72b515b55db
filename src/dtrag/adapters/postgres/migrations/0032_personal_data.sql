-- With which policy for personal data the text of a document was stored (docs/how-to/personal-data.md); '' for none.

alter table documents add column personal_data text not null default '';
