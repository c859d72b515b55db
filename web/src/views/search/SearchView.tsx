/** Search explorer: what the search finds, and why each hit stands where it stands. */
import { useEffect, useRef, useState } from "preact/hooks";
import { announce } from "../../state/announce";
import { useResource } from "../../state/resource";
import { caller } from "../../state/session";
import { useShortcuts } from "../../state/shortcuts";
import { api } from "../../api/client";
import { Button } from "../../parts/Button";
import { CopyButton } from "../../parts/CopyButton";
import { Page } from "../../parts/Page";
import { Segmented } from "../../parts/Segmented";
import { Empty, Loaded } from "../../parts/States";
import { Filters } from "./Filters";
import { Results } from "./Results";
import { address, curlOf, filterCount, fullRequest, MODES, NO_FILTERS } from "./state";
import { t } from "./text";
import { WhyNot } from "./WhyNot";
import styles from "./SearchView.module.css";

const LONGEST_QUERY = 10_000;

export default function SearchView() {
  const box = useRef<HTMLInputElement>(null);
  const [filters, setFilters] = useState(false);
  useShortcuts([
    { keys: "/", label: () => t("search.focus"), run: () => box.current?.focus() },
    { keys: "f", label: () => t("filters.title"), run: () => setFilters(true) },
  ]);
  const state = address.read();
  const request = fullRequest(state);
  const found = useResource(state.q.trim() ? (signal) => api.post("/search", { body: request, signal }) : null, [
    JSON.stringify(request),
  ]);
  const number = found.loading ? undefined : found.data?.results.length;
  useEffect(() => {
    if (number !== undefined && state.q) announce(t("search.found", { n: number }));
  }, [found.data]);
  const set = filterCount(state);
  return (
    <Page title={t("search.title")} lead={t("search.lead")}>
      <div class={styles.controls}>
        <QueryForm query={state.q} box={box} />
        <div class={styles.options}>
          <Segmented
            label={t("search.mode")}
            value={state.mode}
            choices={MODES.map((mode) => ({ value: mode, text: t(`mode.${mode}`) }))}
            onChange={(mode) => address.set({ mode }, { replace: true })}
          />
          <div class={styles.tools}>
            <Button icon="options" aria-haspopup="dialog" onClick={() => setFilters(true)}>
              {set > 0 ? t("filters.set", { n: set }) : t("filters.title")}
            </Button>
            {set > 0 && (
              <Button kind="bare" onClick={() => address.set(NO_FILTERS, { replace: true })}>
                {t("filters.clear")}
              </Button>
            )}
            {state.q && (
              <CopyButton
                small={false}
                text={() => curlOf(state, location.origin, !caller.value?.local)}
                label={t("search.curl")}
              />
            )}
          </div>
        </div>
        <p class={styles.hint}>{t(`modeHint.${state.mode}`)}</p>
      </div>
      {!state.q.trim() ? (
        <Empty title={t("search.empty")} text={t(state.why.length > 0 ? "search.emptyWhy" : "search.emptyHelp")}>
          <Button icon="search" onClick={() => box.current?.focus()}>
            {t("search.focus")}
          </Button>
        </Empty>
      ) : (
        <Loaded resource={found} lines={8}>
          {(response) => (
            <div class={styles.results}>
              <Results response={response} state={state} onClear={() => address.set(NO_FILTERS, { replace: true })} />
              <WhyNot response={response} why={state.why} />
            </div>
          )}
        </Loaded>
      )}
      <Filters open={filters} onClose={() => setFilters(false)} />
    </Page>
  );
}

function QueryForm({ query, box }: { query: string; box: { current: HTMLInputElement | null } }) {
  useEffect(() => {
    if (box.current && box.current.value.trim() !== query) box.current.value = query;
  }, [query]);
  const search = (event: Event) => {
    event.preventDefault();
    const q = box.current?.value.trim() ?? "";
    if (q) address.set({ q });
    else box.current?.focus();
  };
  return (
    <form class={styles.form} role="search" onSubmit={search}>
      <label class="quiet" for="search-query">
        {t("search.query")}
      </label>
      <input
        id="search-query"
        ref={box}
        type="search"
        defaultValue={query}
        maxLength={LONGEST_QUERY}
        placeholder={t("search.query")}
        autocomplete="off"
        enterkeyhint="search"
      />
      <Button kind="main" type="submit" icon="search">
        {t("search.search")}
      </Button>
    </form>
  );
}
