/** What can be done with all ticked documents; each change first shows what it would do. */
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import type { components } from "../../api/schema";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { useAcceptance } from "../../parts/moving/Acceptance";
import { CategoryDialog } from "../../parts/moving/CategoryDialog";
import { Failure, Loaded } from "../../parts/States";
import { ProblemText, Said } from "../../parts/Statements";
import { announce } from "../../state/announce";
import { useResource } from "../../state/resource";
import { pathText } from "../../text/path-text";
import { t } from "./text";
import { MOST, type Ticked } from "./ticked";
import { written } from "./uploads";
import styles from "./ChangeMany.module.css";

type Effect = components["schemas"]["DocumentsEffectShape"];
/** A category to move to, or "delete"; "choose" while none is chosen. */
type Change = readonly string[] | "delete" | "choose";

const STAYING_SHOWN = 20;

export function ChangeMany({ ticked, total }: { ticked: Ticked; total: number }) {
  const [change, setChange] = useState<Change | null>(null);
  const n = ticked.ids.size;
  const close = () => setChange(null);
  return (
    <div class={styles.bar} role="group" aria-label={t("many.selection")}>
      <Button small onClick={ticked.all}>
        {total > MOST ? t("many.first", { n: MOST }) : t("many.all", { n: total })}
      </Button>
      <p role="status">
        {n > 0 && t("many.count", { n })} {n === MOST && t("many.most")}
      </p>
      {n > 0 && (
        <>
          <Button small aria-haspopup="dialog" onClick={() => setChange("choose")}>
            {t("many.move")}
          </Button>
          <Button small danger icon="trash" aria-haspopup="dialog" onClick={() => setChange("delete")}>
            {t("many.delete")}
          </Button>
          <Button small kind="bare" onClick={ticked.clear}>
            {t("many.clear")}
          </Button>
        </>
      )}
      {ticked.problem && (
        <p role="alert">
          <ProblemText problem={ticked.problem} otherwise={t("upload.unreachable")} />
        </p>
      )}
      <CategoryDialog
        open={change === "choose"}
        title={t("many.category")}
        alternatives={[]}
        onClose={close}
        onChoose={setChange}
      />
      {change !== null && change !== "choose" && (
        <ChangeDialog
          ids={[...ticked.ids]}
          path={change === "delete" ? null : change}
          onClose={close}
          onDone={() => {
            close();
            ticked.clear();
            written.value += 1;
          }}
        />
      )}
    </div>
  );
}

interface DialogProps {
  ids: string[];
  /** Null: they are deleted. */
  path: readonly string[] | null;
  onClose: () => void;
  onDone: () => void;
}

function ChangeDialog({ ids, path, onClose, onDone }: DialogProps) {
  const acceptance = useAcceptance();
  const [working, setWorking] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const request = {
    action: path ? ("move" as const) : ("delete" as const),
    document_ids: ids,
    path: path && [...path],
    ...acceptance.body,
  };
  const effect = useResource(
    (signal) => api.post("/documents/changes", { body: { ...request, state: "", dry_run: true }, signal }),
    [],
  );
  const shown = effect.data;
  const make = async () => {
    if (!shown || !acceptance.given(shown, shown.widened)) return;
    setWorking(true);
    setProblem(null);
    try {
      const body = { ...request, state: shown.state, dry_run: false };
      const { documents: n } = await api.post("/documents/changes", { body });
      announce(t(path ? "many.moved" : "many.deleted", { n }));
      onDone();
    } catch (error) {
      setProblem(asProblem(error));
      setWorking(false);
      effect.reload();
    }
  };
  return (
    <Dialog
      open
      title={t(path ? "many.moveTitle" : "many.deleteTitle", { n: ids.length })}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t("many.cancel")}</Button>
          <Button
            kind="main"
            danger={!path}
            disabled={working || effect.loading || !shown?.documents}
            onClick={() => void make()}
          >
            {t(path ? "many.moveNow" : "many.deleteNow")}
          </Button>
        </>
      }
    >
      {problem && <Failure problem={problem} />}
      <Loaded resource={effect} lines={5}>
        {(seen) => (
          <div class={styles.effect}>
            <Effect effect={seen} path={path} />
            {path && seen.documents > 0 && acceptance.boxes(seen, seen.widened)}
          </div>
        )}
      </Loaded>
    </Dialog>
  );
}

function Effect({ effect, path }: { effect: Effect; path: readonly string[] | null }) {
  const { documents: n, passages, unchanged, categories, cases, conversations, refused } = effect;
  const more = refused.length - STAYING_SHOWN;
  return (
    <>
      <p>
        {n === 0
          ? t("many.nothing")
          : path
            ? t("many.moves", { n, passages, path: pathText(path) })
            : t("many.deletes", { n, passages })}{" "}
        {unchanged > 0 && t("many.there", { n: unchanged })}
      </p>
      {n > 0 && (
        <>
          <h3>{t("many.from")}</h3>
          <ul>
            {categories.map((category) => (
              <li key={category.path.join("/")}>
                {pathText(category.path) || t("documents.noCategory")}: {category.documents}
              </li>
            ))}
          </ul>
        </>
      )}
      {cases !== null && conversations !== null && cases + conversations > 0 && (
        <p>{t("many.rests", { cases, conversations })}</p>
      )}
      {refused.length > 0 && (
        <>
          <h3>{t("many.stay", { n: refused.length })}</h3>
          <ul>
            {refused.slice(0, STAYING_SHOWN).map(({ document_id, title, reason }) => (
              <li key={document_id}>
                {title || document_id}: <Said text={reason.text} statements={[reason]} />
              </li>
            ))}
            {more > 0 && <li>{t("many.more", { n: more })}</li>}
          </ul>
        </>
      )}
    </>
  );
}
