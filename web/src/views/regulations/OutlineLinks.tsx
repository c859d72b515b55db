/** The outline beside the text: parts, chapters and sections (편, 장, 절), and the articles of each. */
import { useMedia } from "../../state/use-media";
import { Badge } from "../../parts/Badge";
import { address, headOf, linkToPlace, placeIn, type Division } from "./state";
import { t } from "./text";
import styles from "./OutlineLinks.module.css";

interface Listed {
  label: string;
  title: string;
  start: number;
  deleted: boolean;
}
interface Props {
  of: string;
  divisions: readonly Division<Listed>[];
}

/** Room for the text and its outline beside each other. */
const WIDE = "(min-width: 64rem)";

export function OutlineLinks({ of, divisions }: Props) {
  const wide = useMedia(WIDE);
  const links = <Divisions of={of} divisions={divisions} />;
  return (
    <nav class={styles.outline} aria-label={t("outline.title")}>
      {wide ? (
        links
      ) : (
        <details>
          <summary>{t("outline.title")}</summary>
          {links}
        </details>
      )}
    </nav>
  );
}

export function Divisions({ of, divisions }: Props) {
  const { asOf } = address.read();
  return (
    <ul class={styles.divisions}>
      {divisions.map(({ title, place, provisions, children }) => (
        <li key={`${place} ${provisions[0]?.start}`}>
          {title && (
            <a href={linkToPlace(of, place, asOf)} lang="ko">
              {title}
            </a>
          )}
          {provisions.length > 0 && <Articles of={of} provisions={provisions} />}
          {children.length > 0 && <Divisions of={of} divisions={children} />}
        </li>
      ))}
    </ul>
  );
}

/** Folded: the way by keyboard from the chapters to the text is short, and so is the list. */
function Articles({ of, provisions }: { of: string; provisions: readonly Listed[] }) {
  const { asOf } = address.read();
  const [first, last] = [provisions[0]?.label, provisions.at(-1)?.label];
  return (
    <details>
      <summary lang="ko">{first === last ? first : `${first}–${last}`}</summary>
      <ul class={styles.articles}>
        {provisions.map((provision) => (
          <li key={provision.start}>
            <a href={linkToPlace(of, placeIn(provision), asOf)} lang="ko">
              {headOf(provision)}
            </a>{" "}
            {provision.deleted && <Badge tone="bad">{t("outline.deleted")}</Badge>}
          </li>
        ))}
      </ul>
    </details>
  );
}
