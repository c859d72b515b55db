/** Search, filters and order of the list of documents; all of them are in the address. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { useResource } from "../../state/resource";
import { api } from "../../api/client";
import type { Branch } from "../../parts/branches";
import { Field } from "../../parts/Field";
import { CONTENT_TYPES, kindName } from "../../parts/file-kinds";
import { address, SORTS, type ListState } from "./state";
import { t, type DocumentsKey } from "./text";
import styles from "./ListTools.module.css";

/** Typing is searched for when it rests. */
const REST_MS = 250;

const set = (change: Partial<ListState>) => address.set({ ...change, at: 0 }, { replace: true });

export function ListTools() {
  const { branch, type, sort } = address.read();
  const tree = useResource(
    (signal) => api.get("/taxonomy/{version}/tree", { path: { version: "active" }, signal }),
    [],
  );
  const paths = tree.data ? pathsOf(tree.data.tree) : [];
  const branches = branch && !paths.includes(branch) ? [branch, ...paths] : paths;
  return (
    <div class={styles.tools} role="search">
      <Search />
      <Choice label={t("list.branch")} value={branch} onChange={(value) => set({ branch: value })}>
        <option value="">{t("list.allBranches")}</option>
        {branches.map((path) => (
          <option key={path} value={path}>
            {path}
          </option>
        ))}
      </Choice>
      <Choice label={t("documents.kind")} value={type} onChange={(value) => set({ type: value })}>
        <option value="">{t("list.allKinds")}</option>
        {CONTENT_TYPES.map((kind) => (
          <option key={kind} value={kind}>
            {kindName(kind)}
          </option>
        ))}
      </Choice>
      <Choice label={t("list.sort")} value={sort} onChange={(value) => set({ sort: value as ListState["sort"] })}>
        {SORTS.map((order) => (
          <option key={order} value={order}>
            {t(`sort.${order}` satisfies DocumentsKey)}
          </option>
        ))}
      </Choice>
    </div>
  );
}

function Search() {
  const { q } = address.read();
  const [typed, setTyped] = useState(q);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => setTyped(q), [q]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <div class={styles.search}>
      <Field
        label={t("list.search")}
        type="search"
        value={typed}
        maxLength={200}
        onInput={(value) => {
          setTyped(value);
          clearTimeout(timer.current);
          timer.current = setTimeout(() => set({ q: value.trim() }), REST_MS);
        }}
      />
    </div>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  children: ComponentChildren;
}

function Choice({ label, value, onChange, children }: ChoiceProps) {
  const id = useId();
  return (
    <div class={styles.choice}>
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {children}
      </select>
    </div>
  );
}

const pathsOf = (tree: readonly Branch[]): string[] =>
  tree.flatMap((branch) => [branch.path.join("/"), ...pathsOf(branch.children)]);
