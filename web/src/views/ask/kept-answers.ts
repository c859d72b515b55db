/**
 * Whole answers of this tab, so that reloading shows their sources: the service stores only questions and texts.
 *
 * They end with the tab or the session, and count only while the service still gives the same text to this caller.
 */
import { STORED_ANSWERS as KEY } from "../../state/session";
import type { Answer, Settings, Turn } from "./turn";

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
const isComplete = ({ answer }: Kept): boolean => Array.isArray(answer.marked);

export function keepAnswer(conversation: string, { question, settings }: Turn, answer: Answer): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify([...read(), { conversation, question, settings, answer }].slice(-MOST)));
  } catch {
    return; // full or switched off
  }
}

interface Message {
  question: string;
  answer: string;
  /** null for answers that an earlier version of the service stored. */
  trace_id: string | null;
}

export function keptAnswer(conversation: string, message: Message): Kept | undefined {
  return read().findLast(
    ({ conversation: of, question, answer }) =>
      of === conversation &&
      question === message.question &&
      answer.response === message.answer &&
      (message.trace_id === null || message.trace_id === answer.metadata.trace_id),
  );
}

export function forgetAnswers(): void {
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    return; // nothing was stored
  }
}
