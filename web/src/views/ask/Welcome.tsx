/** Before the first question: the name and greeting of the service, example questions, and what there is to ask about. */
import { useEffect, useState } from "preact/hooks";
import { guideAway } from "../../state/preferences";
import { useResource } from "../../state/resource";
import { href } from "../../state/router";
import { caller, mayOpen } from "../../state/session";
import { api } from "../../api/client";
import type { components } from "../../api/schema";
import { language, languageOf } from "../../text/language";
import { formatDate } from "../../text/texts";
import type Guide from "./guide/Guide";
import { address } from "./state";
import { t } from "./text";
import styles from "./Welcome.module.css";

type Overview = components["schemas"]["Overview"];
const MOST_EXAMPLES = 6;

export function Welcome() {
  const { data, reload } = useResource((signal) => api.get("/overview", { signal }), []);
  const name = caller.value?.pageName;
  const setup = guideAway.value ? null : data?.setup;
  return (
    <div class={styles.welcome}>
      <header class={styles.header}>
        <h1 lang={name ? languageOf(name) : undefined}>{name || t("ask.title")}</h1>
        <p lang={data?.greeting ? languageOf(data.greeting) : undefined}>{data?.greeting || t("ask.lead")}</p>
        {data?.documents === 0 && !setup && <p>{t("ask.noDocuments")}</p>}
        {data?.documents === 0 && !setup && mayOpen("documents") && (
          <a href={href("documents")}>{t("ask.addDocuments")}</a>
        )}
      </header>
      {data && setup && <LazyGuide overview={data} setup={setup} onReload={reload} />}
      {data && data.examples.length > 0 && <Examples of={data} />}
      {data && data.documents > 0 && (
        <div class={styles.contents}>
          <Branches of={data} />
          <Newest of={data} />
        </div>
      )}
    </div>
  );
}

/** Its code is only for administrators of a new service. */
function LazyGuide(props: Parameters<typeof Guide>[0]) {
  const [module, setModule] = useState<{ default: typeof Guide }>();
  useEffect(() => {
    import("./guide/Guide").then(setModule, () => undefined); // without it the view is as for everybody
  }, []);
  return module ? <module.default {...props} /> : null;
}

/** Those in the language of the page come first. */
function Examples({ of: { examples } }: { of: Overview }) {
  const own = (question: string) => languageOf(question) === language.value;
  const ordered = [...examples.filter(own), ...examples.filter((question) => !own(question))];
  return (
    <section aria-labelledby="start-examples">
      <h2 id="start-examples">{t("start.examples")}</h2>
      <ul class={styles.examples}>
        {ordered.slice(0, MOST_EXAMPLES).map((question) => (
          <li key={question}>
            <a href={address.link({ q: question })} lang={languageOf(question)}>
              {question}
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Branches({ of: { branches, documents, more_branches: more } }: { of: Overview }) {
  const { scope } = address.read();
  const isChosen = (path: readonly string[]) => scope.length === 1 && scope[0]?.join("/") === path.join("/");
  return (
    <section aria-labelledby="start-branches">
      <h2 id="start-branches">{t("start.branches")}</h2>
      <p class={styles.quiet}>{t("start.documents", { n: documents })}</p>
      <ul>
        {branches.map(({ path, documents: number }) => (
          <li key={path.join("/")} class={styles.row}>
            <a
              href={address.link({ scope: [[...path]] })}
              aria-current={isChosen(path) ? "true" : undefined}
              title={path.join(" / ")}
            >
              {path.at(-1)}
            </a>
            <span class={styles.quiet}>{t("start.branch", { n: number })}</span>
          </li>
        ))}
      </ul>
      {more > 0 && <p class={styles.quiet}>{t("start.more", { n: more })}</p>}
    </section>
  );
}

function Newest({ of: { newest } }: { of: Overview }) {
  return (
    <section aria-labelledby="start-newest">
      <h2 id="start-newest">{t("start.newest")}</h2>
      <ul>
        {newest.map((document) => (
          <li key={document.document_id} class={styles.row}>
            <a href={href("documents", { path: [document.document_id] })} lang={languageOf(document.title)}>
              {document.title}
            </a>
            <span class={styles.quiet}>
              {document.effective_from
                ? t("start.validFrom", { date: formatDate(document.effective_from) })
                : t("start.added", { date: formatDate(document.processed_at) })}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
