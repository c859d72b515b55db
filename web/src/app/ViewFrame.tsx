/** Loads the code of a view when it is first opened, and keeps the page alive when the view fails. */
import { Component, type ComponentChildren, type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Button } from "../parts/Button";
import { CopyButton } from "../parts/CopyButton";
import { Empty, Loading } from "../parts/States";
import { t } from "../text/common";
import type { View } from "./views";

const loaded = new Map<string, ComponentType>();

export function ViewFrame({ view }: { view: View }) {
  const [failed, setFailed] = useState(false);
  const [, render] = useState(0);
  const Shown = loaded.get(view.id);
  useEffect(() => {
    if (loaded.has(view.id)) return;
    setFailed(false);
    view.load().then(
      (module) => {
        loaded.set(view.id, module.default);
        render((number) => number + 1);
      },
      () => setFailed(true),
    );
  }, [view]);
  if (Shown) {
    return (
      <Boundary>
        <Shown />
      </Boundary>
    );
  }
  if (!failed) return <Loading />;
  return (
    <Empty title={t("shell.newVersion")}>
      <Button onClick={() => location.reload()}>{t("shell.reload")}</Button>
    </Empty>
  );
}

class Boundary extends Component<{ children: ComponentChildren }, { error: Error | null }> {
  override state = { error: null as Error | null };

  static override getDerivedStateFromError(error: unknown) {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    const report = `${error.name}: ${error.message}`;
    return (
      <Empty title={t("shell.crashed")} text={t("shell.crashedHelp")} alert>
        <code>{report}</code>
        <Button onClick={() => this.setState({ error: null })}>{t("shell.again")}</Button>
        <CopyButton text={`${report}\n${error.stack ?? ""}`} />
      </Empty>
    );
  }
}
