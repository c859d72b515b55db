/** A text of a document, or the page of its original with the text marked on it: where there is one, a button changes. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { components } from "../api/schema";
import { useResource } from "../state/resource";
import { t } from "../text/common";
import { Button } from "./Button";
import { Loaded } from "./States";
import styles from "./WithOriginal.module.css";

interface Props {
  part: components["schemas"]["DocumentTextShape"];
  /** What is marked, in code points of the document's text. */
  span: { start: number; end: number } | null;
  /** `original`: the page, to be shown in place of the text. */
  children: (original: ComponentChildren) => ComponentChildren;
}

export function WithOriginal({ part, span, children }: Props) {
  const [open, setOpen] = useState(false);
  const viewer = useResource(open ? () => import("./OriginalPages") : null, []);
  if (!part.original) return children(null);
  const first = part.passages.find((passage) => !span || passage.end > span.start)?.page;
  return (
    <>
      <div class={styles.choice}>
        <Button small icon="documents" onClick={() => setOpen(!open)}>
          {t(open ? "original.text" : "original.show")}
        </Button>
      </div>
      {children(
        open && (
          <Loaded resource={viewer}>
            {({ OriginalPages }) => <OriginalPages documentId={part.document_id} span={span} first={first ?? 1} />}
          </Loaded>
        ),
      )}
    </>
  );
}
