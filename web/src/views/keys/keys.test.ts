import { expect, test } from "vitest";
import { requestOf } from "./NewKey";

const DRAFT = {
  name: " HR desk ",
  role: "reader" as const,
  scope: [],
  expires: "",
  agent: "",
  origins: "",
  principals: "",
  originals: false,
};

test("a key without ticked branches sees the whole tree and does not expire", () => {
  expect(requestOf(DRAFT)).toMatchObject({
    name: "HR desk",
    role: "reader",
    scope: null,
    expires_at: null,
    origins: [],
  });
});

test("ticked branches are its scope", () => {
  expect(requestOf({ ...DRAFT, scope: [["HR", "Leave"]] }).scope).toEqual([["HR", "Leave"]]);
});

test("it reads as the users of sources that are named, a public one as nobody", () => {
  const draft = { ...DRAFT, principals: " posix/kim  forge/lee " };
  expect(requestOf(draft).principals).toEqual(["posix/kim", "forge/lee"]);
  expect(requestOf({ ...draft, role: "public", agent: "a1" }).principals).toEqual([]);
});

test("it may see originals when that is ticked, a public one never", () => {
  const draft = { ...DRAFT, originals: true };
  expect([requestOf(DRAFT).originals, requestOf(draft).originals]).toEqual([false, true]);
  expect(requestOf({ ...draft, role: "public", agent: "a1" }).originals).toBe(false);
});

test("a public key has an agent and pages, and no scope", () => {
  const request = requestOf({
    ...DRAFT,
    role: "public",
    scope: [["HR"]],
    agent: "a1",
    origins: "https://a.example  https://b.example",
  });
  expect(request).toMatchObject({ scope: null, agent_id: "a1", origins: ["https://a.example", "https://b.example"] });
});

test("it expires at the end of the day", () => {
  const request = requestOf({ ...DRAFT, expires: "2030-01-31" });
  expect(new Date(request.expires_at ?? "").getTime()).toBe(new Date("2030-01-31T23:59:59").getTime());
});
