import { expect, test } from "vitest";
import { navigate } from "../../state/router";
import { address, curlOf, documentIdIn, filterCount, fullRequest, metadataOf, NO_FILTERS, requestOf } from "./state";

const ID = "fe33954e-0b71-54eb-a9a0-db8e4cbdfc3a";

test("the request has only what differs from the defaults, and always explains", () => {
  navigate("#/search?q=leave");
  expect(requestOf(address.read())).toEqual({ query: "leave", top_k: 10, explain: true });
  navigate(`#/search?q=leave&mode=strict&k=5&scope=HR/Leave&type=text/html&type=nonsense&min=7&why=${ID}`);
  expect(requestOf(address.read())).toEqual({
    query: "leave",
    mode: "strict",
    top_k: 5,
    filters: { taxonomy_paths: [["HR", "Leave"]], content_types: ["text/html"] },
    min_score: 1,
    explain: true,
    explain_documents: [ID],
  });
  expect(fullRequest(address.read()).bm25_candidates).toBe(100);
});

test("filters can be counted and cleared", () => {
  navigate("#/search?q=leave&scope=HR&type=text/html&from=2025-01-01&field=author%3DKim");
  expect(filterCount(address.read())).toBe(4);
  address.set(NO_FILTERS);
  expect(location.hash).toBe("#/search?q=leave");
});

test("metadata fields are name and value", () => {
  expect(metadataOf(["author=Kim", "a = b=c", "=x", "nothing"])).toEqual({ author: "Kim", a: "b=c" });
  expect(metadataOf(["nothing"])).toBeNull();
});

test("a document is recognised in its id, its link and the id of its passage", () => {
  for (const pasted of [ID, ` ${ID.toUpperCase()} `, `http://host/#/documents/${ID}?show=who`, `${ID}:12`])
    expect(documentIdIn(pasted)).toBe(ID);
  expect(documentIdIn(" other ")).toBe("other");
});

test("the copied command quotes what a shell would read, and never has the key", () => {
  navigate(`#/search?q=${encodeURIComponent("it's $HOME")}`);
  const command = curlOf(address.read(), "http://127.0.0.1:8001", true);
  expect(command).toContain(`"query":"it'\\''s $HOME"`);
  expect(command).toContain('-H "Authorization: Bearer $DTRAG_KEY"');
  expect(curlOf(address.read(), "http://127.0.0.1:8001", false)).not.toContain("Authorization");
});
