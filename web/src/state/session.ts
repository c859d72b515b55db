/** Who uses the page: a key pasted once becomes a cookie that only the service reads. */
import { computed, signal } from "@preact/signals";
import { api, onStaleSession, onUnauthorized, setCsrfToken } from "../api/client";
import type { Problem } from "../api/problem";
import type { components } from "../api/schema";
import { asProblem } from "../api/problem";
import { t } from "../text/common";
import { readKorean } from "./statements";
import { announce } from "./announce";
import { onTabMessage, tellTabs } from "./tabs";

type SessionBody = components["schemas"]["SessionShape"];
/** `public`: without a key. Keys with that role cannot sign in. */
export type Role = SessionBody["role"];

export interface Caller {
  name: string;
  role: Role;
  /** Paths of the categories in the scope; null is the whole tree. */
  scope: string[] | null;
  /** Whether the service works without keys for this machine. */
  local: boolean;
  /** The identity provider with which the caller signed in; null for a key. */
  provider: string | null;
  /** Whether there is a regulation in the scope. */
  regulations: boolean;
}

interface Needs {
  /** The least role that opens the view. */
  role: Role;
  /** The least role for an address below it: the document of a source is a part of its answer. */
  partRole?: Role;
  /** Whether every route of it concerns the whole tree, so that a key with a scope can do nothing in it. */
  wholeTree?: true;
}

/** The views with what they need. Readers ask and read regulations; the rest is for those who look after the documents. */
const NEEDS = {
  ask: { role: "public" },
  search: { role: "editor" },
  regulations: { role: "public" },
  documents: { role: "editor", partRole: "public" },
  taxonomy: { role: "editor" },
  agents: { role: "editor" },
  review: { role: "editor" },
  cases: { role: "editor" },
  evaluation: { role: "admin", wholeTree: true },
  trace: { role: "editor" },
  keys: { role: "admin", wholeTree: true },
  audit: { role: "admin", wholeTree: true },
  settings: { role: "editor" },
} satisfies Record<string, Needs>;
export type ViewId = keyof typeof NEEDS;

export type Session =
  | { state: "unknown" }
  | { state: "open"; caller: Caller }
  | { state: "closed"; ended: boolean }
  | { state: "failed"; problem: Problem };

export const session = signal<Session>({ state: "unknown" });
export const caller = computed(() => (session.value.state === "open" ? session.value.caller : null));
/** Counts sign-ins; the view is built anew for each. */
export const sessionNumber = signal(0);
/** Why signing out failed; the caller is still signed in. */
export const signOutProblem = signal<Problem | null>(null);
/** Where a tab stores its answers; they end with the session, also when the code of the view is not loaded. */
export const STORED_ANSWERS = "dtrag.answers";
/** Whose they are: after a reload the tab may belong to another caller. */
const STORED_FOR = "dtrag.caller";

/** Where a tab stores the address at which it left for an identity provider, which sends it back to the start. */
const LEFT_AT = "dtrag.address";

/** Whether the caller has no key, and reads public branches. */
export const keyless = computed(() => caller.value?.role === "public");
/** Whether the page may be used without a key, too. */
export const isPublic = signal(false);
/** Why an identity provider signed nobody in, from the address to which it sent the browser back; "" if it did. */
export const SIGN_IN_FAILED = new URLSearchParams(location.search).get("sign-in") ?? "";
const RANK: Record<Role, number> = { public: 0, reader: 1, editor: 2, admin: 3 };
const onEnd = new Set<() => void>();
/** Name, role, scope and token of the caller whose data this tab may show; null: nobody's. */
let shownTo: string | null = null;
/** Name, role and scope of the last caller of this tab; null without a key: the first key is then the same person's. */
let lastCaller: string | null = null;

/** Whether the role of the caller includes this one. The service decides; this only saves pointless offers. */
export function mayAs(role: Role): boolean {
  return caller.value !== null && RANK[caller.value.role] >= RANK[role];
}

/** Whether the caller sees the whole tree as this role; some routes need that. */
export function mayWholeTreeAs(role: Role): boolean {
  return mayAs(role) && caller.value?.scope === null;
}

/** Whether a view, or what is below its address, is one of the caller's: for its address and for every link to it. */
export function mayOpen(view: ViewId, path: readonly string[] = []): boolean {
  const { role, partRole = role, wholeTree }: Needs = NEEDS[view];
  if (view === "regulations" && !mayAs("editor") && !caller.value?.regulations) return false;
  const least = path.length > 0 ? partRole : role;
  return wholeTree ? mayWholeTreeAs(least) : mayAs(least);
}

/** The least role that opens a view. */
export const roleFor = (view: ViewId): Role => NEEDS[view].role;

