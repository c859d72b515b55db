/** The views by group, then who is signed in. A view that the role cannot use is not offered. */
import type { ComponentChildren } from "preact";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { Icon } from "../parts/Icon";
import { t } from "../text/common";
import { href, route } from "../state/router";
import { askForKey, caller, keyless, mayOpen, signOut } from "../state/session";
import { GROUPS, VIEWS } from "./views";
import styles from "./Navigation.module.css";

interface Props {
  onOptions: () => void;
  /** Above the views. */
  children?: ComponentChildren;
}

export function Navigation({ onOptions, children }: Props) {
  const current = route.value.view;
  const groups = GROUPS.map((group) => ({
    group,
    views: VIEWS.filter((view) => view.group === group && mayOpen(view.id)),
  })).filter(({ views }) => views.length > 0);
  return (
    <div class={styles.side}>
      {children}
      <nav class={styles.navigation} aria-label={t("shell.navigation")}>
        {groups.map(({ group, views }) => (
          <section key={group}>
            {groups.length > 1 && <h2 class={styles.group}>{t(`group.${group}`)}</h2>}
            <ul>
              {views.map((view) => (
                <li key={view.id}>
                  <a class={styles.link} href={href(view.id)} aria-current={view.id === current ? "page" : undefined}>
                    <Icon name={view.icon} />
                    {t(`view.${view.id}`)}
                  </a>
                </li>
              ))}
            </ul>
          </section>
        ))}
      </nav>
      <Account onOptions={onOptions} />
    </div>
  );
}

function Account({ onOptions }: { onOptions: () => void }) {
  const who = caller.value;
  return (
    <div class={styles.account}>
      {who && (
        <div class={styles.who}>
          <strong>{who.local ? t("session.local") : keyless.value ? t("session.public") : who.name}</strong>
          <span class={styles.scope}>
            {who.role !== "public" && <Badge>{t(`role.${who.role}`)}</Badge>}
            <span>
              {who.scope && who.scope[0] !== "*"
                ? t("session.scope", { paths: who.scope.join(", ") })
                : t("session.whole")}
            </span>
          </span>
        </div>
      )}
      <Button kind="bare" icon="settings" onClick={onOptions}>
        {t("shell.options")}
      </Button>
      {keyless.value && (
        <Button kind="bare" icon="keys" onClick={askForKey}>
          {t("session.signIn")}
        </Button>
      )}
      {who && !who.local && !keyless.value && (
        <Button kind="bare" icon="external" onClick={() => void signOut()}>
          {t("session.signOut")}
        </Button>
      )}
    </div>
  );
}
