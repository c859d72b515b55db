/** Notes and reasons of the service, each in the language of the page where it is known. */
import { sayStatement, type Statement } from "../text/statements";

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
