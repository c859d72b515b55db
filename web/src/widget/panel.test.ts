/** The widget in a document, with a service that answers what the test says. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Answer } from "./ask";
import { optionsOf } from "./options";
import { mount } from "./panel";

const OPTIONS = {
  script: "https://dtrag.example.org/widget.js",
  key: "dtrag_k",
  agent: "a 1",
  language: "en",
  theme: "",
} as const;
const ANSWER = {
  decision: "answer",
  text: "Up to **5** days. [1] [7]",
  model: "m",
  notes: [],
  note_statements: [],
  unfinished: false,
  citations: [
    { number: 1, label: "Leave <b>", display: "Up to 5 days <i>.", context: [], source_url: "javascript:alert(1)" },
  ],
} as unknown as Answer;
const fetched = vi.fn<typeof fetch>();
let host: HTMLElement;

function shadow(): ShadowRoot {
  if (!host.shadowRoot) throw new Error("The widget has no shadow root.");
  return host.shadowRoot;
}
const text = () => shadow().querySelector(".log")?.textContent ?? "";

function asking(question: string): void {
  shadow().querySelector<HTMLButtonElement>(".opener")?.click();
  const field = shadow().querySelector("textarea");
  if (field) field.value = question;
  shadow()
    .querySelector("form")
    ?.dispatchEvent(new Event("submit", { cancelable: true }));
}

/** The next response streams what the test sends. */
function streaming() {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  fetched.mockImplementationOnce((_, request) => {
    const body = new ReadableStream<Uint8Array>({ start: (started) => void (controller = started) });
    request?.signal?.addEventListener("abort", () => controller?.error(new DOMException("stopped", "AbortError")));
    return Promise.resolve(new Response(body, { headers: { "Content-Type": "text/event-stream" } }));
  });
  const encoder = new TextEncoder();
  return {
    send: (name: string, data: unknown) =>
      controller?.enqueue(encoder.encode(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)),
    breaks: () => controller?.error(new TypeError("network error")),
  };
}

