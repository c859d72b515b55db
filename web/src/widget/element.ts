type Attributes = Record<string, string | boolean>;

/** An element with attributes and children. Strings become text, never HTML. */
export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const created = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== false) created.setAttribute(key, value === true ? "" : value);
  }
  created.append(...children);
  return created;
}

export function button(label: string, onClick: () => void, className = ""): HTMLButtonElement {
  const created = element("button", { type: "button", class: className }, label);
  created.addEventListener("click", onClick);
  return created;
}
