/** The steps from an empty service to a second person who can ask, each as far as the service finds it done. */
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { components } from "../../../api/schema";
import { Badge } from "../../../parts/Badge";
import { Button } from "../../../parts/Button";
import { StatementText } from "../../../parts/Statements";
import { putGuideAway } from "../../../state/preferences";
import { href } from "../../../state/router";
import { languageOf } from "../../../text/language";
import { address } from "../state";
import { t } from "./text";
import styles from "./Guide.module.css";

type Overview = components["schemas"]["Overview"];
type Setup = components["schemas"]["Setup"];
const STEPS = ["documents", "categories", "question", "access"] as const;
const LOOK_MS = 3000;
const THIS_MACHINE = /^(localhost|127\..*|\[::1\])$/;

interface Props {
  overview: Overview;
  setup: Setup;
  onReload: () => void;
}

export default function Guide({ overview, setup, onReload }: Props) {
  const { missing, reading, words_only: wordsOnly } = setup;
  useEffect(() => {
    if (reading === 0) return;
    const timer = setInterval(onReload, LOOK_MS);
    return () => clearInterval(timer);
  }, [reading, onReload]);
  const help = {
    documents: <DocumentsHelp overview={overview} setup={setup} />,
    categories: <CategoriesHelp setup={setup} />,
    question: <QuestionHelp overview={overview} setup={setup} />,
    access: <AccessHelp overview={overview} setup={setup} />,
  };
  return (
    <section class={styles.guide} aria-labelledby="guide">
      <h2 id="guide">{t("guide.title")}</h2>
      <p>{t("guide.lead")}</p>
      <ol class={styles.steps}>
        {STEPS.map((step) => (
          <li key={step} aria-current={step === missing[0] ? "step" : undefined}>
            <p class={styles.step}>
              <strong>{t(`step.${step}`)}</strong>
              {!missing.includes(step) && <Badge tone="good">{t("guide.done")}</Badge>}
            </p>
            {missing.includes(step) && help[step]}
            {step === "documents" && wordsOnly.length > 0 && (
              <p>
                {t("documents.wordsOnly")} <StatementText statements={wordsOnly} />
              </p>
            )}
          </li>
        ))}
      </ol>
      <Button small kind="bare" icon="close" onClick={putGuideAway}>
        {t("guide.away")}
      </Button>
    </section>
  );
}

/** What is to be done or has failed, and where. */
function Help({ text, children }: { text: string; children?: ComponentChildren }) {
  return (
    <p>
      {text} {children}
    </p>
  );
}

function DocumentsHelp({ overview, setup: { reading, failed } }: { overview: Overview; setup: Setup }) {
  if (reading > 0) return <Help text={t("documents.reading", { n: reading })} />;
  const text =
    failed > 0
      ? t("documents.failed", { n: failed })
      : t(overview.documents > 0 ? "documents.noText" : "documents.help");
  return (
    <Help text={text}>
      <a href={href("documents")}>{t(failed > 0 ? "documents.jobs" : "documents.add")}</a>
    </Help>
  );
}

function CategoriesHelp({ setup: { unplaced, waiting } }: { setup: Setup }) {
  if (unplaced > 0 && waiting > 0)
    return (
      <Help text={t("categories.waiting", { n: unplaced })}>
        <a href={href("review")}>{t("categories.review")}</a>
      </Help>
    );
  if (unplaced > 0)
    return (
      <Help text={t("categories.none", { n: unplaced })}>
        <a href={href("documents")}>{t("documents.again")}</a>
      </Help>
    );
  return (
    <Help text={t("categories.help")}>
      <a href={href("taxonomy")}>{t("categories.tree")}</a>
    </Help>
  );
}

function QuestionHelp({ overview: { documents, examples }, setup: { questions } }: Omit<Props, "onReload">) {
  const [example] = examples;
  if (documents === 0 || !example) return <Help text={t("question.later")} />;
  return (
    <Help text={t(questions > 0 ? "question.declined" : "question.help")}>
      <a href={address.link({ q: example })} lang={languageOf(example)}>
        {example}
      </a>
    </Help>
  );
}

function AccessHelp({ overview: { branches }, setup: { keys } }: Omit<Props, "onReload">) {
  const branch = branches[0]?.path.join("/");
  return (
    <>
      <Help text={t(keys > 0 ? "access.second" : "access.first")}>
        <a href={href("keys")}>{t("access.keys")}</a>
      </Help>
      {branch && (
        <Help text={t("access.public")}>
          <code>DTRAG_PUBLIC={branch}</code>
        </Help>
      )}
      {THIS_MACHINE.test(location.hostname) && (
        <Help text={t("access.thisMachine")}>
          <code>dtrag up --host 0.0.0.0</code>
        </Help>
      )}
    </>
  );
}
