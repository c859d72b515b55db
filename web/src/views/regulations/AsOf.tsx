/** The day whose texts are shown; none is today. */
import { Field } from "../../parts/Field";
import { address, dayOf } from "./state";
import { t } from "./text";
import styles from "./Regulations.module.css";

export function AsOf() {
  const { asOf } = address.read();
  return (
    <div class={styles.day}>
      <Field
        type="date"
        label={t("asOf.label")}
        hint={t("asOf.hint")}
        error={asOf && !dayOf(asOf) ? t("asOf.wrong") : undefined}
        value={asOf}
        onInput={(value) => address.set({ asOf: value, offset: 0 }, { replace: true })}
      />
    </div>
  );
}
