import { render, type ComponentChildren } from "preact";
import { afterEach } from "vitest";
import { language } from "../text/language";

const mounted: HTMLElement[] = [];

afterEach(() => {
  for (const element of mounted.splice(0)) {
    render(null, element);
    element.remove();
  }
  language.value = "en";
});

/** Render into the document for one test. */
export function mount(children: ComponentChildren): HTMLElement {
  const element = document.createElement("div");
  document.body.append(element);
  mounted.push(element);
  render(children, element);
  return element;
}
