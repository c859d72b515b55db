/** Typed requests to the service: paths, parameters and bodies are those of openapi.json. */
import { language } from "../text/language";
import { Problem, isAbort, problemFrom, problemOf } from "./problem";
import type { paths } from "./schema";

type Method = "get" | "post" | "put" | "delete";
type Operation<M extends Method, P extends keyof paths> = paths[P] extends Record<M, infer O> ? O : never;
export type PathOf<M extends Method> = {
  [P in keyof paths]: Operation<M, P> extends never ? never : P;
}[keyof paths];

type Json<T> = T extends { content: { "application/json": infer B } } ? B : undefined;
type Success<R> = 200 extends keyof R ? R[200] : 201 extends keyof R ? R[201] : 204 extends keyof R ? R[204] : never;
export type Result<M extends Method, P extends PathOf<M>> =
  Operation<M, P> extends { responses: infer R } ? Json<Success<R>> : never;
export type Body<M extends Method, P extends PathOf<M>> =
  Operation<M, P> extends { requestBody: infer B } ? Json<B> : undefined;

type Parameters<O, Where extends string> = O extends { parameters: infer Q }
  ? Where extends keyof Q
    ? Exclude<Q[Where], undefined>
    : undefined
  : undefined;
type Given<Name extends string, T> = [T] extends [undefined] ? { [K in Name]?: undefined } : { [K in Name]: T };
type Perhaps<Name extends string, T> = [T] extends [undefined] ? { [K in Name]?: undefined } : { [K in Name]?: T };
export type Options<M extends Method, P extends PathOf<M>> = Given<"path", Parameters<Operation<M, P>, "path">> &
  Perhaps<"query", Parameters<Operation<M, P>, "query">> &
  Given<"body", Body<M, P>> & { signal?: AbortSignal };
type Arguments<M extends Method, P extends PathOf<M>> =
  Record<never, never> extends Options<M, P> ? [options?: Options<M, P>] : [options: Options<M, P>];

interface Untyped {
  path?: Record<string, unknown>;
  query?: Record<string, unknown>;
  body?: unknown;
  signal?: AbortSignal;
}

let csrfToken = "";
let unreachable: () => void = () => undefined;
let unauthorized: () => void = () => undefined;
let renewed: () => Promise<boolean> = () => Promise.resolve(false);

/** Sent with every request that changes something; GET /session gives it. */
export function setCsrfToken(token: string): void {
  csrfToken = token;
}

/** Called when the service does not respond, or responds that it is stopping. */
export function onUnreachable(listener: () => void): void {
  unreachable = listener;
}

/** Called when the service does not (or no longer) know who asks. */
export function onUnauthorized(listener: () => void): void {
  unauthorized = listener;
}

/**
 * Called when a change was refused because its token is not (or no longer) that of the session.
 *
 * The listener fetches the token; true: the caller is the same, and the request is sent once more.
 */
export function onStaleSession(listener: () => Promise<boolean>): void {
  renewed = listener;
}

export const api = {
  get: <P extends PathOf<"get">>(path: P, ...args: Arguments<"get", P>): Promise<Result<"get", P>> =>
    json("get", path, args[0]) as Promise<Result<"get", P>>,
  post: <P extends PathOf<"post">>(path: P, ...args: Arguments<"post", P>): Promise<Result<"post", P>> =>
    json("post", path, args[0]) as Promise<Result<"post", P>>,
  put: <P extends PathOf<"put">>(path: P, ...args: Arguments<"put", P>): Promise<Result<"put", P>> =>
    json("put", path, args[0]) as Promise<Result<"put", P>>,
  delete: <P extends PathOf<"delete">>(path: P, ...args: Arguments<"delete", P>): Promise<Result<"delete", P>> =>
    json("delete", path, args[0]) as Promise<Result<"delete", P>>,
};

async function json(method: Method, path: string, options: Untyped = {}): Promise<unknown> {
  const body = options.body === undefined ? undefined : JSON.stringify(options.body);
  const response = await send(method, address(path, options.path, options.query), {
    body,
    signal: options.signal,
    headers: body === undefined ? {} : { "Content-Type": "application/json" },
  });
  return response.status === 204 ? undefined : response.json();
}

