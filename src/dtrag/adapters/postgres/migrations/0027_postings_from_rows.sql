-- Postings are made from the rows of lexical_index, by each machine, into its mapped files.
drop table posting_pages;
