/** Notes and reasons of the service, each in the language of the page where it is known. */
import type { Problem } from "../api/problem";
import { sayAll, sayProblem, sayStatement, type Statement } from "../state/statements";

export function StatementItems({ statements }: { statements: readonly Statement[] }) {
  return (
    <>
      {statements.map(sayStatement).map(({ text, lang }) => (
        <li key={text} lang={lang}>
          {text}
        </li>
      ))}
    </>
  );
}

export function StatementText({ statements }: { statements: readonly Statement[] }) {
  return (
    <>
      {statements.map(sayStatement).map(({ text, lang }) => (
        <span key={text} lang={lang}>
          {text}{" "}
        </span>
      ))}
    </>
  );
}

/** A text of the service, or the Korean one of its statements. */
export function Said({ text, statements }: { text: string; statements: readonly Statement[] }) {
  const said = sayAll(statements, text);
  return <span lang={said.lang}>{said.text}</span>;
}

/** What the service says about a failed request; `otherwise` when it could not be reached. */
export function ProblemText({ problem, otherwise = "" }: { problem: Problem; otherwise?: string }) {
  const said = sayProblem(problem);
  return said.text ? <span lang={said.lang}>{said.text}</span> : <>{otherwise}</>;
}
