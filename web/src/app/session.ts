/** Who uses the page: a key pasted once becomes a cookie that only the service reads. */
import { computed, signal } from "@preact/signals";
import { api, onUnauthorized, setCsrfToken } from "../api/client";
import type { Problem } from "../api/problem";
import type { components } from "../api/schema";
import { asProblem } from "../api/problem";
import { t } from "../text/common";
import { announce } from "./announce";
import { onTabMessage, tellTabs } from "./tabs";

type SessionBody = components["schemas"]["SessionShape"];
/** Keys with the role `public` cannot sign in. */
export type Role = Exclude<SessionBody["role"], "public">;

export interface Caller {
  name: string;
  role: Role;
  /** Paths of the categories in the scope; null is the whole tree. */
  scope: string[] | null;
  /** Whether the service works without keys for this machine. */
  local: boolean;
}

export type Session =
  | { state: "unknown" }
  | { state: "open"; caller: Caller }
  | { state: "closed"; ended: boolean }
  | { state: "failed"; problem: Problem };

export const session = signal<Session>({ state: "unknown" });
export const caller = computed(() => (session.value.state === "open" ? session.value.caller : null));
/** Counts sign-ins; the view is built anew for each. */
export const sessionNumber = signal(0);

const RANK: Record<Role, number> = { reader: 0, editor: 1, admin: 2 };
const onEnd = new Set<() => void>();

/** Whether the role of the caller includes this one. The service decides; this only saves pointless offers. */
export function mayAs(role: Role): boolean {
  return caller.value !== null && RANK[caller.value.role] >= RANK[role];
}

/** Whether the caller sees the whole tree as this role; some routes need that. */
export function mayWholeTreeAs(role: Role): boolean {
  return mayAs(role) && caller.value?.scope === null;
}

/** Call when the session ends, to forget what belongs to its caller. */
export function whenSessionEnds(forget: () => void): void {
  onEnd.add(forget);
}

export async function startSession(): Promise<void> {
  onUnauthorized(() => {
    if (session.value.state === "open") end(true);
  });
  onTabMessage((message) => {
    if (message.kind === "signed-in") void load();
    if (message.kind === "signed-out" && session.value.state === "open") end(false);
  });
  await load();
}

/** Ask the service who the caller is. */
export async function load(): Promise<void> {
  try {
    open(await api.get("/session"));
  } catch (error) {
    const problem = asProblem(error);
    if (problem.kind === "unauthorized") session.value = { state: "closed", ended: false };
    else session.value = { state: "failed", problem };
  }
}

/** Throws `Problem` when the key is not accepted. */
export async function signIn(key: string): Promise<void> {
  open(await api.post("/session", { body: { key } }));
  tellTabs({ kind: "signed-in" });
  announce(t("session.signedIn", { name: caller.value?.name ?? "" }));
}

export async function signOut(): Promise<void> {
  await api.delete("/session");
  end(false);
  tellTabs({ kind: "signed-out" });
  announce(t("session.signedOut"));
}

function open(body: SessionBody): void {
  setCsrfToken(body.csrf ?? "");
  const local = body.expires_at === null;
  session.value = { state: "open", caller: { name: body.name, role: body.role as Role, scope: body.scope, local } };
  sessionNumber.value += 1;
}

function end(ended: boolean): void {
  setCsrfToken("");
  session.value = { state: "closed", ended };
  for (const forget of onEnd) forget();
}
