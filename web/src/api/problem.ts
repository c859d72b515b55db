/** A failed request, with what the reader needs: what kind it is, one sentence, and how long to wait. */
export interface Statement {
  code: string;
  text: string;
  values: Record<string, string>;
}

export type ProblemKind =
  "unreachable" | "unauthorized" | "forbidden" | "missing" | "invalid" | "conflict" | "busy" | "unavailable" | "failed";

export class Problem extends Error {
  constructor(
    readonly kind: ProblemKind,
    /** What the service says, in one sentence; "" when it could not be reached. */
    readonly detail: string,
    readonly status = 0,
    readonly type = "",
    readonly requestId: string | null = null,
    /** Seconds after which another attempt makes sense; null when the service does not say. */
    readonly retryAfter: number | null = null,
    /** The detail with its code, where it has one. */
    readonly statements: readonly Statement[] = [],
  ) {
    super(detail || kind);
  }
}

const KINDS: Record<number, ProblemKind> = {
  400: "invalid",
  401: "unauthorized",
  403: "forbidden",
  404: "missing",
  409: "conflict",
  413: "invalid",
  415: "invalid",
  422: "invalid",
  429: "busy",
  502: "unreachable",
  503: "unavailable",
  504: "unreachable",
};

/** The problem of a response that is not a success. */
export async function problemOf(response: Response): Promise<Problem> {
  const body: unknown = await response.json().catch(() => null);
  return problemFrom(response.status, body, response.headers.get("Retry-After"));
}

export function problemFrom(status: number, body: unknown, retryAfter: string | null = null): Problem {
  const fields = typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
  const word = (name: string) => (typeof fields[name] === "string" ? fields[name] : "");
  const wait = retryAfter !== null && /^\d+$/.test(retryAfter) ? Number(retryAfter) : null;
  const id = word("request_id") || null;
  const coded = Array.isArray(fields.detail_statements) ? (fields.detail_statements as Statement[]) : [];
  return new Problem(KINDS[status] ?? "failed", word("detail"), status, word("type"), id, wait, coded);
}

/** Whether the error is an `abort()` of ours and needs no message. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Any error as a problem. */
export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem("failed", error instanceof Error ? error.message : String(error));
}
