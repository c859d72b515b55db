/** Adding files: drop them here or choose them; below, how far each one is. */
import { useEffect, useRef, useState } from "preact/hooks";
import { caller } from "../../state/session";
import { Button } from "../../parts/Button";
import { ADVISED_SUFFIXES, CONTENT_TYPES, FILE_KINDS } from "../../parts/file-kinds";
import { formatPath, parsePath } from "../../state/query";
import { CategoryField } from "./CategoryField";
import { chosen, dropped, type Found } from "./files";
import { t } from "./text";
import { SkippedOnly, UploadQueue } from "./UploadQueue";
import { addFiles, counts, items, skipped } from "./uploads";
import styles from "./UploadPanel.module.css";

const ACCEPTED = [...CONTENT_TYPES.flatMap((type) => FILE_KINDS[type].suffixes), ...ADVISED_SUFFIXES].join(",");

export function UploadPanel() {
  const [over, setOver] = useState(false);
  const [category, setCategory] = useState("");
  const [mistake, setMistake] = useState<"upload.categoryMissing" | "upload.categoryEmpty" | null>(null);
  const needsCategory = Array.isArray(caller.value?.scope);
  useWarning();
  const add = (found: Found) => {
    if (needsCategory && !category.trim()) return setMistake("upload.categoryMissing");
    if (hasEmptyName(category)) return setMistake("upload.categoryEmpty");
    setMistake(null);
    addFiles(found, formatPath(parsePath(category.trim())));
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    if (event.dataTransfer) void dropped(event.dataTransfer.items).then(add);
  };
  return (
    <section class={styles.panel} aria-label={t("upload.title")}>
      <div
        class={`${styles.zone} ${over ? styles.over : ""}`}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={drop}
      >
        <div class={styles.words}>
          <p class={styles.drop}>{t("upload.drop")}</p>
          <p class={styles.kinds}>{t("upload.kinds", { kinds: kindNames() })}</p>
        </div>
        <div class={styles.choose}>
          <Chooser label={t("upload.files")} onChosen={add} />
          <Chooser label={t("upload.folder")} onChosen={add} folder />
        </div>
        <CategoryField
          value={category}
          onInput={setCategory}
          required={needsCategory}
          error={mistake ? t(mistake) : undefined}
        />
      </div>
      {items.value.length > 0 ? <UploadQueue /> : skipped.value.size > 0 && <SkippedOnly />}
    </section>
  );
}

const kindNames = () => CONTENT_TYPES.map((type) => FILE_KINDS[type].name).join(", ");

function Chooser({ label, folder, onChosen }: { label: string; folder?: boolean; onChosen: (found: Found) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button icon={folder ? "taxonomy" : "plus"} onClick={() => input.current?.click()}>
        {label}
      </Button>
      <input
        ref={input}
        type="file"
        hidden
        multiple
        accept={folder ? undefined : ACCEPTED}
        {...(folder ? { webkitdirectory: true } : {})}
        aria-label={label}
        onChange={(event) => {
          const field = event.currentTarget;
          onChosen(chosen(field.files ?? []));
          field.value = ""; // the same files can be chosen again
        }}
      />
    </>
  );
}

/** Whether a category path has nothing before, between or after its slashes. */
const hasEmptyName = (category: string): boolean =>
  category.trim() !== "" && category.split("/").some((name) => !name.trim());

/** Leaving the page would stop what was not sent; what was sent is read anyway. */
function useWarning(): void {
  const running = counts.value.waiting + counts.value.sending > 0;
  useEffect(() => {
    if (!running) return;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", warn);
    return () => window.removeEventListener("beforeunload", warn);
  }, [running]);
}
