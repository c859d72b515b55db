import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { api, setCsrfToken } from "../api/client";
import {
  caller,
  load,
  mayOpen,
  session,
  sessionNumber,
  signOut,
  signOutProblem,
  startSession,
  whenSessionEnds,
  type ViewId,
} from "./session";

const KIM = {
  kind: "session",
  name: "kim",
  role: "editor",
  scope: [["HR"]],
  csrf: "c1",
  expires_at: "2030-01-01T00:00:00Z",
};
const VIEWS =
  "ask search regulations documents taxonomy agents review cases evaluation trace keys audit settings".split(
    " ",
  ) as ViewId[];
const forgotten = vi.fn();
whenSessionEnds(forgotten);

function answering(...responses: Response[]) {
  const fetched = vi.fn<typeof fetch>(() => Promise.resolve(responses.shift() ?? Response.error()));
  vi.stubGlobal("fetch", fetched);
  return fetched;
}
const as = (change: object = {}) => Response.json({ ...KIM, ...change });
const refusal = (status: number, type: string, detail = "No.") => Response.json({ detail, type }, { status });

beforeEach(async () => {
  answering(as());
  await startSession();
  sessionStorage.setItem("dtrag.answers", "[]");
  forgotten.mockClear();
});
afterEach(async () => {
  answering(refusal(401, "Unauthorized"));
  await load();
  vi.unstubAllGlobals();
  setCsrfToken("");
});

test.each([
  [{ role: "public", regulations: true }, "ask regulations", "documents"],
  [{ role: "reader", regulations: true }, "ask regulations", "documents"],
  [{ role: "reader", regulations: false }, "ask", "documents"],
  [
    { role: "editor", regulations: false },
    "ask search regulations documents taxonomy agents review cases trace settings",
    "documents search",
  ],
  [{ role: "admin", scope: null }, VIEWS.join(" "), "documents search keys"],
  [{ role: "admin" }, "ask search regulations documents taxonomy agents review cases trace settings", "search"],
])("%o opens %s", async (change, opened, parts) => {
  answering(as(change));
  await load();
  expect(VIEWS.filter((view) => mayOpen(view))).toEqual(opened.split(" "));
  for (const part of parts.split(" ")) expect(mayOpen(part as ViewId, ["id"])).toBe(true);
  if (!parts.includes("keys")) expect(mayOpen("keys", ["id"])).toBe(false);
});

test("what belongs to a caller is forgotten when the service names another, or nobody", async () => {
  for (const change of [{ name: "lee" }, { role: "admin" }, { scope: null }, { csrf: "c2" }]) {
    forgotten.mockClear();
    sessionStorage.setItem("dtrag.answers", "[]");
    answering(as(change), as());
    await load();
    expect([forgotten.mock.calls.length, sessionStorage.getItem("dtrag.answers")]).toEqual([1, null]);
    await load();
  }
  forgotten.mockClear();
  sessionStorage.setItem("dtrag.answers", "[]");
  answering(refusal(401, "Unauthorized"));
  await load();
  expect([forgotten.mock.calls.length, sessionStorage.getItem("dtrag.answers")]).toEqual([1, null]);
  expect(session.value.state).toBe("closed");
});

test("the address of a view ends with its caller: the next one does not ask the same question", async () => {
  location.hash = "#/ask?q=secret";
  answering(as({ csrf: "c2" }));
  await load();
  expect(location.hash).toBe("#/ask?q=secret");
  answering(as({ name: "lee" }));
  await load();
  expect(location.hash).toBe("");
  location.hash = "#/ask?q=secret";
  answering(new Response(null, { status: 204 }));
  await signOut();
  expect(location.hash).toBe("");
});

test("answers that a former caller left in the tab are forgotten after a reload, those of the same caller stay", async () => {
  const reloaded = async (body: Response) => {
    vi.resetModules();
    answering(body);
    const page = await import("./session");
    await page.load();
    return sessionStorage.getItem("dtrag.answers");
  };
  expect(await reloaded(as({ csrf: "c9" }))).toBe("[]");
  expect(await reloaded(as({ name: "lee" }))).toBeNull();
});

test("the same caller keeps what the tab shows", async () => {
  answering(as());
  await load();
  expect(forgotten).not.toHaveBeenCalled();
  expect(sessionStorage.getItem("dtrag.answers")).toBe("[]");
});

test.each([429, 503])("signing out that fails with %s is said, and works the next time", async (status) => {
  answering(refusal(status, "Refused", "Later."), new Response(null, { status: 204 }));
  await signOut();
  expect(session.value.state).toBe("open");
  expect(signOutProblem.value).toMatchObject({ detail: "Later." });
  await signOut();
  expect(session.value).toEqual({ state: "closed", ended: false });
  expect(signOutProblem.value).toBeNull();
  expect(sessionStorage.getItem("dtrag.answers")).toBeNull();
});

test.each([refusal(403, "StaleSession"), refusal(403, "Forbidden", "Needs X-CSRF-Token with the CSRF.")])(
  "a change with an old token is sent once more with the new one",
  async (stale) => {
    const fetched = answering(stale, as({ csrf: "c2" }), Response.json({}));
    await api.post("/classify", { body: { text: "x", title: "t" } });
    const tokens = fetched.mock.calls.map(([, init]) => new Headers(init?.headers).get("X-CSRF-Token"));
    expect(tokens).toEqual(["c1", null, "c2"]);
  },
);

test("a change is not sent again as another caller, nor more than once", async () => {
  const change = () => api.post("/classify", { body: { text: "x", title: "t" } });
  const other = answering(refusal(403, "StaleSession"), as({ name: "lee", csrf: "c2" }));
  await expect(change()).rejects.toMatchObject({ type: "StaleSession" });
  expect([other.mock.calls.length, caller.value?.name]).toEqual([2, "lee"]);
  const twice = answering(refusal(403, "StaleSession"), as({ name: "lee", csrf: "c3" }), refusal(403, "StaleSession"));
  await expect(change()).rejects.toMatchObject({ type: "StaleSession" });
  expect(twice).toHaveBeenCalledTimes(3);
});

test("a role that does not suffice is no matter of the token", async () => {
  const before = sessionNumber.value;
  const fetched = answering(refusal(403, "Forbidden", "An editor cannot do this."));
  await expect(api.post("/classify", { body: { text: "x", title: "t" } })).rejects.toMatchObject({ kind: "forbidden" });
  expect([fetched.mock.calls.length, sessionNumber.value]).toEqual([1, before]);
});
