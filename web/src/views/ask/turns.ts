/** Questions and answers of the conversation that is shown; what streams into them, and what reloading keeps. */
import { signal } from "@preact/signals";
import { announce } from "../../state/announce";
import { keyless, whenSessionEnds } from "../../state/session";
import { api } from "../../api/client";
import { asProblem, isAbort, problemFrom, type Problem } from "../../api/problem";
import type { components } from "../../api/schema";
import { eventsOf } from "../../api/sse";
import { forgetAnswers, keepAnswer, keptAnswer } from "./kept-answers";
import { linkedQuestion } from "./state";
import { t } from "./text";
import type { Answer, Settings, Source, Turn, Vote } from "./turn";

const NO_VOTE: Vote = { thumbs: null, reason: "" };

export interface Shown {
  conversation: string;
  turns: readonly Turn[];
  loading: boolean;
  problem: Problem | null;
}

const NOTHING: Shown = { conversation: "", turns: [], loading: false, problem: null };
export const shown = signal<Shown>(NOTHING);
/** Counts answers, so that the list of conversations is loaded again. */
export const answersGiven = signal(0);
let running: AbortController | null = null;
/** Of all turns of this page, so that what streams into one never changes another. */
let lastId = 0;

whenSessionEnds(() => {
  reset();
  forgetAnswers();
});

export function reset(): void {
  running?.abort();
  running = null;
  shown.value = NOTHING;
}

export function stop(): void {
  running?.abort();
}

/** Ids that the service cannot know yet. */
const unasked = new Set<string>();

export function newConversationId(): string {
  const id = `page-${crypto.getRandomValues(new BigUint64Array(2)).join("-")}`;
  unasked.add(id);
  return id;
}

/** Show a conversation; the question is asked unless it is the last one there, or that of a link from elsewhere. */
export async function show(conversation: string, question: string, settings: Settings): Promise<void> {
  if (shown.value.conversation === conversation) {
    const last = shown.value.turns.findLast((turn) => turn.question === question);
    if (question && !last && !shown.value.loading && !linkedQuestion()) await ask(question, settings);
    return;
  }
  reset();
  shown.value = { ...NOTHING, conversation };
  if (!unasked.delete(conversation) && !keyless.value) await loadTurns(conversation, question, settings);
  const { conversation: current, problem, turns } = shown.value;
  if (current !== conversation || problem) return;
  if (question && turns.at(-1)?.question !== question && !linkedQuestion()) await ask(question, settings);
}

async function loadTurns(conversation: string, question: string, settings: Settings): Promise<void> {
  shown.value = { ...shown.value, loading: true };
  try {
    const turns = await storedTurns(conversation, settings);
    if (shown.value.conversation !== conversation) return;
    shown.value = { ...shown.value, turns, loading: false };
  } catch (error) {
    if (shown.value.conversation !== conversation) return;
    const problem = asProblem(error);
    const isNew = problem.kind === "missing" && question !== "";
    shown.value = { ...shown.value, loading: false, problem: isNew ? null : problem };
  }
}

async function storedTurns(conversation: string, settings: Settings): Promise<Turn[]> {
  const stored = await api.get("/conversations/{conversation_id}", { path: { conversation_id: conversation } });
  return stored.messages.map((message) => {
    lastId += 1;
    const kept = message.withheld ? null : keptAnswer(conversation, message);
    return {
      id: lastId,
      question: message.question,
      settings: kept?.settings ?? settings,
      state: message.withheld ? "withheld" : kept ? "done" : "stored",
      text: message.answer,
      step: "",
      sources: kept?.answer.sources ?? [],
      answer: kept?.answer ?? null,
      traceId: message.trace_id ?? kept?.answer.metadata.trace_id ?? "",
      vote: voteOf(message),
      problem: null,
    };
  });
}

const THUMBS: Record<string, Vote["thumbs"]> = { thumbs_up: "up", thumbs_down: "down" };

function voteOf({ feedback, feedback_reason }: components["schemas"]["TurnShape"]): Vote {
  return { thumbs: (feedback && THUMBS[feedback]) || null, reason: feedback_reason };
}

