import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { load, session } from "../../state/session";
import { mount } from "../../test/setup";
import { NewKey } from "./NewKey";

const LOCAL = { kind: "local", name: "local", role: "admin", scope: null, csrf: null, expires_at: null };
const ADMIN = {
  kind: "session",
  name: "first",
  role: "admin",
  scope: null,
  csrf: "c1",
  expires_at: "2030-01-01T00:00:00Z",
};

function answering(...responses: Response[]) {
  const fetched = vi.fn<typeof fetch>(() => Promise.resolve(responses.shift() ?? Response.error()));
  vi.stubGlobal("fetch", fetched);
  return fetched;
}

const created = () => Response.json({ name: "first", prefix: "dtrag_ab", secret: "dtrag_secret" }, { status: 201 });
const button = (name: string) => [...document.querySelectorAll("button")].find((one) => one.textContent === name);

async function create() {
  const field = document.querySelector("input");
  if (field) field.value = "first";
  field?.dispatchEvent(new Event("input", { bubbles: true }));
  await vi.waitFor(() => expect(button("Create the key")?.disabled).toBe(false));
  button("Create the key")?.click();
  await vi.waitFor(() => expect(document.body.textContent).toContain("dtrag_secret"));
}

beforeEach(async () => {
  answering(Response.json(LOCAL));
  await load();
});
afterEach(() => vi.unstubAllGlobals());

test("the first key is an administrator; its secret stays until it is closed, which signs in with it", async () => {
  const [onClose, onCreated] = [vi.fn(), vi.fn()];
  const fetched = answering(created(), Response.json(ADMIN));
  mount(<NewKey onClose={onClose} onCreated={onCreated} />);
  await create();
  expect(JSON.parse(fetched.mock.calls[0]?.[1]?.body as string)).toMatchObject({ role: "admin", scope: null });
  expect(onCreated).not.toHaveBeenCalled();
  const dialog = document.querySelector("dialog");
  dialog?.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }));
  dialog?.click();
  dialog?.dispatchEvent(new Event("cancel", { cancelable: true }));
  expect(onClose).not.toHaveBeenCalled();
  button("I have stored it: sign in")?.click();
  await vi.waitFor(() => expect(onCreated).toHaveBeenCalledOnce());
  expect(fetched.mock.calls[1]?.[0]).toBe("/session");
  expect(session.value).toMatchObject({ state: "open", caller: { name: "first", local: false } });
});

test("when signing in with the first key fails, the secret is still there, and can be left", async () => {
  const onClose = vi.fn();
  answering(created(), Response.json({ detail: "Wait.", type: "Busy" }, { status: 429 }));
  mount(<NewKey onClose={onClose} onCreated={() => undefined} />);
  await create();
  button("I have stored it: sign in")?.click();
  await vi.waitFor(() => expect(document.body.textContent).toContain("Wait."));
  expect(document.body.textContent).toContain("dtrag_secret");
  button("I have stored it: sign in")?.click();
  await vi.waitFor(() => expect(onClose).toHaveBeenCalledOnce());
});

test("a public key is for an agent that is picked, and is not created without one", async () => {
  const agent = { agent_id: "0b1f0a5e-1", name: "Desk", allowed_category_paths: [["HR", "Leave"], ["IT"]] };
  const answers: Record<string, object> = {
    "/session": ADMIN,
    "/taxonomy/active/tree": { version: "1", tree: [] },
    "/agents?limit=500&offset=0": { agents: [agent], total: 1, limit: 500, offset: 0 },
    "/keys": { name: "site", secret: "dtrag_once" },
  };
  vi.stubGlobal("fetch", (url: string) => Promise.resolve(Response.json(answers[url])));
  await load();
  mount(<NewKey onClose={() => undefined} onCreated={() => undefined} />);
  [...document.querySelectorAll<HTMLInputElement>("input[type=radio]")].at(-1)?.click();
  await vi.waitFor(() => expect(document.querySelector("select")).not.toBeNull());
  const field = document.querySelector<HTMLInputElement>("input");
  if (field) field.value = "site";
  field?.dispatchEvent(new Event("input", { bubbles: true }));
  await vi.waitFor(() => expect(document.querySelectorAll("option")).toHaveLength(2));
  expect(button("Create the key")?.disabled).toBe(true);
  const select = document.querySelector("select");
  if (select) select.value = agent.agent_id;
  select?.dispatchEvent(new Event("change", { bubbles: true }));
  await vi.waitFor(() => expect(button("Create the key")?.disabled).toBe(false));
  expect(document.body.textContent).toContain("It answers from: HR › Leave, IT.");
  button("Create the key")?.click();
  await vi.waitFor(() => expect(document.body.textContent).toContain('data-key="dtrag_once" data-agent="0b1f0a5e-1"'));
});