/** Call when the session ends, to forget what belongs to its caller. */
export function whenSessionEnds(forget: () => void): void {
  onEnd.add(forget);
}

export async function startSession(): Promise<void> {
  onUnauthorized(() => {
    if (session.value.state !== "open") return;
    end(true);
    tellTabs({ kind: "signed-out" });
  });
  onStaleSession(isStillSameCaller);
  onTabMessage((message) => {
    if (message.kind === "signed-in") void load();
    if (message.kind === "signed-out" && session.value.state === "open") end(false);
  });
  await load();
  if (SIGN_IN_FAILED && keyless.value) askForKey();
  if (session.value.state === "open") returnToAddress();
}

/** Call when the tab leaves for an identity provider. */
export function rememberAddress(): void {
  try {
    sessionStorage.setItem(LEFT_AT, location.hash);
  } catch {
    return; // storage is switched off: the way back leads to the start
  }
}

function returnToAddress(): void {
  try {
    const left = sessionStorage.getItem(LEFT_AT);
    sessionStorage.removeItem(LEFT_AT);
    if (left && !location.hash) location.hash = left;
  } catch {
    return; // storage is switched off: nothing was stored
  }
}

/** Ask the service who the caller is. */
export async function load(): Promise<void> {
  try {
    const body = await api.get("/session");
    await readKorean();
    open(body);
  } catch (error) {
    const problem = asProblem(error);
    if (problem.kind !== "unauthorized") session.value = { state: "failed", problem };
    else if (session.value.state !== "closed") end(false);
  }
}

/** The token was replaced, such as by signing in in another tab: whether the new one is of the same caller. */
async function isStillSameCaller(): Promise<boolean> {
  const before = withoutLocal(caller.value);
  await load();
  return session.value.state === "open" && withoutLocal(caller.value) === before;
}

const withoutLocal = (who: Caller | null) => who && JSON.stringify([who.name, who.role, who.scope]);

/** Throws `Problem` when the key is not accepted. */
export async function signIn(key: string): Promise<void> {
  const body = await api.post("/session", { body: { key } });
  await readKorean();
  open(body);
  tellTabs({ kind: "signed-in" });
  announce(t("session.signedIn", { name: caller.value?.name ?? "" }));
}

/** When it fails, `signOutProblem` says why. */
export async function signOut(): Promise<void> {
  signOutProblem.value = null;
  try {
    await api.delete("/session");
  } catch (error) {
    if (session.value.state !== "open") return; // the session had ended before
    signOutProblem.value = asProblem(error);
    return;
  }
  const provider = caller.value?.provider;
  end(false);
  location.hash = "";
  tellTabs({ kind: "signed-out" });
  // On a shared machine the next person would otherwise be signed in with one click.
  if (provider) location.assign(`/sign-in/${provider}/sign-out`);
  if (isPublic.value) await load();
  announce(t("session.signedOut"));
}

/** Show the form for signing in to a caller without a key. */
export function askForKey(): void {
  end(false);
}

function open(body: SessionBody): void {
  setCsrfToken(body.csrf ?? "");
  const identity = JSON.stringify([body.name, body.role, body.scope, body.csrf]);
  if (shownTo !== null && shownTo !== identity) forgetCaller();
  shownTo = identity;
  const who = JSON.stringify([body.name, body.role, body.scope]);
  // The address may hold a question of somebody else, which must not be asked again in another name.
  if (lastCaller !== null && lastCaller !== who) location.hash = "";
  lastCaller = body.kind === "local" || body.kind === "public" ? null : who;
  isPublic.value = body.public;
  keepAnswersOf(who);
  const { name, role, scope, regulations, provider } = body;
  const local = body.kind === "local";
  session.value = { state: "open", caller: { name, role, scope, local, regulations, provider } };
  sessionNumber.value += 1;
}

function end(ended: boolean): void {
  setCsrfToken("");
  session.value = { state: "closed", ended };
  forgetCaller();
}

/** Nothing of the former caller stays in this tab. */
function forgetCaller(): void {
  shownTo = null;
  signOutProblem.value = null;
  for (const forget of onEnd) forget();
  try {
    sessionStorage.removeItem(STORED_ANSWERS);
    sessionStorage.removeItem(STORED_FOR);
  } catch {
    return; // storage is switched off: nothing was stored
  }
}

/** A former caller may have left answers in this tab, when it was closed or reloaded while another tab signed out. */
function keepAnswersOf(owner: string): void {
  try {
    if (sessionStorage.getItem(STORED_FOR) !== owner) sessionStorage.removeItem(STORED_ANSWERS);
    sessionStorage.setItem(STORED_FOR, owner);
  } catch {
    return; // storage is switched off: nothing was stored
  }
}
