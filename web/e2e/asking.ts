/** Questions to the samples, and waiting for their answers. */
import type { Page } from "playwright-core";
import { open, service, type Look } from "./browser";

/** Answered from the regulations (with a lead-in as context) and from the handbook. */
export const library = {
  ko: "도서관에서 학부생은 책을 몇 권까지 빌릴 수 있나요?",
  en: "How many days of paid annual leave does a full-time employee have?",
};
export const leave = "휴학은 최대 몇 학기까지 할 수 있나요?";
/** Answered from a PDF. */
export const password = "How many characters must a password have at least?";
/** Answered by nothing. */
export const zeppelin = {
  ko: "비행선 계류장 사용료는 얼마인가요?",
  en: "Which dental insurance does the company offer?",
};

export const linkTo = (question: string): string => `#/ask?${new URLSearchParams({ q: question }).toString()}`;

/** The question of a link waits for the reader. */
export async function askLinked(page: Page): Promise<void> {
  await page.locator("#ask-linked").waitFor();
  await page.locator("form button[type=submit]").click();
}

/** A page in which the question of a link was asked. */
export async function openAsked(question: string, look: Look = {}, url = service): Promise<Page> {
  const page = await open(linkTo(question), look, url);
  await askLinked(page);
  return page;
}

/** Until the last answer is complete. */
export async function waitForAnswer(page: Page): Promise<void> {
  await page.locator('article[aria-busy="false"]').last().waitFor();
  await page.locator("article details").last().waitFor();
}
