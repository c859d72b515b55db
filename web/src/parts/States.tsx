/** What a view shows instead of its content: loading, nothing there, or what failed, with one thing to do. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Problem, ProblemKind } from "../api/problem";
import type { Resource } from "../state/resource";
import { signOut } from "../state/session";
import { t, type CommonKey } from "../text/common";
import { sayProblem } from "../state/statements";
import { Button } from "./Button";
import { CopyButton } from "./CopyButton";
import styles from "./States.module.css";

/** `lines`: how many grey lines show where the content will be. */
export function Loading({ lines = 3 }: { lines?: number }) {
  return (
    <div class={styles.loading} role="status">
      <span class="quiet">{t("state.loading")}</span>
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} class={styles.line} />
      ))}
    </div>
  );
}

interface EmptyProps {
  title: string;
  text?: string;
  /** The language of the text, where it is not that of the page. */
  textLang?: string;
  alert?: boolean;
  /** The one thing to do. */
  children?: ComponentChildren;
}

export function Empty({ title, text, textLang, alert, children }: EmptyProps) {
  return (
    <div class={styles.state}>
      <div class={styles.words} role={alert ? "alert" : undefined}>
        <p class={styles.title}>{title}</p>
        {text && (
          <p class={styles.text} lang={textLang}>
            {text}
          </p>
        )}
      </div>
      {children && <div class={styles.actions}>{children}</div>}
    </div>
  );
}

const TITLES: Record<ProblemKind, CommonKey> = {
  unreachable: "state.unreachable",
  unauthorized: "state.unauthorized",
  forbidden: "state.forbidden",
  missing: "state.missing",
  invalid: "state.failed",
  conflict: "state.failed",
  busy: "state.busy",
  unavailable: "state.unavailable",
  failed: "state.failed",
};

/** A failed request: what happened in the service's sentence, and what can be done about it. */
export function Failure({ problem, onRetry }: { problem: Problem; onRetry?: () => void }) {
  const help: Partial<Record<ProblemKind, string>> = {
    unreachable: t("state.unreachableHelp"),
    unauthorized: t("state.unauthorizedHelp"),
    forbidden: t("state.forbiddenHelp"),
    missing: t("state.missingHelp"),
  };
  const said = sayProblem(problem);
  const own = help[problem.kind];
  return (
    <Empty title={t(TITLES[problem.kind])} text={own ?? said.text} textLang={own ? undefined : said.lang} alert>
      <Remedy problem={problem} onRetry={onRetry} />
      {problem.kind === "failed" && problem.requestId && (
        <CopyButton text={problem.requestId} label={`${t("state.requestId")} ${problem.requestId}`} />
      )}
    </Empty>
  );
}

function Remedy({ problem, onRetry }: { problem: Problem; onRetry?: () => void }) {
  if (problem.kind === "forbidden") return <Button onClick={() => void signOut()}>{t("state.otherKey")}</Button>;
  if (problem.kind === "missing") return <Button onClick={() => history.back()}>{t("state.back")}</Button>;
  if (!onRetry || problem.kind === "unauthorized") return null;
  return <RetryButton seconds={problem.retryAfter ?? 0} onRetry={onRetry} />;
}

/** A button that can be used when the service says that another attempt makes sense. */
export function RetryButton({ seconds, onRetry }: { seconds: number; onRetry: () => void }) {
  const [left, setLeft] = useState(seconds);
  useEffect(() => setLeft(seconds), [seconds]);
  useEffect(() => {
    if (left <= 0) return;
    const timer = setTimeout(() => setLeft(left - 1), 1000);
    return () => clearTimeout(timer);
  }, [left]);
  return (
    <Button icon="retry" disabled={left > 0} onClick={onRetry}>
      {t("state.retry")}
      {left > 0 && <span aria-hidden="true">{t("state.retryIn", { n: left })}</span>}
    </Button>
  );
}

interface LoadedProps<T> {
  resource: Resource<T>;
  lines?: number;
  children: (data: T) => ComponentChildren;
}

/** The content of a resource, or its state: `<Loaded resource={agents}>{(page) => …}</Loaded>`. */
export function Loaded<T>({ resource, lines, children }: LoadedProps<T>) {
  if (resource.problem) return <Failure problem={resource.problem} onRetry={resource.reload} />;
  if (resource.data === undefined) return <Loading lines={lines} />;
  return <div aria-busy={resource.loading}>{children(resource.data)}</div>;
}
