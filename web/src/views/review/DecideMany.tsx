/** One decision about several items: select them, see what it will do, and then what failed and why. */
import { useRef, useState } from "preact/hooks";
import { api } from "../../api/client";
import { Meter } from "../../parts/Bars";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { CategoryDialog } from "../../parts/moving/CategoryDialog";
import { ProblemText } from "../../parts/Statements";
import { announce } from "../../state/announce";
import { pathText } from "../../text/path-text";
import { titleOf, type Item } from "./items";
import { decideAll, fits, groupsOf, proposalOf, type Decision, type Undecided } from "./many";
import { t } from "./text";
import styles from "./DecideMany.module.css";

interface Props {
  items: readonly Item[];
  ticked: ReadonlySet<string>;
  onTick: (ticked: ReadonlySet<string>) => void;
  /** Items were decided, here or elsewhere. */
  onDecided: (ids: readonly string[]) => void;
}

type Asked = { decision: Decision; path: readonly string[] };

export function DecideMany({ items, ticked, onTick, onDecided }: Props) {
  const [choosing, setChoosing] = useState(false);
  const [asked, setAsked] = useState<Asked | null>(null);
  const selected = items.filter((item) => ticked.has(item.item_id));
  const groups = groupsOf(items);
  const ask = (decision: Decision, path: readonly string[] = []) => {
    setChoosing(false);
    setAsked({ decision, path });
  };
  return (
    <div class={styles.bar} role="group" aria-label={t("many.title")}>
      <select
        aria-label={t("many.select")}
        value=""
        onChange={({ currentTarget }) => {
          onTick(new Set(groups[Number(currentTarget.value)]?.ids));
          currentTarget.value = "";
        }}
      >
        <option value="">{t("many.select")}</option>
        {groups.map(({ kind, path, ids }, index) => (
          <option key={`${kind} ${path}`} value={index}>
            {path
              ? t("many.proposed", { path, n: ids.length })
              : t(kind === "answer" ? "many.answers" : "many.documents", { n: ids.length })}
          </option>
        ))}
      </select>
      {selected.length > 0 && (
        <>
          <p role="status">{t("many.count", { n: selected.length })}</p>
          <Button small disabled={!selected.some((item) => fits("approve", item))} onClick={() => ask("approve")}>
            {t("many.approve")}
          </Button>
          <Button
            small
            disabled={!selected.every((item) => fits("correct", item))}
            aria-haspopup="dialog"
            onClick={() => setChoosing(true)}
          >
            {t("many.category")}
          </Button>
          <Button small onClick={() => ask("skip")}>
            {t("many.skip")}
          </Button>
          <Button small kind="bare" onClick={() => onTick(new Set())}>
            {t("many.clear")}
          </Button>
        </>
      )}
      <CategoryDialog
        open={choosing}
        title={t("many.oneCategory")}
        alternatives={[]}
        onClose={() => setChoosing(false)}
        onChoose={(path) => ask("correct", path)}
      />
      {asked && <DecideDialog {...asked} selected={selected} onClose={() => setAsked(null)} onDecided={onDecided} />}
    </div>
  );
}

interface DialogProps extends Asked {
  selected: readonly Item[];
  onClose: () => void;
  onDecided: (ids: readonly string[]) => void;
}

function DecideDialog({ decision, path, selected, onClose, onDecided }: DialogProps) {
  // What was selected when it opened: decided items leave the selection.
  const [items] = useState(selected);
  const fitting = items.filter((item) => fits(decision, item));
  const [decided, setDecided] = useState<readonly string[]>([]);
  const [running, setRunning] = useState(false);
  const [undecided, setUndecided] = useState<readonly Undecided[] | null>(null);
  const stopped = useRef(false);
  const n = fitting.length;
  /** After it the queue is read again, and this dialog may be gone with the last item. */
  const leave = (left: readonly Undecided[], done: readonly string[]) => {
    const elsewhere = left.filter(({ problem }) => problem.kind === "conflict" || problem.kind === "missing");
    if (done.length + elsewhere.length > 0) onDecided([...done, ...elsewhere.map(({ item }) => item.item_id)]);
    onClose();
  };
  const close = () => {
    stopped.current = true;
    if (!running) leave(undecided ?? [], decided);
  };
  const run = async () => {
    setRunning(true);
    const done: string[] = [];
    const left = await decideAll(
      fitting,
      (item) => send(item, decision, path),
      (item) => {
        done.push(item.item_id);
        setDecided([...done]);
      },
      () => stopped.current,
    );
    announce(t("many.done", { n: done.length }));
    setRunning(false);
    if (left.length === 0) leave(left, done);
    else setUndecided(left);
  };
  return (
    <Dialog
      open
      title={t(`many.${decision}Title`, { n, path: pathText(path) })}
      onClose={close}
      footer={
        <>
          <Button onClick={close}>{t(running ? "many.stop" : undecided ? "many.close" : "many.cancel")}</Button>
          {!undecided && (
            <Button kind="main" disabled={running} onClick={() => void run()}>
              {t("many.now", { n })}
            </Button>
          )}
        </>
      }
    >
      <div class={styles.content}>
        {undecided ? (
          <>
            <p>{t("many.done", { n: decided.length })}</p>
            <h3>{t("many.undecided", { n: undecided.length })}</h3>
            <ul>
              {undecided.map(({ item, problem }) => (
                <li key={item.item_id}>
                  {titleOf(item) || t("item.untitled")}:{" "}
                  <ProblemText problem={problem} otherwise={t("decide.failed")} />
                </li>
              ))}
            </ul>
          </>
        ) : (
          <>
            <Outlook decision={decision} fitting={fitting} others={items.length - n} />
            {running && <Meter value={decided.length} max={n} />}
            <p role="status">{running && t("many.progress", { done: decided.length, n })}</p>
          </>
        )}
      </div>
    </Dialog>
  );
}

const send = ({ item_id }: Item, decision: Decision, path: readonly string[]) => {
  const at = { item_id };
  if (decision === "skip") return api.post("/review/{item_id}/skip", { path: at, body: { note: "" } });
  if (decision === "approve") return api.post("/review/{item_id}/approve", { path: at, body: { note: "" } });
  return api.post("/review/{item_id}/correct", { path: at, body: { note: "", path: [...path] } });
};

/** What the decision will do. */
function Outlook({ decision, fitting, others }: { decision: Decision; fitting: readonly Item[]; others: number }) {
  const answers = fitting.filter((item) => item.kind === "answer").length;
  const proposals = fitting.map(proposalOf).filter(Boolean);
  return (
    <>
      {decision === "approve" && (
        <ul>
          {[...new Set(proposals)].map((path) => (
            <li key={path}>{t("many.moves", { path, n: proposals.filter((other) => other === path).length })}</li>
          ))}
          {answers > 0 && <li>{t("many.confirms", { n: answers })}</li>}
        </ul>
      )}
      {decision === "skip" && <p>{t("many.skips")}</p>}
      {others > 0 && <p>{t("many.others", { n: others })}</p>}
      <p>{t("many.final")}</p>
    </>
  );
}
