-- Feedback on answers, kept also while the case memory is off. Found by the id of the answer's trace, which may be
-- written later than the feedback, or not at all: no foreign key. Deleted with the traces of its time.

create table answer_feedback (
    trace_id uuid not null,
    -- Id of the key that gave it; '' without keys.
    voter    text not null,
    -- thumbs_up, thumbs_down or ignored.
    feedback text not null,
    reason   text not null,
    given_at timestamptz not null,
    primary key (trace_id, voter)
);
create index answer_feedback_given on answer_feedback (given_at);
