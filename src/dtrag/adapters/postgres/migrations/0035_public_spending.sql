-- What the models have used for callers without a key on a day (UTC); cost in millionths of a won.

create table public_spending (
    day    date primary key,
    calls  bigint not null,
    tokens bigint not null,
    cost   bigint not null
);
