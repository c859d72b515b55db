import { afterEach, expect, test, vi } from "vitest";
import { mount } from "../test/setup";
import { WithOriginal } from "./WithOriginal";

const PART = { document_id: "d1", characters: 20, start: 0, end: 20, text: "The kettle boils now", passages: [] };
const BOX = [0.1, 0.2, 0.5, 0.25];

afterEach(() => vi.unstubAllGlobals());

const show = (original: boolean) =>
  mount(
    <WithOriginal part={{ ...PART, original }} span={{ start: 4, end: 10 }}>
      {(pages) => pages || <p>{PART.text}</p>}
    </WithOriginal>,
  );
const button = (name: string) => [...document.querySelectorAll("button")].find((each) => each.textContent === name);

test("where there is no original, or the key may not see it, there is the text alone", () => {
  show(false);
  expect(document.querySelector("button")).toBeNull();
  expect(document.body.textContent).toContain(PART.text);
});

test("nothing of an original is requested before it is opened; then its page is marked, and the text comes back", async () => {
  const marked = [{ page: 3, boxes: [BOX] }];
  const fetched = vi.fn<typeof fetch>(() => Promise.resolve(Response.json({ document_id: "d1", pages: 4, marked })));
  vi.stubGlobal("fetch", fetched);
  show(true);
  expect(fetched).not.toHaveBeenCalled();
  button("Show the page of the original")?.click();
  await vi.waitFor(() => expect(document.querySelector("img")?.getAttribute("src")).toBe("/documents/d1/pages/3"));
  expect(fetched.mock.calls[0]?.[0]).toBe("/documents/d1/pages?start=4&end=10");
  expect(document.body.textContent).toContain("Page 3 of 4");
  document.querySelector("img")?.dispatchEvent(new Event("load"));
  await vi.waitFor(() => expect(document.querySelectorAll("[data-mark]")).toHaveLength(1));
  expect(document.querySelector<HTMLElement>("[data-mark]")?.style.left).toBe("10%");
  button("Next page")?.click();
  await vi.waitFor(() => expect(document.body.textContent).toContain("The text is also marked on page 3."));
  expect(document.querySelector("[data-mark]")).toBeNull();
  button("Show the text")?.click();
  await vi.waitFor(() => expect(document.body.textContent).toContain(PART.text));
});

test("a page without a place for the text says so, and one that cannot be shown leads back to the text", async () => {
  const marked = [{ page: 2, boxes: [] }];
  vi.stubGlobal("fetch", () => Promise.resolve(Response.json({ document_id: "d1", pages: 4, marked })));
  show(true);
  button("Show the page of the original")?.click();
  await vi.waitFor(() => expect(document.body.textContent).toContain("its exact place on it is not known"));
  document.querySelector("img")?.dispatchEvent(new Event("error"));
  await vi.waitFor(() => expect(document.body.textContent).toContain("This page cannot be shown."));
});
