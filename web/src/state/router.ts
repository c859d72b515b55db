/** Routes in the fragment: `#/view/part/part?name=value`. The API owns the paths, and no proxy logs a question. */
import { computed, signal } from "@preact/signals";
import { caller } from "./session";

export interface Route {
  view: string;
  path: string[];
  query: URLSearchParams;
}

const fragment = signal(location.hash);

export const route = computed<Route>(() => parseFragment(fragment.value));

export function startRouter(): void {
  window.addEventListener("hashchange", () => (fragment.value = location.hash));
  window.addEventListener("popstate", () => (fragment.value = location.hash));
  document.addEventListener("click", followOwnLink);
  fragment.value = location.hash;
}

/** Links of the page lead on by `navigate`, which notes that they are its own. */
function followOwnLink(event: MouseEvent): void {
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  const changed = event.button > 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
  if (!link?.href.startsWith(location.href.replace(/#.*/s, "") + "#") || link.target) return;
  if (changed || event.defaultPrevented) return;
  event.preventDefault();
  navigate(link.hash);
}

/** Whether the page itself led its caller to this address, not a link from elsewhere; reloading and Back keep it. */
export const isOwnAddress = (): boolean => caller.value !== null && history.state === caller.value.name;

export function parseFragment(hash: string): Route {
  const [address = "", query = ""] = split(hash.replace(/^#\/?/, ""), "?");
  const [view = "", ...path] = address.split("/").map(decoded);
  return { view: view || "ask", path: path.filter(Boolean), query: new URLSearchParams(query) };
}

function split(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a percent sign that someone typed
  }
}

/** The link to a view: `href("documents", { path: [id], query: { page: "2" } })`. */
export function href(view: string, to: { path?: readonly string[]; query?: URLSearchParams | Query } = {}): string {
  const path = [view, ...(to.path ?? [])].map(encodeURIComponent).join("/");
  const query = to.query instanceof URLSearchParams ? to.query : formatQuery(to.query ?? {});
  const text = query.toString();
  return `#/${path}${text ? `?${text}` : ""}`;
}

export function navigate(to: string, options: { replace?: boolean } = {}): void {
  if (to === location.hash) return;
  if (options.replace) history.replaceState(history.state, "", to);
  else history.pushState(caller.value?.name ?? null, "", to);
  fragment.value = location.hash;
}

export type Query = Record<string, string | readonly string[] | undefined>;

function formatQuery(query: Query): URLSearchParams {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    for (const item of typeof value === "string" ? [value] : value) params.append(name, item);
  }
  return params;
}
