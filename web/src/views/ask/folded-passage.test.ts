import { expect, test } from "vitest";
import { foldedAround } from "./folded-passage";

const line = (letter: string) => letter.repeat(200);
const passage = (lines: string[], marked: string) => {
  const text = lines.join("\n");
  const start = [...text.slice(0, text.indexOf(marked))].length;
  return { text, marked: [[start, start + marked.length]] };
};
const marks = ({ text, marked }: ReturnType<typeof foldedAround>) =>
  marked.map(([start, end]) => [...text].slice(start, end).join(""));

test("a long passage is folded to the line with the sentence and one on either side", () => {
  const lines = ["\u{1F600}", line("a"), line("b"), line("c"), "It is so. [1] More.", line("d"), line("e"), line("f")];
  const folded = foldedAround(passage(lines, "It is so."));
  expect(folded).toMatchObject({ text: lines.slice(3, 6).join("\n"), before: true, after: true });
  expect(marks(folded)).toEqual(["It is so."]);
  const atEnds = [
    [["It is so.", ...lines.slice(1, 4)], { before: false, after: true }],
    [[...lines.slice(1, 4), "It is so."], { before: true, after: false }],
  ] as const;
  for (const [at, expected] of atEnds) expect(foldedAround(passage([...at], "It is so."))).toMatchObject(expected);
});

test("little text is not folded, at neither end", () => {
  for (const lines of [["It is so."], [line("a"), "It is so.", line("b")], ["It is so.", line("a"), line("b")]]) {
    const whole = passage(lines, "It is so.");
    expect(foldedAround(whole)).toEqual({ ...whole, before: false, after: false });
  }
});
