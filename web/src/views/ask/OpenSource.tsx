/** Where the open source is shown: beside the answer on a wide screen, over it on a narrow one. */
import { useEffect, useRef } from "preact/hooks";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { t as common } from "../../text/common";
import { markId } from "./CitationMark";
import { SourcePanel } from "./SourcePanel";
import { sourceName } from "./source-name";
import { address, openSource } from "./state";
import { t } from "./text";
import type { Source, Turn } from "./turn";
import { shown } from "./turns";
import styles from "./OpenSource.module.css";

export function currentSource(): { turn: Turn; source: Source } | null {
  const at = openSource();
  const turn = at && shown.value.turns.find((candidate) => candidate.id === at.turn);
  const source = turn?.sources.find((candidate) => candidate.number === at?.number);
  return turn && source ? { turn, source } : null;
}

export function OpenSource({ turn, source, wide }: { turn: Turn; source: Source; wide: boolean }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const key = `${turn.id}.${source.number}`;
  useEffect(() => {
    if (wide) heading.current?.focus({ preventScroll: true });
  }, [key, wide]);
  const close = () => {
    address.set({ source: "" }, { replace: true });
    document.getElementById(markId(turn.id, source.number))?.focus();
  };
  const name = t("ask.source", { n: source.number, label: sourceName(turn, source) });
  const content = (
    <div class={styles.content}>
      <Steps turn={turn} source={source} />
      <div class={styles.source}>
        <SourcePanel key={key} source={source} asOf={turn.settings.as_of} />
      </div>
    </div>
  );
  if (!wide) {
    return (
      <Dialog title={name} open onClose={close} shape="side" flush>
        {content}
      </Dialog>
    );
  }
  return (
    <aside
      class={styles.panel}
      aria-labelledby="open-source"
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        close();
      }}
    >
      <header class={styles.header}>
        <h2 id="open-source" ref={heading} tabIndex={-1}>
          {name}
        </h2>
        <Button kind="bare" icon="close" label={common("shell.close")} onClick={close} />
      </header>
      {content}
    </aside>
  );
}

/** To the source before and after this one. */
function Steps({ turn, source }: { turn: Turn; source: Source }) {
  const at = turn.sources.indexOf(source);
  const to = (other: Source | undefined) => () =>
    other && address.set({ source: `${turn.id}.${other.number}` }, { replace: true });
  if (turn.sources.length < 2) return null;
  return (
    <div class={styles.steps}>
      <Button small disabled={at === 0} onClick={to(turn.sources[at - 1])}>
        {t("source.previous")}
      </Button>
      <Button small disabled={at === turn.sources.length - 1} onClick={to(turn.sources[at + 1])}>
        {t("source.next")}
      </Button>
    </div>
  );
}
