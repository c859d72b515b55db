/** The views of the page, in the order of the navigation. A new view is one line here (see web/README.md). */
import type { ComponentType } from "preact";
import type { IconName } from "../parts/Icon";
import type { Role } from "../state/session";

export type Group = "use" | "content" | "quality" | "govern";
export const GROUPS: readonly Group[] = ["use", "content", "quality", "govern"];
export type ViewId =
  | "ask"
  | "search"
  | "regulations"
  | "documents"
  | "taxonomy"
  | "agents"
  | "review"
  | "cases"
  | "evaluation"
  | "trace"
  | "keys"
  | "audit"
  | "settings";

export interface View {
  id: ViewId;
  group: Group;
  /** The least role that can do something in it. */
  role: Role;
  /** The least role for an address below it, such as the document of a source. */
  partRole?: Role;
  /** Whether every route of it concerns the whole tree, so that a key with a scope can do nothing in it. */
  wholeTree?: true;
  icon: IconName;
  /** The letter after `g` that goes to it. */
  letter: string;
  load: () => Promise<{ default: ComponentType }>;
}

// prettier-ignore
export const VIEWS: readonly View[] = [
  { id: "ask", group: "use", role: "public", icon: "ask", letter: "a", load: () => import("../views/ask/AskView") },
  { id: "search", group: "use", role: "reader", icon: "search", letter: "s", load: () => import("../views/search/SearchView") },
  { id: "regulations", group: "use", role: "public", icon: "regulations", letter: "l", load: () => import("../views/regulations/RegulationsView") },
  { id: "documents", partRole: "public", group: "content", role: "reader", icon: "documents", letter: "d", load: () => import("../views/documents/DocumentsView") },
  { id: "taxonomy", group: "content", role: "reader", icon: "taxonomy", letter: "c", load: () => import("../views/taxonomy/TaxonomyView") },
  { id: "agents", group: "content", role: "reader", icon: "agents", letter: "g", load: () => import("../views/agents/AgentsView") },
  { id: "review", group: "quality", role: "editor", icon: "review", letter: "r", load: () => import("../views/review/ReviewView") },
  { id: "cases", group: "quality", role: "reader", icon: "cases", letter: "m", load: () => import("../views/cases/CasesView") },
  { id: "evaluation", wholeTree: true, group: "quality", role: "admin", icon: "evaluation", letter: "e", load: () => import("../views/evaluation/EvaluationView") },
  { id: "trace", group: "quality", role: "reader", icon: "trace", letter: "t", load: () => import("../views/trace/TraceView") },
  { id: "keys", wholeTree: true, group: "govern", role: "admin", icon: "keys", letter: "k", load: () => import("../views/keys/KeysView") },
  { id: "audit", wholeTree: true, group: "govern", role: "admin", icon: "audit", letter: "u", load: () => import("../views/audit/AuditView") },
  { id: "settings", group: "govern", role: "reader", icon: "settings", letter: ",", load: () => import("../views/settings/SettingsView") },
];

export const viewOf = (id: string): View | undefined => VIEWS.find((view) => view.id === id);
