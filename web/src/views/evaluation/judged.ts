/** A file of judged questions: a JSON object a line, or one list of them. */

export const EXAMPLE = `{"id": "1", "text": "휴학은 몇 학기까지 가능한가요?", "answers": ["통산 6학기"]}
{"id": "2", "text": "Who founded Rome?", "answerable": false}`;

export interface Judged {
  questions: Record<string, unknown>[];
  /** The first line that is no JSON object; 0 without one. */
  mistake: number;
}

export function judgedOf(content: string): Judged {
  const whole = content.replace(/^\uFEFF/, "").trim();
  const lines = whole.startsWith("[")
    ? listed(whole)
    : whole.split("\n").map((line) => (line.trim() ? parsed(line) : null));
  const mistake = lines.findIndex((line) => line === undefined) + 1;
  return { questions: lines.filter((line) => line !== null && line !== undefined), mistake };
}

/** The rows of a list; of what is no list, one that is a mistake. */
function listed(whole: string): (Record<string, unknown> | undefined)[] {
  try {
    const rows: unknown = JSON.parse(whole);
    return Array.isArray(rows) ? rows.map((row: unknown) => (isRecord(row) ? row : undefined)) : [undefined];
  } catch {
    return [undefined];
  }
}

function parsed(line: string): Record<string, unknown> | undefined {
  try {
    const row: unknown = JSON.parse(line);
    return isRecord(row) ? row : undefined;
  } catch {
    return undefined;
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
