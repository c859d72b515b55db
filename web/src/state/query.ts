/** Typed state of a view in the query of its link: a field that has its default value is left out. */
import { href, navigate, route } from "./router";

export interface Field<T> {
  read: (values: string[]) => T;
  write: (value: T) => string[];
}

export const text = (): Field<string> => ({
  read: ([value]) => value ?? "",
  write: (value) => (value ? [value] : []),
});

export const integer = (fallback = 0): Field<number> => ({
  read: ([value]) => (value !== undefined && /^-?\d{1,15}$/.test(value) ? Number(value) : fallback),
  write: (value) => (value === fallback ? [] : [String(value)]),
});

export const flag = (fallback = false): Field<boolean> => ({
  read: ([value]) => (value === undefined ? fallback : value === "1"),
  write: (value) => (value === fallback ? [] : [value ? "1" : "0"]),
});

export const oneOf = <T extends string>(choices: readonly T[], fallback: T): Field<T> => ({
  read: ([value]) => choices.find((choice) => choice === value) ?? fallback,
  write: (value) => (value === fallback ? [] : [value]),
});

export const list = (): Field<string[]> => ({ read: (values) => values, write: (values) => values });

/** Category paths; a slash inside a name is written as `\/`. */
export const categories = (): Field<string[][]> => ({
  read: (values) => values.map(parsePath).filter((path) => path.length > 0),
  write: (paths) => paths.map(formatPath),
});

export function formatPath(path: readonly string[]): string {
  return path.map((name) => name.replace(/[\\/]/g, "\\$&")).join("/");
}

export function parsePath(value: string): string[] {
  const names = value.match(/(?:\\.|[^/\\])+/gs) ?? [];
  return names.map((name) => name.replace(/\\(.)/gs, "$1"));
}

type Fields = Record<string, Field<never>>;
type ValueOf<F> = F extends Field<infer T> ? T : never;
export type StateOf<S> = { [K in keyof S]: ValueOf<S[K]> };

export interface QueryState<State> {
  /** The state in a query; without an argument that of the current route (a signal is read). */
  read: (query?: URLSearchParams) => State;
  /** The link to `view` with the current state and these changes. */
  link: (change: Partial<State>, view?: string, path?: readonly string[]) => string;
  /** Change the state of the current view; `replace` leaves no step for Back. */
  set: (change: Partial<State>, options?: { replace?: boolean }) => void;
}

/** `const state = queryState({ q: text(), page: integer(1) })`, then `state.read().q` and `state.set({ page: 2 })`. */
export function queryState<S extends { [K in keyof S]: Field<ValueOf<S[K]>> }>(shape: S): QueryState<StateOf<S>> {
  type State = StateOf<S>;
  const fields = Object.entries(shape) as unknown as [string, Fields[string]][];
  const read = (query = route.value.query): State =>
    Object.fromEntries(fields.map(([name, field]) => [name, field.read(query.getAll(name))])) as unknown as State;
  const link = (
    change: Partial<State>,
    view = route.value.view,
    path: readonly string[] = route.value.path,
  ): string => {
    const state = { ...read(), ...change } as Record<string, never>;
    const query = new URLSearchParams();
    for (const [name, field] of fields)
      for (const value of field.write(state[name] as never)) query.append(name, value);
    return href(view, { path, query });
  };
  return { read, link, set: (change, options) => navigate(link(change), options) };
}
