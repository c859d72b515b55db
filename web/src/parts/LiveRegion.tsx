/** Where sentences are read out: one in the page, and one in each dialog, of which only the topmost is filled. */
import { useEffect, useState } from "preact/hooks";
import { announcement, openDialogs } from "../state/announce";

/** The number of the last sentence that was shown; it is not read out again by another region. */
let lastShown = 0;

/** `dialog`: the dialog that the region is in, as in `openDialogs`; null for that of the page. */
export function LiveRegion({ dialog }: { dialog: object | null }) {
  const { text, number } = announcement.value;
  const [shown, setShown] = useState(0);
  const isTopmost = (openDialogs.value.at(-1) ?? null) === dialog;
  useEffect(() => {
    if (!isTopmost) return setShown(0);
    if (number === lastShown) return;
    lastShown = number;
    setShown(number);
  }, [isTopmost, number]);
  return (
    <div class="quiet" role="status" aria-live="polite">
      {isTopmost && shown === number && number > 0 && <span key={number}>{text}</span>}
    </div>
  );
}
