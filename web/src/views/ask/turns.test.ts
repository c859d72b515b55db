import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { navigate, startRouter } from "../../state/router";
import { session } from "../../state/session";
import type { Answer } from "./turn";
import { newConversationId, reset, retry, show, shown, stop, vote } from "./turns";

const SETTINGS = { scope: [["A", "B"]], agent: "", as_of: "2024-03-01", regulation: "학칙" };
const ANSWER = {
  response: "Yes. [1]",
  sources: [{ number: 1, quote: "Yes." }],
  marked: [],
  metadata: { decision: "answer", note_statements: [] },
} as unknown as Answer;

const events = (...list: [string, unknown][]) =>
  list.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join("");
const streamed = (body: string) => new Response(body, { headers: { "Content-Type": "text/event-stream" } });

function answering(...responses: (Response | Error)[]) {
  const fetched = vi.fn<typeof fetch>(() => {
    const next = responses.shift() ?? new Error("no more responses");
    return next instanceof Error ? Promise.reject(next) : Promise.resolve(next);
  });
  vi.stubGlobal("fetch", fetched);
  return fetched;
}

beforeEach(() => {
  reset();
  sessionStorage.clear();
});
afterEach(() => {
  session.value = { state: "unknown" };
  vi.unstubAllGlobals();
});

test("a question in a new conversation is asked at once, with scope and date", async () => {
  const fetched = answering(
    streamed(
      events(["step", { name: "retrieve" }], ["token", { text: "Ye" }], ["token", { text: "s" }], ["done", ANSWER]),
    ),
  );
  const id = newConversationId();
  await show(id, "May I?", SETTINGS);
  expect(fetched).toHaveBeenCalledTimes(1);
  const body = JSON.parse(fetched.mock.calls[0]?.[1]?.body as string) as unknown;
  expect(body).toMatchObject({
    message: "May I?",
    conversation_id: id,
    context: {
      taxonomy_paths: [["A", "B"]],
      as_of: "2024-03-01",
      filters: { metadata: { regulation: "학칙" } },
    },
  });
  expect(shown.value.turns).toMatchObject([{ question: "May I?", state: "done", text: "Yes. [1]" }]);
});

test("the question of a link from elsewhere is not asked, in a new conversation as in another one", async () => {
  startRouter();
  const missing = Response.json({ detail: "", type: "NotFound" }, { status: 404 });
  for (const conversation of [newConversationId(), "page-of-another"]) {
    navigate(`#/ask?q=May+I%3F&c=${conversation}`);
    const fetched = answering(missing);
    await show(conversation, "May I?", SETTINGS);
    expect(fetched.mock.calls.map(([address]) => address)).not.toContain("/chat/stream");
    expect(shown.value).toMatchObject({ conversation, turns: [], loading: false, problem: null });
  }
  navigate("#/ask");
});

test("reloading shows kept sources as long as the service gives the same answer", async () => {
  answering(streamed(events(["done", ANSWER])));
  const id = newConversationId();
  await show(id, "May I?", SETTINGS);
  const message = {
    number: 1,
    question: "May I?",
    answer: "Yes. [1]",
    withheld: false,
    created_at: "",
    trace_id: null,
  };
  const stored = (change: object) => Response.json({ conversation: {}, messages: [{ ...message, ...change }] });

  for (const [change, state, sources] of [
    [{}, "done", 1],
    [{ answer: "No." }, "stored", 0],
    [{ withheld: true, answer: "" }, "withheld", 0],
  ] as const) {
    reset();
    const fetched = answering(stored(change));
    await show(id, "May I?", SETTINGS);
    expect(fetched).toHaveBeenCalledTimes(1); // it is not asked again
    expect(shown.value.turns).toMatchObject([{ state }]);
    expect(shown.value.turns[0]?.sources).toHaveLength(sources);
  }
});

test("a stored conversation has its caller's votes, which can be changed and taken back", async () => {
  const message = { number: 1, question: "May I?", answer: "Yes.", withheld: false, created_at: "", trace_id: "t1" };
  const messages = [
    { ...message, feedback: "thumbs_down", feedback_reason: "No." },
    { ...message, trace_id: null, feedback: null, feedback_reason: "" },
  ];
  const fetched = answering(Response.json({ conversation: {}, messages }), Response.json({}), Response.json({}));
  await show("stored", "", SETTINGS);
  expect(shown.value.turns).toMatchObject([
    { traceId: "t1", vote: { thumbs: "down", reason: "No." } },
    { traceId: "", vote: { thumbs: null } },
  ]);
  const sent = () => JSON.parse(fetched.mock.lastCall?.[1]?.body as string) as unknown;
  const voted = () => shown.value.turns[0] ?? expect.fail("no turn");
  await vote(voted(), { thumbs: "up", reason: "" });
  expect(sent()).toEqual({ trace_id: "t1", thumbs: "up", reason: null });
  expect(voted().vote).toEqual({ thumbs: "up", reason: "" });
  await vote(voted(), { thumbs: null, reason: "" });
  expect(sent()).toEqual({ trace_id: "t1", rating: 3 });
  expect(voted().vote.thumbs).toBeNull();
});

