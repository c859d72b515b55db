-- Run once by the superuser in an empty database: the roles of dtrag, and a login that may only switch to them.
\getenv password DATABASE_PASSWORD
create role dtrag_owner nologin;
create role dtrag_search nologin;
create role dtrag_reader nologin;
create role dtrag_service login noinherit password :'password' in role dtrag_owner, dtrag_search, dtrag_reader;
create extension vector;
create schema dtrag authorization dtrag_owner;
