/** The text of a document: a first window, and further windows that are fetched alone and joined to it. */
import { useState } from "preact/hooks";
import { api } from "../api/client";
import { asProblem, type Problem } from "../api/problem";
import type { components } from "../api/schema";
import { useResource, type Resource } from "./resource";

export type TextPart = components["schemas"]["DocumentTextShape"];
export type Side = "before" | "after";

export interface DocumentText extends Resource<TextPart> {
  /** Fetch the next window on this side. */
  extend: (side: Side) => Promise<void>;
  /** Why the last further window could not be fetched. */
  furtherProblem: Problem | null;
}

/** `size`: code points of each further window. The service gives at most 200,000 at once. */
export function useDocumentText(documentId: string, first: { start: number; end: number }, size: number): DocumentText {
  const path = { document_id: documentId };
  const resource = useResource(
    (signal) => api.get("/documents/{document_id}/text", { path, query: first, signal }),
    [documentId, first.start, first.end],
  );
  const [joined, setJoined] = useState<{ first: TextPart; whole: TextPart } | null>(null);
  const [furtherProblem, setFurtherProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const { data } = resource;
  const shown = data && joined?.first === data ? joined.whole : data;

  async function extend(side: Side): Promise<void> {
    if (!data || !shown || busy) return;
    setBusy(true);
    setFurtherProblem(null);
    try {
      const next = await api.get("/documents/{document_id}/text", { path, query: nextWindow(shown, side, size) });
      if (next.characters !== shown.characters)
        resource.reload(); // the document was replaced
      else setJoined({ first: data, whole: side === "before" ? joinParts(next, shown) : joinParts(shown, next) });
    } catch (error) {
      setFurtherProblem(asProblem(error));
    }
    setBusy(false);
  }

  return { ...resource, data: shown, extend, furtherProblem };
}

export function nextWindow(shown: TextPart, side: Side, size: number): { start: number; end: number } {
  if (side === "before") return { start: Math.max(0, shown.start - size), end: shown.start };
  return { start: shown.end, end: Math.min(shown.characters, shown.end + size) };
}

/** Two windows that meet; a passage in both is there once. */
export function joinParts(earlier: TextPart, later: TextPart): TextPart {
  const passages = new Map(earlier.passages.map((passage) => [passage.chunk_id, passage]));
  for (const passage of later.passages) {
    const { start = passage.start, end = passage.end } = passages.get(passage.chunk_id) ?? {};
    passages.set(passage.chunk_id, {
      ...passage,
      start: Math.min(start, passage.start),
      end: Math.max(end, passage.end),
    });
  }
  return { ...later, start: earlier.start, text: earlier.text + later.text, passages: [...passages.values()] };
}

/** The first window: the marked spans, but not so far from `target` that the service refuses it. */
export function windowAround(
  target: { start: number; end: number },
  spans: readonly { start: number; end: number }[],
  margin: number,
): { start: number; end: number } {
  const from = Math.min(target.start, ...spans.map((span) => span.start)) - margin;
  const to = Math.max(target.end, ...spans.map((span) => span.end)) + margin;
  return {
    start: Math.max(0, from, target.start - FARTHEST),
    end: Math.min(to, target.start + FARTHEST),
  };
}
const FARTHEST = 90_000;