test("someone else's conversation is a new one, in which the question is asked", async () => {
  const missing = Response.json({ detail: "No.", type: "NotFound" }, { status: 404 });
  answering(missing, streamed(events(["done", ANSWER])));
  await show("page-of-another", "May I?", SETTINGS);
  expect(shown.value).toMatchObject({ problem: null, turns: [{ state: "done" }] });
});

test("a stream without its last event, or with an error, has failed; asking again replaces it", async () => {
  answering(
    streamed(events(["token", { text: "Ye" }])),
    streamed(events(["error", { detail: "Broken.", type: "InternalError" }])),
    streamed(events(["done", ANSWER])),
  );
  await show(newConversationId(), "May I?", SETTINGS);
  for (const [state, detail] of [
    ["failed", ""],
    ["failed", "Broken."],
  ] as const) {
    const turn = shown.value.turns[0];
    expect(turn).toMatchObject({ state, problem: { detail } });
    if (turn) await retry(turn);
  }
  expect(shown.value.turns).toMatchObject([{ state: "done" }]);
});

test("stopping keeps what was written so far", async () => {
  let started = () => undefined as void;
  const begun = new Promise<void>((resolve) => (started = resolve));
  vi.stubGlobal("fetch", (_: string, init: RequestInit) => {
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(events(["token", { text: "Ye" }])));
        init.signal?.addEventListener("abort", () => controller.error(new DOMException("stopped", "AbortError")));
      },
    });
    return Promise.resolve(new Response(body));
  });
  const unsubscribe = shown.subscribe(({ turns }) => turns[0]?.text && started());
  const asked = show(newConversationId(), "May I?", SETTINGS);
  await begun;
  unsubscribe();
  stop();
  await asked;
  expect(shown.value.turns).toMatchObject([{ state: "stopped", text: "Ye" }]);
});

test("an answer that another question replaces neither stops nor writes into it", async () => {
  const streams: ReadableStreamDefaultController[] = [];
  vi.stubGlobal("fetch", (_: string, init: RequestInit) => {
    const body = new ReadableStream({
      start(controller) {
        streams.push(controller);
        init.signal?.addEventListener("abort", () => controller.error(new DOMException("stopped", "AbortError")));
      },
    });
    return Promise.resolve(new Response(body));
  });
  const first = show(newConversationId(), "First?", SETTINGS);
  await vi.waitFor(() => expect(streams).toHaveLength(1));
  const second = show(newConversationId(), "Second?", SETTINGS);
  await first;
  await vi.waitFor(() => expect(streams).toHaveLength(2));
  expect(shown.value.turns).toMatchObject([{ question: "Second?", state: "running" }]);
  streams[1]?.enqueue(new TextEncoder().encode(events(["done", ANSWER])));
  streams[1]?.close();
  await second;
  expect(shown.value.turns).toMatchObject([{ question: "Second?", state: "done" }]);
});

test("without a key the page sends the earlier turns itself, and asks for no stored conversation", async () => {
  session.value = {
    state: "open",
    caller: {
      name: "public",
      role: "public",
      scope: ["A"],
      local: false,
      regulations: true,
      provider: null,
    },
  };
  const fetched = answering(streamed(events(["done", ANSWER])), streamed(events(["done", ANSWER])));
  const id = newConversationId();
  await show(id, "May I?", SETTINGS);
  await show(id, "And she?", SETTINGS);
  const bodies = fetched.mock.calls.map(([, request]) => JSON.parse(request?.body as string) as unknown);
  expect(bodies[1]).toMatchObject({
    messages: [
      { role: "user", content: "May I?" },
      { role: "assistant", content: "Yes. [1]" },
      { role: "user", content: "And she?" },
    ],
  });
  expect(bodies[1]).not.toHaveProperty("conversation_id");
  await show("page-of-yesterday", "May I?", SETTINGS);
  expect(fetched.mock.calls.map(([address]) => address as string)).not.toContain("/conversations/page-of-yesterday");
});
