/** The frame of every view: navigation, notices, the live region, and who is signed in. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { Empty, Failure, Loading } from "../parts/States";
import { t } from "../text/common";
import { announce } from "../state/announce";
import { connection } from "../state/connection";
import { ConnectionNotice, SignOutNotice } from "./ConnectionNotice";
import { LiveRegion } from "../parts/LiveRegion";
import { Navigation } from "./Navigation";
import { Options } from "./Options";
import { NAME, NAME_LANGUAGE } from "../state/presentation";
import { href, navigate, route } from "../state/router";
import {
  askForKey,
  keyless,
  load,
  mayOpen,
  roleFor,
  session,
  sessionNumber,
  signOut,
  type ViewId,
} from "../state/session";
import { useShortcuts } from "../state/shortcuts";
import { SignIn } from "./SignIn";
import { ViewFrame } from "./ViewFrame";
import { viewOf, VIEWS } from "./views";
import styles from "./Shell.module.css";

export function Shell() {
  const [menu, setMenu] = useState(false);
  const [options, setOptions] = useState(false);
  const main = useRef<HTMLElement>(null);
  const { view } = route.value;
  const signedIn = session.value.state === "open";
  useEffect(() => setMenu(false), [view]);
  useTitle(main, view);
  useFocusAfterSignIn(main);
  useShortcuts([
    { keys: "?", label: () => t("keys.help"), run: () => setOptions(true) },
    ...VIEWS.filter((target) => mayOpen(target.id)).map((target) => ({
      keys: `g ${target.letter}`,
      label: () => t("keys.goTo", { view: t(`view.${target.id}`) }),
      run: () => navigate(href(target.id)),
    })),
  ]);
  const skip = (event: Event) => {
    event.preventDefault(); // the fragment is the address of the view
    main.current?.focus();
  };
  return (
    <div class={styles.shell}>
      <a class={styles.skip} href="#main" onClick={skip}>
        {t("shell.skip")}
      </a>
      {signedIn && (
        <>
          <header class={styles.bar}>
            <Button
              kind="bare"
              icon="menu"
              label={t("shell.menu")}
              aria-expanded={menu}
              onClick={() => setMenu(true)}
            />
            <span class={styles.title}>{viewOf(view) ? t(`view.${viewOf(view)?.id ?? "ask"}`) : NAME}</span>
          </header>
          <header class={styles.side}>
            <Navigation onOptions={() => setOptions(true)}>
              <p class={styles.brand} translate={false} lang={NAME_LANGUAGE}>
                {NAME}
              </p>
            </Navigation>
          </header>
          <Dialog title={NAME} open={menu} onClose={() => setMenu(false)} shape="menu">
            <Navigation onOptions={() => setOptions(true)} />
          </Dialog>
        </>
      )}
      <div class={styles.content}>
        <ConnectionNotice />
        <SignOutNotice />
        <main ref={main} id="main" tabIndex={-1} class={styles.main}>
          <Content />
        </main>
      </div>
      <Options open={options} onClose={() => setOptions(false)} />
      <LiveRegion dialog={null} />
    </div>
  );
}

function Content() {
  const current = session.value;
  useEffect(() => {
    if (current.state === "failed" && connection.value === "ok") void load();
  }, [connection.value]);
  if (current.state === "unknown") return <Loading />;
  if (current.state === "failed") return <Failure problem={current.problem} onRetry={() => void load()} />;
  if (current.state === "closed") return <SignIn ended={current.ended} />;
  const view = viewOf(route.value.view);
  if (view && !mayOpen(view.id, route.value.path)) return <Forbidden view={view.id} />;
  if (view) return <ViewFrame key={`${view.id} ${sessionNumber.value}`} view={view} />;
  return (
    <Empty title={t("shell.unknownView", { name: route.value.view })}>
      <a href={href("ask")}>{t("shell.toAsk")}</a>
    </Empty>
  );
}

/** A view of others: who opens it, and the way back. */
function Forbidden({ view }: { view: ViewId }) {
  const role = roleFor(view);
  return (
    <div class={styles.forbidden}>
      <h1>{t(`view.${view}`)}</h1>
      <Empty
        title={t(role === "admin" ? "shell.forAdmins" : role === "editor" ? "shell.forEditors" : "shell.noRegulations")}
        text={t(keyless.value ? "state.unauthorizedHelp" : "state.forbiddenHelp")}
        alert
      >
        <a href={href("ask")}>{t("shell.toAsk")}</a>
        <Button onClick={keyless.value ? askForKey : () => void signOut()}>
          {t(keyless.value ? "session.signIn" : "state.otherKey")}
        </Button>
      </Empty>
    </div>
  );
}

/** The form for signing in is gone, and the focus with it: it goes on in the content. */
function useFocusAfterSignIn(main: { current: HTMLElement | null }): void {
  const { state } = session.value;
  const wasClosed = useRef(false);
  useEffect(() => {
    if (state === "open" && wasClosed.current) main.current?.focus();
    wasClosed.current = state === "closed";
  }, [state]);
}

/** The title of the page, and the focus at the beginning of a view that was opened. */
function useTitle(main: { current: HTMLElement | null }, id: string): void {
  const opened = useRef(false);
  const view = viewOf(id);
  const title = view ? t(`view.${view.id}`) : "";
  useEffect(() => {
    document.title = title ? `${title} · ${NAME}` : NAME;
  }, [title]);
  useEffect(() => {
    // The link that was followed may be gone, and the focus with it.
    if (opened.current && document.activeElement === document.body) main.current?.focus();
  }, [route.value.path.join("/")]);
  useEffect(() => {
    if (opened.current) {
      main.current?.focus();
      announce(title);
    }
    opened.current = true;
  }, [id]);
}
