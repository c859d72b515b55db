import { afterEach, expect, test, vi } from "vitest";
import { address, api, onUnauthorized, onUnreachable, setCsrfToken } from "./client";
import { Problem } from "./problem";

function answering(status: number, body: unknown, headers: Record<string, string> = {}) {
  const fetched = vi.fn<typeof fetch>(() => Promise.resolve(new Response(JSON.stringify(body), { status, headers })));
  vi.stubGlobal("fetch", fetched);
  return fetched;
}

afterEach(() => {
  vi.unstubAllGlobals();
  setCsrfToken("");
});

test("parameters are put into the address", () => {
  const url = address(
    "/documents/{document_id}",
    { document_id: "a/b ?" },
    { limit: 5, skip: undefined, term: ["x", "y"] },
  );
  expect(url).toBe("/documents/a%2Fb%20%3F?limit=5&term=x&term=y");
});

test("only a request that changes something carries the token", async () => {
  const fetched = answering(200, {});
  setCsrfToken("secret");
  await api.get("/livez");
  await api.post("/classify", { body: { text: "x", title: "t" } });
  const tokens = fetched.mock.calls.map(([, init]) => new Headers(init?.headers).get("X-CSRF-Token"));
  expect(tokens).toEqual([null, "secret"]);
  expect(new Headers(fetched.mock.calls[0]?.[1]?.headers).get("X-Requested-With")).toBe("dtrag-page");
});

test("a refusal becomes a problem with the service's sentence", async () => {
  answering(429, { detail: "Wait.", type: "TooManyRequests", request_id: "r1" }, { "Retry-After": "7" });
  const problem = await api.get("/livez").catch((error: unknown) => error);
  expect(problem).toBeInstanceOf(Problem);
  expect(problem).toMatchObject({ kind: "busy", detail: "Wait.", requestId: "r1", retryAfter: 7 });
});

test("a service that does not respond, and a session that ended, are reported", async () => {
  const lost = vi.fn();
  const ended = vi.fn();
  onUnreachable(lost);
  onUnauthorized(ended);
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("no route")));
  await expect(api.get("/livez")).rejects.toMatchObject({ kind: "unreachable" });
  answering(401, { detail: "No key." });
  await expect(api.get("/livez")).rejects.toMatchObject({ kind: "unauthorized" });
  expect([lost.mock.calls.length, ended.mock.calls.length]).toEqual([1, 1]);
});

test("what was aborted is thrown as it is", async () => {
  vi.stubGlobal("fetch", () => Promise.reject(new DOMException("stopped", "AbortError")));
  await expect(api.get("/livez")).rejects.toMatchObject({ name: "AbortError" });
});
