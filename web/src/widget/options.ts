import { preferredLanguage, type Language } from "../text/tags";

export interface Options {
  /** The address of the script: the service is where it came from. */
  script: string;
  /** "": the question is one to the public branches of the service. */
  key: string;
  agent: string;
  language: Language;
  /** "": as the reader's system has it. */
  theme: "" | "light" | "dark";
}

/** What the script element says. Throws for missing attributes: the message is for the site's developers. */
export function optionsOf(script: HTMLScriptElement): Options {
  const { key = "", agent = "", lang, theme } = script.dataset;
  if (agent && !key)
    throw new Error('dtrag widget: add data-key="…", a key of the role public, to the script element.');
  if (key && !agent)
    throw new Error('dtrag widget: add data-agent="…", the id of the agent of the key, to the script element.');
  const accepted = [lang ?? "", document.documentElement.lang, ...navigator.languages];
  return {
    script: script.src,
    key,
    agent,
    language: preferredLanguage(accepted),
    theme: theme === "light" || theme === "dark" ? theme : "",
  };
}
