/** What the audit log is searched for: the query of the link. */
import { integer, oneOf, queryState, text, type StateOf } from "../../state/query";

export const DECISIONS = ["", "allowed", "denied", "done"] as const;
const shape = {
  actor: text(),
  action: text(),
  subject: text(),
  decision: oneOf(DECISIONS, ""),
  since: text(),
  until: text(),
  before: integer(0),
};
export const address = queryState(shape);
export type AuditState = StateOf<typeof shape>;
export const NO_FILTERS: AuditState = {
  actor: "",
  action: "",
  subject: "",
  decision: "",
  since: "",
  until: "",
  before: 0,
};

/** The parameters of GET /audit; a day begins and ends in the zone of the browser. */
export function parametersOf(state: AuditState) {
  const day = (value: string, time: string) => {
    const date = new Date(`${value}T${time}`);
    return value && !Number.isNaN(date.getTime()) ? date.toISOString() : undefined;
  };
  return {
    limit: 100,
    actor: state.actor.trim() || undefined,
    action: state.action.trim() || undefined,
    subject: state.subject.trim() || undefined,
    decision: state.decision || undefined,
    since: day(state.since, "00:00:00"),
    until: day(state.until, "23:59:59.999"),
    before: state.before || undefined,
  };
}

export const isFiltered = (state: AuditState): boolean => {
  const { limit, before, ...filters } = parametersOf(state);
  return limit > 0 && before === undefined && Object.values(filters).some((value) => value !== undefined);
};

/** Whether the first day is after the last one: no line can lie between them. */
export const isReversed = ({ since, until }: Pick<AuditState, "since" | "until">): boolean =>
  since !== "" && until !== "" && since > until;
