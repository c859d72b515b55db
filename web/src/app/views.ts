/** The views of the page, in the order of the navigation. A new view is one line here (see web/README.md). */
import type { ComponentType } from "preact";
import type { IconName } from "../parts/Icon";
import type { ViewId } from "../state/session";

export type Group = "use" | "content" | "quality" | "govern";
export const GROUPS: readonly Group[] = ["use", "content", "quality", "govern"];
export interface View {
  id: ViewId;
  group: Group;
  icon: IconName;
  /** The letter after `g` that goes to it. */
  letter: string;
  load: () => Promise<{ default: ComponentType }>;
}

// prettier-ignore
export const VIEWS: readonly View[] = [
  { id: "ask", group: "use", icon: "ask", letter: "a", load: () => import("../views/ask/AskView") },
  { id: "search", group: "use", icon: "search", letter: "s", load: () => import("../views/search/SearchView") },
  { id: "regulations", group: "use", icon: "regulations", letter: "l", load: () => import("../views/regulations/RegulationsView") },
  { id: "documents", group: "content", icon: "documents", letter: "d", load: () => import("../views/documents/DocumentsView") },
  { id: "taxonomy", group: "content", icon: "taxonomy", letter: "c", load: () => import("../views/taxonomy/TaxonomyView") },
  { id: "agents", group: "content", icon: "agents", letter: "g", load: () => import("../views/agents/AgentsView") },
  { id: "review", group: "quality", icon: "review", letter: "r", load: () => import("../views/review/ReviewView") },
  { id: "cases", group: "quality", icon: "cases", letter: "m", load: () => import("../views/cases/CasesView") },
  { id: "evaluation", group: "quality", icon: "evaluation", letter: "e", load: () => import("../views/evaluation/EvaluationView") },
  { id: "trace", group: "quality", icon: "trace", letter: "t", load: () => import("../views/trace/TraceView") },
  { id: "keys", group: "govern", icon: "keys", letter: "k", load: () => import("../views/keys/KeysView") },
  { id: "audit", group: "govern", icon: "audit", letter: "u", load: () => import("../views/audit/AuditView") },
  { id: "settings", group: "govern", icon: "settings", letter: ",", load: () => import("../views/settings/SettingsView") },
];

export const viewOf = (id: string): View | undefined => VIEWS.find((view) => view.id === id);
