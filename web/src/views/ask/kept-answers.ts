/**
 * Whole answers of this tab, so that reloading shows their sources: the service stores only questions and texts.
 *
 * They end with the tab or the session, and count only while the service still gives the same text to this caller.
 */
import { STORED_ANSWERS as KEY } from "../../app/session";
import type { Settings } from "./state";
import type { Answer, Turn } from "./turns";

interface Kept {
  conversation: string;
  question: string;
  settings: Settings;
  answer: Answer;
}

const MOST = 40;

function read(): Kept[] {
  try {
    const value: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
    return Array.isArray(value) ? (value as Kept[]).filter(isComplete) : [];
  } catch {
    return []; // storage is switched off: earlier answers are shown without their sources
  }
}

/** An earlier edition of the page stored answers without some of today's fields. */
const isComplete = ({ answer }: Kept): boolean => Array.isArray(answer.metadata.note_statements);

export function keepAnswer(conversation: string, { question, settings }: Turn, answer: Answer): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify([...read(), { conversation, question, settings, answer }].slice(-MOST)));
  } catch {
    return; // full or switched off
  }
}

export function keptAnswer(conversation: string, question: string, text: string): Kept | undefined {
  return read().findLast(
    (kept) => kept.conversation === conversation && kept.question === question && kept.answer.response === text,
  );
}

export function forgetAnswers(): void {
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    return; // nothing was stored
  }
}
