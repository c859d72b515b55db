import { afterEach, expect, test, vi } from "vitest";
import { mount } from "../../../test/setup";
import Guide from "./Guide";

const SETUP = {
  missing: ["documents", "categories", "question", "access"] as ("documents" | "categories" | "question" | "access")[],
  reading: 0,
  failed: 0,
  unplaced: 0,
  waiting: 0,
  questions: 0,
  keys: 0,
  words_only: [] as { code: string; text: string; values: Record<string, string> }[],
};
const OVERVIEW = { greeting: "", documents: 0, branches: [], more_branches: 0, newest: [], examples: ["What is it?"] };

afterEach(() => vi.restoreAllMocks());

function show(setup: Partial<typeof SETUP>, overview: Partial<typeof OVERVIEW> = {}) {
  const reload = vi.fn();
  const all = { ...OVERVIEW, ...overview, setup: null };
  mount(<Guide overview={all} setup={{ ...SETUP, ...setup }} onReload={reload} />);
  return { reload, steps: [...document.querySelectorAll("li")].map((item) => item.textContent) };
}

test.each([
  [{}, {}, 0, "Choose files or a folder"],
  [{ reading: 2, failed: 1 }, {}, 0, "2 uploads are being read."],
  [{ failed: 1 }, {}, 0, "1 upload failed. See why"],
  [{}, { documents: 3 }, 0, "no text that can be searched"],
  [{ words_only: [{ code: "", text: "No model.", values: {} }] }, {}, 0, "only the words of a question. No model."],
  [{ unplaced: 2 }, { documents: 2 }, 1, "2 documents have no category."],
  [{ unplaced: 1, waiting: 4 }, { documents: 2 }, 1, "1 document waits for a person to choose the category."],
  [{}, {}, 2, "As soon as there are documents."],
  [{}, { documents: 1 }, 2, "Such as this one; it is done when the answer names its source. What is it?"],
  [{ questions: 5 }, { documents: 1 }, 2, "did not answer what was asked so far"],
  [{}, {}, 3, "First create a key for yourself."],
  [{ keys: 1 }, {}, 3, "Now create a key for the next person"],
])("with %o of the service and %o, a step says what is in its way", (setup, overview, at, sentence) => {
  expect(show(setup, overview).steps[at]).toContain(sentence);
});

test("what is done says so and nothing else; the first that is not is the current one", () => {
  const { steps } = show({ missing: ["question", "access"], failed: 3 }, { documents: 1 });
  expect(steps.slice(0, 2)).toEqual(["Add documentsDone", "Put them into categoriesDone"]);
  expect(document.querySelector("[aria-current=step]")?.textContent).toContain("Ask a question");
});

test("it looks again while uploads are read, and only then", async () => {
  const repeat = vi.spyOn(globalThis, "setInterval");
  const idle = show({ reading: 0 });
  const { reload } = show({ reading: 1 });
  await vi.waitFor(() => expect(repeat).toHaveBeenCalledWith(reload, 3000));
  expect(repeat).not.toHaveBeenCalledWith(idle.reload, 3000);
});
