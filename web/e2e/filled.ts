/** A service in which every view has something to show, filled through its own routes and commands. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inject } from "vitest";
import { leave, library } from "./asking";
import { edition } from "./editions";
import { startService, type Service } from "./service";

export interface Filled extends Service {
  /** The key of an administrator; from its creation on, the service answers nobody without a key. */
  secret: string;
  reader: string;
  /** Of what the views with one object show. */
  ids: {
    document: string;
    original: string;
    agent: string;
    trace: string;
    answer: string;
    classification: string;
    case: string;
  };
  runs: string[];
}

interface Listed {
  documents: { title: string; document_id: string }[];
  items: { item_id: string; kind: string }[];
  cases: { case_id: string }[];
  evaluations: { run_id: string }[];
}
interface Created {
  secret: string;
}

export type Json = <T>(path: string, body?: unknown) => Promise<T>;

/** Requests to a service; a refusal is an error. */
export const requests =
  (url: string, secret = ""): Json =>
  async <T>(path: string, body?: unknown): Promise<T> => {
    const headers: Record<string, string> = secret ? { Authorization: `Bearer ${secret}` } : {};
    if (body !== undefined && !(body instanceof FormData)) headers["Content-Type"] = "application/json";
    const response = await fetch(url + path, {
      method: body === undefined ? "GET" : "POST",
      headers,
      body: body === undefined || body instanceof FormData ? body : JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  };

/** Adds a document with this file name; `category` is for one that states none. */
export async function upload(json: Json, name: string, text: string, category = ""): Promise<void> {
  const form = new FormData();
  form.append("files", new Blob([text]), name);
  if (category) form.append("category", category);
  await json("/documents", form);
}

export async function startFilled(): Promise<Filled> {
  const folder = await mkdtemp(join(tmpdir(), "dtrag-filled-"));
  const examples = join(folder, "examples.txt");
  // Which questions are made from titles depends on the vectors that there are by then.
  await writeFile(examples, `${library.en}\n${leave}\n`);
  const settings = { CBR_ENABLED: "true", DTRAG_REVIEW_BELOW: "1", DTRAG_PAGE_EXAMPLES: examples };
  const service = await startService(inject("samples"), settings);
  const key = (name: string, role: string, scope?: string[][]) => ({ name, role, scope });
  const { secret } = await requests(service.url)<Created>("/keys", key("Records office", "admin"));
  const json = requests(service.url, secret);
  await upload(json, "old.md", edition("2020. 3. 1.", "배차는 하루에 서른 번까지 한다."), "Rules");
  await upload(json, "new.md", edition("2024. 3. 1.", "배차는 하루에 마흔 번까지 한다."), "Rules");
  const ledger = { title: "Ledger of the annual leave", text: "Debits of leave and onions of employees and students." };
  await upload(json, "ledger.jsonl", JSON.stringify({ id: "ledger", ...ledger }));
  const trace = await conversation(json);
  const agent = await json<{ agent_id: string }>("/agents/from-category", {
    name: "Handbook desk",
    version: "1.0.0",
    node_paths: [["Samples", "Handbook"]],
  });
  const operations = [
    { op: "add", path: ["Samples", "Archive"] },
    { op: "merge", paths: [["Samples", "University"]], into: ["Samples", "Handbook"] },
  ];
  await json("/taxonomy", { operations, rationale: "One place for all rules" });
  await keepRuns(service);
  const { documents } = await json<Listed>("/documents");
  const { items } = await json<Listed>("/review");
  const { cases } = await json<Listed>("/cbr/cases");
  const { evaluations } = await json<Listed>("/evaluations");
  const reader = await json<Created>("/keys", key("HR desk", "reader", [["Samples", "Handbook"]]));
  return {
    ...service,
    secret,
    reader: reader.secret,
    ids: {
      document: documents.find(({ title }) => title === "학칙")?.document_id ?? "",
      original: documents.find(({ title }) => title === "Information Security")?.document_id ?? "",
      agent: agent.agent_id,
      trace,
      answer: items.find(({ kind }) => kind === "answer")?.item_id ?? "",
      classification: items.find(({ kind }) => kind === "classification")?.item_id ?? "",
      case: cases[0]?.case_id ?? "",
    },
    runs: evaluations.map(({ run_id }) => run_id),
  };
}

/** Two questions, of which the first one's answer becomes a case by a vote; gives the trace of the last. */
async function conversation(json: Json): Promise<string> {
  let trace = "";
  for (const message of [library.en, leave]) {
    const { metadata } = await json<{ metadata: { trace_id: string } }>("/chat/run", { message });
    trace = metadata.trace_id;
    // One case only: cases are listed by ids that depend on where the samples are.
    if (message === library.en) await json("/chat/feedback", { trace_id: trace, thumbs: "up" });
  }
  return trace;
}

/** Two evaluations of the same set: without an answer to the second question, and with it. */
async function keepRuns(service: Service): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "dtrag-set-"));
  const [set, corpus] = [join(folder, "questions of staff"), join(folder, "corpus")];
  await mkdir(set);
  await mkdir(corpus);
  const questions = [
    { id: "1", text: library.en, answers: ["26 days"], relevant: ["leave.md"] },
    { id: "2", text: "How many floors has the building?", answers: ["Nine"], relevant: ["building.md"] },
    { id: "3", text: "Who founded Rome?", answerable: false },
  ];
  await writeFile(join(set, "queries.jsonl"), questions.map((question) => JSON.stringify(question)).join("\n"));
  await writeFile(join(corpus, "leave.md"), "# Leave\n\nA full-time employee has 26 days of paid annual leave.\n");
  const evaluate = () => service.dtrag("eval", "answers", set, "--corpus", corpus, "--no-embedder", "--keep");
  await evaluate();
  await writeFile(join(corpus, "building.md"), "# Building\n\nThe building has Nine floors.\n");
  await evaluate();
  await rm(folder, { recursive: true });
}
