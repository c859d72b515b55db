/** Links to the identity providers that people sign in with; nothing where there are none. */
import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import type { components } from "../api/schema";
import { rememberAddress } from "../state/session";
import { t } from "../text/common";
import styles from "./SignIn.module.css";

export function Providers() {
  const [providers, setProviders] = useState<components["schemas"]["ProviderShape"][]>([]);
  useEffect(() => {
    // Without an answer there is still the key, which says what is wrong.
    api.get("/sign-in").then(
      (body) => setProviders(body.providers),
      () => setProviders([]),
    );
  }, []);
  return (
    <>
      {providers.map(({ name, title }) => (
        <a key={name} class={styles.provider} href={`/sign-in/${name}`} onClick={rememberAddress}>
          {t("session.with", { title })}
        </a>
      ))}
    </>
  );
}
