import { expect, test } from "vitest";
import { mount } from "../test/setup";
import { categories, flag, formatPath, integer, list, oneOf, parsePath, queryState, text } from "./query";
import { href, isOwnAddress, navigate, parseFragment, route, startRouter } from "./router";
import { session, type Caller } from "./session";

test("a link and its route say the same", () => {
  const link = href("documents", { path: ["a/b", "한글"], query: { q: "무엇? #1", page: "2" } });
  const parsed = parseFragment(link);
  expect([parsed.view, parsed.path]).toEqual(["documents", ["a/b", "한글"]]);
  expect(Object.fromEntries(parsed.query)).toEqual({ q: "무엇? #1", page: "2" });
});

test("an empty fragment is the first view, a broken one is text", () => {
  expect(parseFragment("")).toMatchObject({ view: "ask", path: [] });
  expect(parseFragment("#/documents/%E0%A4%A").path).toEqual(["%E0%A4%A"]);
});

test("category paths keep slashes and backslashes in names", () => {
  const path = ["A/B", "C\\D", "학칙"];
  expect(parsePath(formatPath(path))).toEqual(path);
});

test("the state of a view is typed, and defaults are left out of its link", () => {
  const state = queryState({
    q: text(),
    page: integer(1),
    deep: flag(),
    sort: oneOf(["new", "old"], "new"),
    tag: list(),
    scope: categories(),
  });
  navigate("#/search?page=x&sort=other");
  expect(state.read()).toEqual({ q: "", page: 1, deep: false, sort: "new", tag: [], scope: [] });
  const full = { q: "a b", page: 3, deep: true, sort: "old" as const, tag: ["x", "y"], scope: [["A/B", "C"]] };
  state.set(full);
  expect(state.read()).toEqual(full);
  expect(route.value.view).toBe("search");
  state.set({ q: "", page: 1, deep: false, sort: "new", tag: [], scope: [] }, { replace: true });
  expect(location.hash).toBe("#/search");
});

test("an address is the page's own for the caller whom a link of the page led there", () => {
  const signIn = (name: string) => (session.value = { state: "open", caller: { name } as Caller });
  startRouter();
  signIn("kim");
  const link = document.createElement("a");
  mount(null).append(link);
  const follow = (to: string) => {
    link.href = to;
    link.click();
    return [location.hash, isOwnAddress()];
  };
  expect(follow("#/ask?q=May")).toEqual(["#/ask?q=May", true]);
  navigate("#/ask?q=May&c=1", { replace: true });
  expect(isOwnAddress()).toBe(true);
  signIn("lee");
  expect(isOwnAddress()).toBe(false);
  expect(follow("#/ask?q=Must")).toEqual(["#/ask?q=Must", true]);
  session.value = { state: "unknown" };
});
