-- The model of a case's vector. Those before it are of unknown models and are made again.

alter table cbr_cases add column space text;
update cbr_cases set vector = null;