/** Store what the caller says of an answer; without thumbs an earlier vote is taken back. Throws `Problem`. */
export async function vote(turn: Turn, { thumbs, reason }: Vote): Promise<void> {
  const what = thumbs ? { thumbs, reason: reason || null } : { rating: NEITHER };
  await api.post("/chat/feedback", { body: { trace_id: turn.traceId, ...what } });
  change(turn.id, { vote: { thumbs, reason: thumbs ? reason : "" } });
}
/** Of the ratings from 1 to 5 the one that is neither up nor down. */
const NEITHER = 3;

export async function ask(question: string, settings: Settings): Promise<void> {
  running?.abort();
  const abort = new AbortController();
  running = abort;
  const { conversation, turns } = shown.value;
  lastId += 1;
  const id = lastId;
  const turn: Turn = {
    id,
    question,
    settings,
    state: "running",
    text: "",
    step: "",
    sources: [],
    answer: null,
    traceId: "",
    vote: NO_VOTE,
    problem: null,
  };
  shown.value = { ...shown.value, turns: [...turns, turn] };
  announce(t("ask.asking"));
  try {
    for await (const event of eventsOf("/chat/stream", requestOf(question, conversation, settings), abort.signal)) {
      if (running !== abort) break; // stopped or replaced
      receive(id, event.name, JSON.parse(event.data));
    }
    if (turnOf(id)?.state === "running") change(id, { state: "failed", problem: problemFrom(0, null) });
  } catch (error) {
    if (isAbort(error) || running !== abort) change(id, { state: "stopped" });
    else change(id, { state: "failed", problem: asProblem(error) });
  }
  if (running === abort) running = null;
}

/** Ask a question of the conversation again, in the place of its earlier attempt when that failed. */
export async function retry(turn: Turn): Promise<void> {
  if (turn.state === "failed" || turn.state === "stopped")
    shown.value = { ...shown.value, turns: shown.value.turns.filter((other) => other.id !== turn.id) };
  await ask(turn.question, turn.settings);
}

function requestOf(question: string, conversation: string, settings: Settings): components["schemas"]["ChatRequest"] {
  return {
    ...(keyless.value ? { messages: messagesWith(question) } : { message: question, conversation_id: conversation }),
    agent_id: settings.agent || null,
    context: {
      ...(settings.scope.length > 0 && { taxonomy_paths: settings.scope }),
      ...(settings.as_of && { as_of: settings.as_of }),
      ...(settings.regulation && { filters: { metadata: { regulation: settings.regulation } } }),
    },
  };
}

/** Turns before the question that are sent where the service stores no conversation. */
const MOST_SENT = 10;

function messagesWith(question: string): components["schemas"]["ChatMessage"][] {
  const earlier = shown.value.turns.filter((turn) => turn.state === "done").slice(-MOST_SENT);
  const said = earlier.flatMap((turn) => [
    { role: "user" as const, content: turn.question },
    { role: "assistant" as const, content: turn.text },
  ]);
  return [...said, { role: "user", content: question }];
}

/** What the events of POST /chat/stream carry. */
interface EventData {
  name?: string;
  text?: string;
  citations?: Source[];
}

function receive(id: number, name: string, data: unknown): void {
  const { name: step, text, citations } = data as EventData;
  if (name === "step") change(id, { step: step ?? "" });
  else if (name === "token") change(id, { text: (turnOf(id)?.text ?? "") + (text ?? "") });
  else if (name === "replace") change(id, { text: text ?? "" });
  else if (name === "citations") change(id, { sources: citations ?? [] });
  else if (name === "error") change(id, { state: "failed", problem: problemFrom(500, data) });
  else if (name === "done") finish(id, data as Answer);
}

function finish(id: number, answer: Answer): void {
  const { response: text, sources, metadata } = answer;
  change(id, { state: "done", answer, text, sources, traceId: metadata.trace_id });
  const turn = turnOf(id);
  if (turn) keepAnswer(shown.value.conversation, turn, answer);
  answersGiven.value += 1;
  const declined = answer.metadata.decision === "abstain";
  announce(declined ? t("ask.declined") : t("ask.answered", { n: answer.sources.length }));
}

const turnOf = (id: number): Turn | undefined => shown.value.turns.find((turn) => turn.id === id);

function change(id: number, to: Partial<Turn>): void {
  const turns = shown.value.turns.map((turn) => (turn.id === id ? { ...turn, ...to } : turn));
  shown.value = { ...shown.value, turns };
}
