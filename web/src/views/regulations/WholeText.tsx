/** The text of a regulation on one page: its outline beside it, and each article at an address of its own. */
import { useEffect, useRef } from "preact/hooks";
import { route, href } from "../../state/router";
import { Empty } from "../../parts/States";
import { Article } from "./Article";
import { OutlineLinks } from "./OutlineLinks";
import { address, divisionsOf, placeIn, type Division, type Provision, type Whole } from "./state";
import { t } from "./text";
import styles from "./WholeText.module.css";

const DEEPEST = 6;

export function WholeText({ whole, at }: { whole: Whole; at: string }) {
  const box = useRef<HTMLDivElement>(null);
  const { marks } = address.read();
  const found = useShowPlace(box, at, whole);
  const divisions = divisionsOf(whole.provisions);
  const history = whole.preface.trim().split("\n").slice(1).join("\n").trim();
  const marked = whole.provisions.reduce((total, provision) => total + provision.marks.length, 0);
  if (whole.provisions.length === 0)
    return (
      <Empty title={t("text.none")} text={t("text.noneHelp")}>
        <a href={href("documents", { path: [whole.document_id] })}>{t("text.openDocument")}</a>
      </Empty>
    );
  return (
    <div ref={box} class={styles.whole} onClick={(event) => showAgain(event, box.current, at)}>
      <OutlineLinks of={whole.name} divisions={divisions} />
      <section class={styles.text} aria-label={t("part.text")}>
        {!found && (
          <p class={styles.missing} role="alert">
            {t("text.missing", { place: at, name: whole.name })}
          </p>
        )}
        {marked > 0 && (
          <label class={styles.marks}>
            <input
              type="checkbox"
              checked={marks}
              onChange={(event) => address.set({ marks: event.currentTarget.checked }, { replace: true })}
            />
            {t("text.marks", { n: marked })}
          </label>
        )}
        {history && (
          <details class={styles.history}>
            <summary>{t("text.history")}</summary>
            <p lang="ko">{history}</p>
          </details>
        )}
        <Divisions divisions={divisions} level={2} of={whole.name} />
      </section>
    </div>
  );
}

function Divisions({ divisions, level, of }: { divisions: readonly Division<Provision>[]; level: number; of: string }) {
  const Title = `h${Math.min(level, DEEPEST)}` as "h2";
  return (
    <>
      {divisions.map(({ title, place, provisions, children }) => (
        <section key={`${place} ${provisions[0]?.start}`} class={styles.division}>
          {title && (
            <Title lang="ko" tabIndex={-1} data-place={folded(place)}>
              {title}
            </Title>
          )}
          {provisions.map((provision) => (
            <Article
              key={`${provision.document_id} ${provision.start}`}
              provision={provision}
              level={Math.min(title ? level + 1 : level, DEEPEST)}
              place={folded(placeIn(provision))}
              of={of}
            />
          ))}
          <Divisions divisions={children} level={level + 1} of={of} />
        </section>
      ))}
    </>
  );
}

/** Blanks do not count: 별표1 is 별표 1. */
const folded = (place: string): string => place.replace(/\s/g, "");

/** The heading of a place; of 부칙 without a title the first one. */
function headingAt(box: HTMLElement | null, place: string): HTMLElement | null {
  const name = CSS.escape(folded(place));
  const heading = box?.querySelector<HTMLElement>(`[data-place="${name}"]`);
  return heading ?? box?.querySelector<HTMLElement>(`[data-place^="${name}\\("]`) ?? null;
}

function showHeading(heading: HTMLElement | null): void {
  heading?.scrollIntoView({ block: "start" });
  heading?.focus({ preventScroll: true });
}

/** Shows the place of the address when it is opened; gives whether the text has it. */
function useShowPlace(box: { current: HTMLElement | null }, at: string, whole: Whole): boolean {
  useEffect(() => {
    if (at) showHeading(headingAt(box.current, at));
  }, [at, whole.document_id]);
  const place = folded(at);
  return (
    !at ||
    whole.provisions.some(
      ({ label, title, headings }) =>
        [label, placeIn({ label, title })].map(folded).includes(place) ||
        headings.some((_, depth) => folded(headings.slice(0, depth + 1).join("/")) === place),
    )
  );
}

/** A link to the place of the address leads there again, after the text was scrolled. */
function showAgain(event: MouseEvent, box: HTMLElement | null, at: string): void {
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (at && link?.hash === location.hash && route.value.view === "regulations") showHeading(headingAt(box, at));
}
