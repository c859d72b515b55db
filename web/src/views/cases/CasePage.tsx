/** One case in sentences, its passages as they are today, its history, and what can be done with it. */
import { useState } from "preact/hooks";
import { pathText } from "../../text/path-text";
import { announce } from "../../state/announce";
import { useResource } from "../../state/resource";
import { href, navigate } from "../../state/router";
import { mayAs } from "../../state/session";
import { api } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { Facts } from "../../parts/Facts";
import { Folded } from "../../parts/Folded";
import { Page } from "../../parts/Page";
import { Failure, Loaded } from "../../parts/States";
import { formatDateTime, formatPercent } from "../../text/texts";
import { CasePassage } from "./CasePassage";
import { CaseSentences } from "./CaseSentences";
import { History } from "./History";
import { NotEnabled, NOT_ENABLED } from "./NotEnabled";
import type { ShownCase } from "./state";
import { t } from "./text";
import styles from "./CasePage.module.css";

export function CasePage({ id }: { id: string }) {
  const resource = useResource((signal) => api.get("/cbr/cases/{case_id}", { path: { case_id: id }, signal }), [id]);
  return (
    <Page title={t("case.title")}>
      <p>
        <a href={href("cases")}>{t("case.back")}</a>
      </p>
      {resource.problem?.status === NOT_ENABLED ? (
        <NotEnabled />
      ) : (
        <Loaded resource={resource} lines={6}>
          {(shown) => (
            <article class={styles.case} aria-labelledby="case-question">
              <header class={styles.header}>
                <h2 id="case-question">{shown.query || shown.case_id}</h2>
                <CaseSentences shown={shown} />
                {shown.query && <AskAgain shown={shown} />}
              </header>
              <section class={styles.section}>
                <h3>{t("case.passages")}</h3>
                {shown.passages.length === 0 ? (
                  <p>{t("case.noPassages")}</p>
                ) : (
                  <ul class={styles.passages}>
                    {shown.passages.map((passage) => (
                      <li key={passage}>
                        <CasePassage id={passage} changed={shown.stale_passages.includes(passage)} />
                      </li>
                    ))}
                  </ul>
                )}
              </section>
              <Actions shown={shown} onChanged={resource.reload} />
              <CaseFacts shown={shown} />
              {mayAs("admin") && (
                <Folded title={t("history.title")}>
                  <History id={id} />
                </Folded>
              )}
            </article>
          )}
        </Loaded>
      )}
    </Page>
  );
}

/** In Ask, the answer can be rated; a vote against it with a reason goes to the review queue. */
function AskAgain({ shown }: { shown: ShownCase }) {
  return (
    <p class={styles.small}>
      <a href={href("ask", { query: { q: shown.query, as_of: shown.as_of ?? undefined } })}>{t("case.askAgain")}</a>{" "}
      {t("case.askAgainHelp")}
    </p>
  );
}

function CaseFacts({ shown }: { shown: ShownCase }) {
  const facts: [string, string][] = [
    [t("case.content"), shown.content],
    [t("case.category"), pathText(shown.category_path) || t("case.noCategory")],
    [t("case.quality"), formatPercent(shown.quality_score)],
    [t("case.updated"), formatDateTime(shown.updated_at)],
    [t("case.id"), shown.case_id],
  ];
  return (
    <Folded title={t("stats.details")}>
      <Facts facts={facts} />
    </Folded>
  );
}

function Actions({ shown, onChanged }: { shown: ShownCase; onChanged: () => void }) {
  const [deleting, setDeleting] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const path = { case_id: shown.case_id };
  const archived = shown.status === "archived";
  async function attempt(change: () => Promise<unknown>, sentence: string, then: () => void) {
    setProblem(null);
    try {
      await change();
      announce(sentence);
      then();
    } catch (error) {
      setProblem(asProblem(error));
      setDeleting(false);
    }
  }
  const move = () =>
    attempt(
      () => api.put("/cbr/cases/{case_id}", { path, body: { status: archived ? "active" : "archived" } }),
      t(archived ? "done.restored" : "done.archived"),
      onChanged,
    );
  const remove = () =>
    attempt(
      () => api.delete("/cbr/cases/{case_id}", { path }),
      t("done.deleted"),
      () => navigate(href("cases"), { replace: true }),
    );
  return (
    <section class={styles.section} aria-label={t("case.actions")}>
      {problem && <Failure problem={problem} />}
      <div class={styles.badges}>
        <Button onClick={() => void move()}>{t(archived ? "case.restore" : "case.archive")}</Button>
        <Button danger icon="trash" aria-haspopup="dialog" onClick={() => setDeleting(true)}>
          {t("case.delete")}
        </Button>
      </div>
      <p class={styles.small}>{t(archived ? "case.restoreHelp" : "case.archiveHelp")}</p>
      <Dialog
        title={t("case.deleteTitle")}
        open={deleting}
        onClose={() => setDeleting(false)}
        footer={
          <>
            <Button onClick={() => setDeleting(false)}>{t("case.keep")}</Button>
            <Button danger icon="trash" onClick={() => void remove()}>
              {t("case.delete")}
            </Button>
          </>
        }
      >
        <p>{t("case.deleteHelp")}</p>
      </Dialog>
    </section>
  );
}
