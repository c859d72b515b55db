/** The states of a view when the service refuses, is overloaded or is gone: each says so, with one thing to do. */
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { close, expectAccessible, open, picture, type Look } from "./browser";

export const FAILURES = [401, 403, 429, 503, "offline"] as const;
export type FailureKind = (typeof FAILURES)[number];

const EXPECTED: Record<FailureKind, Record<"en" | "ko", string>> = {
  401: { en: "Your session has ended", ko: "세션이 끝났습니다" },
  403: { en: "Your key does not allow this", ko: "이 키로는 할 수 없습니다" },
  429: { en: "Too many requests", ko: "요청이 너무 많습니다" },
  503: { en: "Not available at the moment", ko: "지금은 이용할 수 없습니다" },
  offline: { en: "The service cannot be reached", ko: "서비스에 연결할 수 없습니다" },
};
/** What the browser itself writes to the console about a refused request. */
export const REFUSED = /Failed to load resource|net::ERR/;

/** Requests to `path` fail from now on. */
export async function fail(page: Page, path: string, kind: FailureKind): Promise<void> {
  await page.route(
    (url) => url.pathname === path,
    async (route) => {
      if (route.request().resourceType() === "document") return route.continue();
      if (kind === "offline") return route.abort("internetdisconnected");
      return route.fulfill({
        status: kind,
        headers: { "Retry-After": "7" },
        json: { detail: "A sentence of the service.", type: "Failure", request_id: "r-1" },
      });
    },
  );
}

/** Opens the view at `at` while requests to `path` fail, and checks what it says. */
export async function expectFailure(name: string, at: string, path: string, kind: FailureKind, look: Look = {}) {
  const page = await open("", look);
  await fail(page, path, kind);
  await page.evaluate((hash) => (location.hash = hash), at);
  await expectState(page, name, kind, look);
  await close(page, REFUSED);
}

/** A part of a view, and the path of the request that fails; `act` does what sends it. */
export interface FailingPart {
  name: string;
  at: string;
  path: string;
  act?: (page: Page) => Promise<void>;
}

/** As `expectFailure`, for parts one after the other in one page; a page ends with its session, so 401 has one each. */
export async function expectFailures(parts: readonly FailingPart[], kind: FailureKind, look: Look = {}) {
  let page = await open("", look);
  for (const part of parts) {
    await page.unrouteAll();
    await fail(page, part.path, kind);
    const sent = page.waitForRequest((request) => new URL(request.url()).pathname === part.path);
    await page.evaluate((hash) => (location.hash = hash), part.at);
    await part.act?.(page);
    await sent; // what an earlier part said is no longer shown
    await expectState(page, part.name, kind, look);
    if (kind !== 401 || part === parts.at(-1)) continue;
    await close(page, REFUSED);
    page = await open("", look);
  }
  await close(page, REFUSED);
}

async function expectState(page: Page, name: string, kind: FailureKind, look: Look) {
  await page
    .getByText(EXPECTED[kind][look.language ?? "en"])
    .first()
    .waitFor();
  await expectAccessible(page);
  await picture(page, `${name}-${kind}-${look.language ?? "en"}-${look.theme ?? "light"}-${look.width ?? 1280}`);
  if (kind === 429 || kind === 503)
    expect(await page.getByRole("button", { name: /Try again|다시 시도/ }).count()).toBeGreaterThan(0);
}
