/** Language, theme and shortcuts. */
import { Dialog } from "../parts/Dialog";
import { Segmented } from "../parts/Segmented";
import { t } from "../text/common";
import { language } from "../text/language";
import { chooseLanguage, chooseShortcuts, chooseTheme, shortcutsOn, theme, THEMES } from "../state/preferences";
import { shortcuts } from "../state/shortcuts";
import styles from "./Options.module.css";

const LANGUAGES = [
  { value: "ko", text: "한국어", lang: "ko" },
  { value: "en", text: "English", lang: "en" },
] as const;

export function Options({ open, onClose }: { open: boolean; onClose: () => void }) {
  return (
    <Dialog title={t("shell.options")} open={open} onClose={onClose}>
      <div class={styles.options}>
        <Segmented label={t("shell.language")} value={language.value} choices={LANGUAGES} onChange={chooseLanguage} />
        <Segmented
          label={t("shell.theme")}
          value={theme.value}
          choices={THEMES.map((value) => ({ value, text: t(`theme.${value}`) }))}
          onChange={chooseTheme}
        />
        <section class={styles.shortcuts}>
          <h3>{t("keys.title")}</h3>
          <label class={styles.switch}>
            <input
              type="checkbox"
              checked={shortcutsOn.value}
              onChange={(event) => chooseShortcuts(event.currentTarget.checked)}
            />
            {t("keys.on")}
          </label>
          <p class={styles.hint}>{t("keys.onHint")}</p>
          <table class={styles.table} hidden={!shortcutsOn.value}>
            <tbody>
              {shortcuts.value.map((shortcut) => (
                <tr key={shortcut.keys}>
                  <th scope="row">
                    <Keys keys={shortcut.keys} />
                  </th>
                  <td>{shortcut.label()}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      </div>
    </Dialog>
  );
}

function Keys({ keys }: { keys: string }) {
  const [first, second] = keys.split(" ");
  return (
    <>
      <kbd>{first}</kbd>
      {second && (
        <>
          {" "}
          <span class={styles.hint}>{t("keys.then")}</span> <kbd>{second}</kbd>
        </>
      )}
    </>
  );
}
