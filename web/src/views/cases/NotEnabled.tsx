/** The case memory is off by default: how to enable it. */
import { CopyButton } from "../../parts/CopyButton";
import { Empty } from "../../parts/States";
import { t } from "./text";

/** The status of every response while it is off. */
export const NOT_ENABLED = 501;
const SETTING = "CBR_ENABLED=true";

export function NotEnabled() {
  return (
    <Empty title={t("off.title")} text={t("off.help")}>
      <code>{SETTING}</code>
      <CopyButton text={SETTING} label={t("off.copy")} />
    </Empty>
  );
}
