/** Who gains or loses documents, which grades get lower, and the boxes to tick before that happens. */
import { useState } from "preact/hooks";
import type { components } from "../../api/schema";
import { Badge } from "../Badge";
import { t } from "./text";
import styles from "./Acceptance.module.css";

type Reach = components["schemas"]["ReachShape"];

interface Effects {
  /** Null: it is not known who. */
  access: readonly Reach[] | null;
  lowered: readonly components["schemas"]["GradeChangeShape"][];
}

const NAMES_SHOWN = 2;

const nameOf = ({ kind, name }: Reach): string =>
  kind === "public" ? t("reach.public") : t(kind === "agent" ? "reach.agent" : "reach.key", { name });

export function ReachName({ reach }: { reach: Reach }) {
  return (
    <p class={styles.name}>
      <strong>{nameOf(reach)}</strong>
      {reach.gained > 0 && <Badge tone="warn">{t("reach.gains", { n: reach.gained })}</Badge>}
      {reach.lost > 0 && <Badge tone="bad">{t("reach.loses", { n: reach.lost })}</Badge>}
    </p>
  );
}

/** `given` says whether all that is needed is ticked, and otherwise shows that it is missing. */
export function useAcceptance() {
  const [widening, setWidening] = useState(false);
  const [lowering, setLowering] = useState(false);
  const [missing, setMissing] = useState(false);
  const lacks = ({ lowered }: Effects, widened: boolean) => (widened && !widening) || (lowered.length > 0 && !lowering);
  return {
    body: { accept_widening: widening, accept_lowering: lowering },
    given(effects: Effects, widened: boolean): boolean {
      setMissing(lacks(effects, widened));
      return !lacks(effects, widened);
    },
    boxes(effects: Effects, widened: boolean) {
      const branches = effects.lowered.map(({ path, from, to }) => `${path.join("/") || "—"} (${from} → ${to})`);
      return (
        <>
          {effects.access?.length === 0 && <p>{t("reach.none")}</p>}
          {effects.access?.map((reach) => (
            <ReachName key={`${reach.kind} ${reach.name}`} reach={reach} />
          ))}
          {widened && (
            <Box ticked={widening} missing={missing} onTick={setWidening}>
              {effects.access ? t("accept.widening", { names: namesOf(effects.access) }) : t("accept.unknown")}
            </Box>
          )}
          {branches.length > 0 && (
            <Box ticked={lowering} missing={missing} onTick={setLowering}>
              {t("accept.lowering", { branches: branches.join(", ") })}
            </Box>
          )}
          <p class={styles.missing} role="alert">
            {missing && lacks(effects, widened) && t("accept.missing")}
          </p>
        </>
      );
    },
  };
}

function namesOf(access: readonly Reach[]): string {
  const gaining = access.filter((reach) => reach.gained > 0);
  return gaining.length > NAMES_SHOWN ? t("accept.names", { n: gaining.length }) : gaining.map(nameOf).join(", ");
}

interface BoxProps {
  ticked: boolean;
  missing: boolean;
  onTick: (ticked: boolean) => void;
  children: string;
}

function Box({ ticked, missing, onTick, children }: BoxProps) {
  return (
    <label class={styles.accept}>
      <input
        type="checkbox"
        checked={ticked}
        aria-invalid={missing && !ticked}
        onChange={(event) => onTick(event.currentTarget.checked)}
      />
      {children}
    </label>
  );
}