beforeEach(() => {
  vi.stubGlobal("fetch", fetched.mockReset());
  host = mount(OPTIONS);
});
afterEach(() => {
  host.remove();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

describe("the widget", () => {
  test("asks the agent with the key, without cookies, and shows the answer as text", async () => {
    fetched.mockResolvedValue(Response.json(ANSWER));
    asking("How many days?");
    await vi.waitFor(() => expect(text()).toContain("Up to 5 days"));
    const [address, request] = fetched.mock.calls[0] ?? [];
    expect(address).toEqual(new URL("https://dtrag.example.org/agents/a%201/ask"));
    expect(request).toMatchObject({ method: "POST", credentials: "omit", body: '{"question":"How many days?"}' });
    expect(new Headers(request?.headers).get("Authorization")).toBe("Bearer dtrag_k");
    expect(text()).toContain("[1] Leave <b>");
    expect(text()).toContain("A language model wrote this answer");
    expect(shadow().querySelector(".log b, .log i, details a")).toBeNull();
    expect(shadow().querySelector("[role=status]")?.textContent).toBe("The answer is there, with 1 source.");
  });

  test("asks about the public branches without a key", async () => {
    host.remove();
    host = mount({ ...OPTIONS, key: "", agent: "" });
    fetched.mockResolvedValue(Response.json(ANSWER));
    asking("How many days?");
    await vi.waitFor(() => expect(text()).toContain("Up to 5 days"));
    const [address, request] = fetched.mock.calls[0] ?? [];
    expect(address).toEqual(new URL("https://dtrag.example.org/ask"));
    expect(new Headers(request?.headers).has("Authorization")).toBe(false);
  });

  test("shows the answer while it is written, and keeps what was written when it is stopped", async () => {
    const stream = streaming();
    asking("How many days?");
    stream.send("step", { name: "retrieve" });
    stream.send("token", { text: "Up to " });
    await vi.waitFor(() => expect(text()).toContain("Up to"));
    expect(text()).toContain("Writing the answer");
    stream.send("token", { text: "<b>6</b>" });
    stream.send("replace", { text: "Up to 5 " });
    await vi.waitFor(() => expect(text()).toContain("Up to 5"));
    expect(text()).not.toContain("6");
    shadow()
      .querySelector("form")
      ?.dispatchEvent(new Event("submit", { cancelable: true }));
    await vi.waitFor(() => expect(text()).toContain("You stopped this question."));
    expect(text()).toContain("Up to 5");
  });

  test("the last event of a stream is the answer, and its rows are a table", async () => {
    const stream = streaming();
    asking("How many days?");
    const citation = { number: 1, label: "Leave", display: "House | 1", source_url: "", document_id: "d" };
    const context = [{ kind: "header", text: "Occasion | Days" }];
    const row = {
      ...ANSWER,
      model: null,
      text: "Occasion | Days\nHouse | 1 [1]",
      citations: [{ ...citation, context }],
    };
    stream.send("done", row);
    await vi.waitFor(() => expect(shadow().querySelectorAll(".answer thead th[scope=col]")).toHaveLength(2));
    expect(shadow().querySelector(".answer tbody th[scope=row]")?.textContent).toBe("House");
    expect(shadow().querySelector(".answer td .mark")?.textContent).toBe("1");
    expect(text()).not.toContain("|");
  });

  test.each([
    ["ends without its last event", true, "The connection broke off"],
    ["ends because the device is offline", false, "Your device is offline."],
  ])("a stream that %s has failed and can be asked again", async (_, onLine, sentence) => {
    vi.stubGlobal("navigator", { onLine, languages: [] });
    const stream = streaming();
    asking("How many days?");
    stream.send("token", { text: "Up to " });
    await vi.waitFor(() => expect(text()).toContain("Up to"));
    stream.breaks();
    await vi.waitFor(() => expect(text()).toContain(sentence));
    expect(shadow().querySelector(".log button")).not.toBeNull();
  });

  test("a mark opens its source; one without a source stays text", async () => {
    fetched.mockResolvedValue(Response.json(ANSWER));
    asking("How many days?");
    await vi.waitFor(() => expect(shadow().querySelectorAll(".mark")).toHaveLength(1));
    shadow().querySelector<HTMLButtonElement>(".mark")?.click();
    expect(shadow().querySelector("details")?.open).toBe(true);
    expect(text()).toContain("[7]");
  });

  test("a declined answer has no quotation", async () => {
    fetched.mockResolvedValue(Response.json({ ...ANSWER, decision: "abstain" }));
    asking("Dental?");
    await vi.waitFor(() => expect(text()).toContain("The documents do not answer this question."));
    expect(shadow().querySelector("details")).toBeNull();
  });

  test.each([
    [401, "This site may no longer ask here."],
    [403, "This question box may not ask here."],
    [422, "The service cannot read this question."],
    [503, "The service is not available at the moment."],
    [500, "Something went wrong."],
  ])("status %d is said in words", async (status, sentence) => {
    fetched.mockResolvedValue(Response.json({ detail: "no" }, { status }));
    asking("How many days?");
    await vi.waitFor(() => expect(text()).toContain(sentence));
    const canRetry = shadow().querySelector(".log button") !== null;
    expect(canRetry).toBe(status >= 500);
    expect(shadow().querySelector("textarea")?.value).toBe("How many days?");
  });

  test("429 counts the seconds down and then asks again", async () => {
    vi.useFakeTimers();
    fetched.mockResolvedValueOnce(Response.json({}, { status: 429, headers: { "Retry-After": "3" } }));
    asking("How many days?");
    await vi.waitFor(() => expect(text()).toContain("Ask again in 3 s"));
    const retry = shadow().querySelector<HTMLButtonElement>(".log button");
    expect(retry?.disabled).toBe(true);
    vi.advanceTimersByTime(3000);
    expect([retry?.disabled, retry?.textContent]).toEqual([false, "Ask again"]);
    fetched.mockResolvedValueOnce(Response.json(ANSWER));
    retry?.click();
    await vi.waitFor(() => expect(text()).toContain("Up to 5 days"));
  });

  test.each([
    ["a page that is not allowed", true, true, "This page may not ask here."],
    ["a service that is gone", true, false, "The service cannot be reached."],
    ["a device without a connection", false, false, "Your device is offline."],
  ])("%s is told apart", async (_, onLine, serviceIsUp, sentence) => {
    vi.stubGlobal("navigator", { onLine, languages: [] });
    fetched.mockRejectedValueOnce(new TypeError("Failed to fetch"));
    if (serviceIsUp) fetched.mockResolvedValueOnce(new Response());
    else fetched.mockRejectedValueOnce(new TypeError("Failed to fetch"));
    asking("How many days?");
    await vi.waitFor(() => expect(text()).toContain(sentence));
  });

  test("a question is stopped", async () => {
    fetched.mockImplementation(
      (_, request) =>
        new Promise((_, reject) => request?.signal?.addEventListener("abort", () => reject(new Error("stopped")))),
    );
    asking("How many days?");
    expect(text()).toContain("Searching the documents");
    shadow()
      .querySelector("form")
      ?.dispatchEvent(new Event("submit", { cancelable: true }));
    await vi.waitFor(() => expect(text()).toContain("You stopped this question."));
  });

  test("Enter that ends a Hangul syllable does not ask", () => {
    asking("");
    const field = shadow().querySelector("textarea");
    if (field) field.value = "휴학";
    field?.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", isComposing: true }));
    expect(fetched).not.toHaveBeenCalled();
  });
});

describe("the script element", () => {
  function scriptWith(data: Partial<Record<string, string>>): HTMLScriptElement {
    const script = document.createElement("script");
    Object.assign(script.dataset, data);
    return script;
  }

  test("gives key, agent, language and theme", () => {
    expect(optionsOf(scriptWith({ key: "k", agent: "a", lang: "ko", theme: "dark" }))).toMatchObject({
      key: "k",
      agent: "a",
      language: "ko",
      theme: "dark",
    });
    expect(optionsOf(scriptWith({ key: "k", agent: "a", theme: "x" })).theme).toBe("");
    expect(optionsOf(scriptWith({}))).toMatchObject({ key: "", agent: "" });
  });

  test.each([{ agent: "a" }, { key: "k" }])("without an attribute says which: %j", (data) => {
    expect(() => optionsOf(scriptWith(data))).toThrow(/add data-(key|agent)=/);
  });
});
