import { expect, test } from "vitest";
import { mount } from "../test/setup";
import { Markdown } from "./Markdown";
import { citationsIn, safeLink } from "./parse-markdown";

const shown = (text: string) =>
  mount(<Markdown text={text} cite={(number, key) => <button key={key}>{number}</button>} />);

test("paragraphs, lists, tables and code become elements", () => {
  const page = shown(
    "# Title\n\nA **b** [1].\n\n1. one\n2. two *x*\n\n| a | b |\n|---|---|\n| 1 | [2] |\n\n```\n<b>\n```",
  );
  expect(page.querySelector("h3")?.textContent).toBe("Title");
  expect(page.querySelector("p strong")?.textContent).toBe("b");
  expect([...page.querySelectorAll("ol li")].map((item) => item.textContent)).toEqual(["one", "two x"]);
  expect(page.querySelectorAll("tbody th[scope=row], tbody td")).toHaveLength(2);
  expect([...page.querySelectorAll("button")].map((button) => button.textContent)).toEqual(["1", "2"]);
  expect(page.querySelector("pre")?.textContent).toBe("<b>");
});

test("text is never HTML", () => {
  const attack = '<img src=x onerror="alert(1)"><script>alert(1)</script>';
  const page = shown(attack);
  expect(page.querySelector("img, script")).toBeNull();
  expect(page.textContent).toBe(attack);
});

test("links lead only to http and https, without credentials", () => {
  const page = shown(
    "[a](https://example.org/x) [b](javascript:alert(1)) [c](https://u:p@example.org/) [d](data:text/html,x)",
  );
  expect([...page.querySelectorAll("a")].map((link) => link.getAttribute("href"))).toEqual(["https://example.org/x"]);
  for (const address of ["JaVaScRiPt:alert(1)", "java\nscript:x", "//example.org", "vbscript:x", "file:///etc/passwd"])
    expect(safeLink(address)).toBeNull();
});

test("stars and bars inside words stay as they are", () => {
  expect(shown("2*3*4 snake_case_name").textContent).toBe("2*3*4 snake_case_name");
});

test("a quotation keeps its characters, only its citations become marks", () => {
  expect(citationsIn("가. *항* [1] 끝[12].")).toEqual([
    { kind: "text", text: "가. *항* " },
    { kind: "citation", number: 1 },
    { kind: "text", text: " 끝" },
    { kind: "citation", number: 12 },
    { kind: "text", text: "." },
  ]);
});

test("long and hostile input is read in no time that grows out of hand", () => {
  const inputs = ["**".repeat(5000), "[".repeat(20000), "> ".repeat(3000) + "x", "`".repeat(9999), "_a ".repeat(5000)];
  for (const input of inputs) expect(shown(input).textContent).toBeTypeOf("string");
}, 30_000);
