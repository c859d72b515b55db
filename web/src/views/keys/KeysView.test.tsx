import { afterEach, expect, test, vi } from "vitest";
import { load } from "../../state/session";
import { mount } from "../../test/setup";
import KeysView from "./KeysView";

const ME = { kind: "session", name: "kim", role: "admin", scope: null, csrf: "c1", expires_at: "2030-01-01T00:00:00Z" };
const KEY = {
  name: "kim",
  prefix: "dtrag_ab",
  role: "admin",
  scope: null,
  state: "valid",
  created_at: "2026-01-01T00:00:00Z",
  last_used_at: null,
  expires_at: null,
  revoked_at: null,
  agent_id: null,
  origins: [],
  principals: [],
  originals: false,
  rate_per_minute: 60,
};
const KEYS = [
  KEY,
  { ...KEY, name: "lee", prefix: "dtrag_cd", role: "reader", scope: ["HR/Leave", "IT"], principals: ["posix/lee"] },
];

afterEach(() => vi.unstubAllGlobals());

test("revoking says who loses which access, and that one's own key ends the session", async () => {
  vi.stubGlobal(
    "fetch",
    vi.fn((url: string) => Promise.resolve(Response.json(url.includes("/session") ? ME : { keys: KEYS }))),
  );
  await load();
  mount(<KeysView />);
  const revoke = (name: string) => document.querySelector<HTMLButtonElement>(`button[aria-label="Revoke ${name}"]`);
  const dialog = () => document.querySelector("dialog")?.textContent ?? "";
  await vi.waitFor(() => expect(revoke("lee")).not.toBeNull());
  revoke("lee")?.click();
  await vi.waitFor(() =>
    expect(dialog()).toContain("lee (Reader: searches and asks) loses access to: HR/Leave, IT; as posix/lee."),
  );
  expect(dialog()).not.toContain("signed in with this key");
  [...document.querySelectorAll("button")].find((one) => one.textContent === "Cancel")?.click();
  await vi.waitFor(() => expect(document.querySelector("dialog")).toBeNull());
  revoke("kim")?.click();
  await vi.waitFor(() => expect(dialog()).toContain("You are signed in with this key"));
});