/** What every request has: its language, and the token that proves that a page of the service changes something. */
function pageHeaders(method: Method): [name: string, value: string][] {
  const always: [string, string][] = [
    ["X-Requested-With", "dtrag-page"],
    ["Accept-Language", language.value],
  ];
  return method !== "get" && csrfToken ? [...always, ["X-CSRF-Token", csrfToken]] : always;
}

/** The response of a successful request; everything else is thrown as a `Problem` (an abort as itself). */
export async function send(method: Method, url: string, init: RequestInit): Promise<Response> {
  try {
    return await sendOnce(method, url, init);
  } catch (error) {
    if (!isStale(method, error) || !(await renewed())) throw error;
    return sendOnce(method, url, init);
  }
}

/** Whether a change was refused for its missing or old token, not for the role of its caller. */
function isStale(method: Method, error: unknown): boolean {
  if (method === "get" || !(error instanceof Problem) || error.kind !== "forbidden") return false;
  return error.type === "StaleSession" || error.detail.includes("CSRF");
}

async function sendOnce(method: Method, url: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers);
  for (const [name, value] of pageHeaders(method)) headers.set(name, value);
  let response: Response;
  try {
    response = await fetch(url, { ...init, method: method.toUpperCase(), headers, credentials: "same-origin" });
  } catch (error) {
    if (isAbort(error)) throw error;
    unreachable();
    throw new Problem("unreachable", "");
  }
  if (response.ok) return response;
  throw noticed(await problemOf(response));
}

/** Tells the page about a problem that concerns all of it. */
function noticed(problem: Problem): Problem {
  if (problem.kind === "unreachable" || problem.type === "Stopping") unreachable();
  if (problem.kind === "unauthorized") unauthorized();
  return problem;
}

interface Upload {
  form: FormData;
  /** Called with the bytes that were sent, of so many. */
  onProgress: (sent: number, total: number) => void;
  signal: AbortSignal;
}

/**
 * POST a form, with progress, which `fetch` does not have.
 *
 * The body of a 422 is returned too: it names the files that failed. Everything else is thrown as by `send`.
 */
export async function upload<P extends PathOf<"post">>(path: P, request: Upload): Promise<Result<"post", P>> {
  try {
    return await uploadOnce(path, request);
  } catch (error) {
    if (!isStale("post", error) || !(await renewed())) throw error;
    return uploadOnce(path, request);
  }
}

function uploadOnce<P extends PathOf<"post">>(path: P, { form, onProgress, signal }: Upload) {
  return new Promise<Result<"post", P>>((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    for (const [name, value] of pageHeaders("post")) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", (event) => onProgress(event.loaded, event.total));
    request.addEventListener("load", () => {
      const body = parsed(request.responseText);
      const hasFiles = typeof body === "object" && body !== null && "failed" in body;
      if (request.status < 300 || hasFiles) resolve(body as Result<"post", P>);
      else reject(noticed(problemFrom(request.status, body, request.getResponseHeader("Retry-After"))));
    });
    request.addEventListener("error", () => reject(noticed(new Problem("unreachable", ""))));
    request.addEventListener("abort", () => reject(new DOMException("", "AbortError")));
    const stop = () => request.abort();
    signal.addEventListener("abort", stop);
    request.addEventListener("loadend", () => signal.removeEventListener("abort", stop));
    if (signal.aborted) return reject(new DOMException("", "AbortError"));
    request.send(form);
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null; // the page of a proxy
  }
}

/** The address of a path with its parameters filled in. */
export function address(path: string, parts: Untyped["path"] = {}, query: Untyped["query"] = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(asText(parts[name])));
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null) continue;
    for (const item of Array.isArray(value) ? (value as unknown[]) : [value]) params.append(name, asText(item));
  }
  const text = params.toString();
  return text ? `${filled}?${text}` : filled;
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
