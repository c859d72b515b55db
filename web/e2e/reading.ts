/** What the tests of regulations share. */
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { edition } from "./editions";

/** Adds documents to the category Rules of the service. */
export async function addFiles(url: string, files: readonly (readonly [name: string, text: string])[]): Promise<void> {
  const form = new FormData();
  for (const [name, text] of files) form.append("files", new Blob([text]), name);
  form.append("category", "Rules");
  const response = await fetch(`${url}/documents`, { method: "POST", body: form });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
}

/** Two editions of one regulation. */
export async function addEditions(url: string): Promise<void> {
  await addFiles(url, [["old.md", edition("2020. 3. 1.", "배차는 하루에 서른 번까지 한다.")]]);
  await addFiles(url, [["new.md", edition("2024. 3. 1.", "배차는 하루에 마흔 번까지 한다.")]]);
}

/** The heading is in the window and has the focus. */
export async function expectAt(page: Page, heading: string): Promise<void> {
  const shown = page.getByRole("region", { name: /^(Text|전문)$/ }).getByRole("heading", { name: heading });
  await expect.poll(() => shown.evaluate((element) => element === document.activeElement)).toBe(true);
  expect(await shown.evaluate((element) => element.getBoundingClientRect().top)).toBeLessThan(800);
}
