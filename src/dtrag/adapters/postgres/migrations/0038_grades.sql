-- The grade that was given to a category in a version of the tree; '' for none.

alter table taxonomy_tree add column grade text not null default '';
