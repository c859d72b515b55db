/** Every part of the regulations when the service refuses, is overloaded or is gone: what it says, and what to do. */
import type { Page } from "playwright-core";
import { test } from "vitest";
import { inBrowser, LOOKS } from "./browser";
import { expectFailures, FAILURES, type FailingPart } from "./states";

const at = (fragment: string) => encodeURI(fragment);
/** Regulations of the samples; each part has another, so that it is loaded anew. */
const PARTS: FailingPart[] = [
  { name: "list", at: "#/regulations", path: "/regulations" },
  { name: "text", at: at("#/regulations/학칙"), path: "/regulations/text" },
  { name: "article", at: at("#/regulations/장학금지급규정?at=제2조"), path: "/regulations/show", act: openArticle },
  {
    name: "cited-by",
    at: at("#/regulations/도서관이용규정?at=제3조"),
    path: "/regulations/citations",
    act: openArticle,
  },
  {
    name: "editions",
    at: at("#/regulations/학칙?part=editions&before=2020-01-01&after=2024-01-01"),
    path: "/regulations/diff",
  },
  { name: "stale", at: "#/regulations?show=stale", path: "/regulations/stale" },
  { name: "missing", at: "#/regulations?show=stale&broken=missing", path: "/regulations/citations" },
  { name: "verify", at: "#/regulations?show=verify", path: "/regulations/verify", act: verify },
].map((part) => ({ ...part, name: `regulations-${part.name}` }));

inBrowser("regulations that cannot be shown", () => {
  test.each(FAILURES)("when the service answers %s", { timeout: 180_000 }, async (kind) => {
    // Each failure in another language, theme and width.
    await expectFailures(PARTS, kind, LOOKS[(3 * FAILURES.indexOf(kind)) % LOOKS.length]);
  });
});

async function openArticle(page: Page): Promise<void> {
  await page.locator("main article > details > summary").first().click();
}

async function verify(page: Page): Promise<void> {
  await page.getByLabel(/^(Text to verify|검증할 글)$/).fill("학칙 제2조");
  await page.getByRole("button", { name: /^(Verify|검증)$/ }).click();
}
