/** What a declined answer says: the service's reason has it in sentences of a fixed form (core/answers/confidence.py). */

export interface Declined {
  /** Number of searched passages, as written; "" when the reason does not say. */
  searched: string;
  /** Words that occur in no passage. */
  unknown: string[];
  /** Labels of the nearest passages. */
  nearest: string[];
}

export function declinedFrom(reason: string): Declined {
  const searched = /Searched: ([\d,]+) passages/.exec(reason)?.[1] ?? "";
  const unknown = /Nowhere in them: (.+?)\. Say it/.exec(reason)?.[1] ?? "";
  const nearest = /Nearest headings: (.+)\.$/s.exec(reason.trim())?.[1] ?? "";
  return {
    searched,
    unknown: [...unknown.matchAll(/"([^"]+)"/g)].map((match) => match[1] ?? ""),
    nearest: nearest.split("; ").filter(Boolean),
  };
}
