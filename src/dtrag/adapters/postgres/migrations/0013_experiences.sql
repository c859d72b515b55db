-- What the choice of ways to answer learns from: numbers only. The oldest are deleted when there are too many.

create table experiences (
    experience_id text primary key,
    at            timestamptz not null,
    state         smallint not null,
    action        smallint not null,
    propensity    double precision not null check (propensity > 0 and propensity <= 1),
    reward        double precision not null,
    next_state    smallint,
    explored      boolean not null
);
create index experiences_at on experiences (at, experience_id);
-- The share of answers that explore, set by `dtrag cbr bandit --explore`; at most one row.
create table exploration (
    single boolean primary key default true check (single),
    share  double precision not null check (share >= 0 and share <= 1)
);
