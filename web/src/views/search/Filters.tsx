/** What narrows the search. Every change is in the address at once; the search follows. */
import { useState } from "preact/hooks";
import { useResource } from "../../state/resource";
import { api } from "../../api/client";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { Field } from "../../parts/Field";
import { CONTENT_TYPES, kindName } from "../../parts/file-kinds";
import { Empty, Loaded } from "../../parts/States";
import { TreePicker } from "../../parts/TreePicker";
import { address, MOST_HITS, NO_FILTERS, type SearchState } from "./state";
import { t } from "./text";
import styles from "./Filters.module.css";

export function Filters({ open, onClose }: { open: boolean; onClose: () => void }) {
  return (
    <Dialog
      title={t("filters.title")}
      open={open}
      onClose={onClose}
      shape="side"
      footer={
        <>
          <Button onClick={() => set(NO_FILTERS)}>{t("filters.clear")}</Button>
          <Button kind="main" onClick={onClose}>
            {t("filters.done")}
          </Button>
        </>
      }
    >
      <div class={styles.filters}>
        <Categories />
        <Kinds />
        <Dates />
        <Metadata />
        <Limits />
      </div>
    </Dialog>
  );
}

const set = (change: Partial<SearchState>) => address.set(change, { replace: true });

function Categories() {
  const tree = useResource(
    (signal) => api.get("/taxonomy/{version}/tree", { path: { version: "active" }, signal }),
    [],
  );
  const { scope } = address.read();
  return (
    <section>
      <h3>{t("filters.categories")}</h3>
      <Loaded resource={tree}>
        {({ tree: branches }) =>
          branches.length === 0 ? (
            <Empty title={t("filters.noCategories")} />
          ) : (
            <TreePicker
              tree={branches}
              label={t("filters.categories")}
              selection={scope}
              onSelect={(chosen) => set({ scope: chosen.map((path) => [...path]) })}
            />
          )
        }
      </Loaded>
    </section>
  );
}

function Kinds() {
  const { type } = address.read();
  const toggle = (kind: string) =>
    set({ type: type.includes(kind) ? type.filter((other) => other !== kind) : [...type, kind] });
  return (
    <fieldset class={styles.kinds}>
      <legend>{t("filters.kinds")}</legend>
      {CONTENT_TYPES.map((kind) => (
        <label key={kind}>
          <input type="checkbox" checked={type.includes(kind)} onChange={() => toggle(kind)} />
          {kindName(kind)}
        </label>
      ))}
    </fieldset>
  );
}

function Dates() {
  const { from, to, as_of } = address.read();
  return (
    <section class={styles.pair}>
      <Field type="date" label={t("filters.from")} value={from} onInput={(value) => set({ from: value })} />
      <Field type="date" label={t("filters.to")} value={to} onInput={(value) => set({ to: value })} />
      <Field
        type="date"
        label={t("filters.asOf")}
        hint={t("filters.asOfHint")}
        value={as_of}
        onInput={(value) => set({ as_of: value })}
      />
    </section>
  );
}

function Metadata() {
  const { field } = address.read();
  const [pair, setPair] = useState("");
  const add = (event: Event) => {
    event.preventDefault();
    if (!/^[^=]+=/.test(pair.trim())) return;
    set({ field: [...field.filter((other) => other !== pair.trim()), pair.trim()] });
    setPair("");
  };
  return (
    <form class={styles.metadata} onSubmit={add}>
      <Field
        label={t("filters.metadata")}
        hint={t("filters.metadataHint")}
        placeholder="author=Kim"
        value={pair}
        autocomplete="off"
        onInput={setPair}
      />
      <Button type="submit" disabled={!/^[^=]+=/.test(pair.trim())}>
        {t("filters.add")}
      </Button>
      {field.map((shown) => (
        <p key={shown}>
          <code>{shown}</code>
          <Button
            small
            kind="bare"
            icon="close"
            label={t("filters.remove", { field: shown })}
            onClick={() => set({ field: field.filter((other) => other !== shown) })}
          />
        </p>
      ))}
    </form>
  );
}

function Limits() {
  const { k, min, lexical, vector } = address.read();
  const number = (name: "k" | "lexical" | "vector", fallback: number) => (value: string) =>
    set({ [name]: /^\d{1,4}$/.test(value) ? Math.min(MOST_HITS, Math.max(1, Number(value))) : fallback });
  return (
    <section class={styles.pair}>
      <Field
        type="number"
        label={t("filters.hits")}
        min="1"
        max={String(MOST_HITS)}
        value={String(k)}
        onInput={number("k", 10)}
      />
      <Field
        type="number"
        label={t("filters.minimum")}
        hint={t("filters.minimumHint")}
        min="0"
        max="1"
        value={min}
        onInput={(value) => set({ min: value })}
      />
      <Field
        type="number"
        label={t("filters.lexical")}
        min="1"
        max={String(MOST_HITS)}
        value={String(lexical)}
        onInput={number("lexical", 100)}
      />
      <Field
        type="number"
        label={t("filters.vector")}
        min="1"
        max={String(MOST_HITS)}
        value={String(vector)}
        onInput={number("vector", 100)}
      />
    </section>
  );
}
