/** `<script src="https://…/widget.js" data-key="…" data-agent="…" async></script>`: a question box for other sites.
 *  Without both attributes the questions go to the public branches. */
import { optionsOf } from "./options";
import { mount } from "./panel";

const script = document.currentScript;
if (!(script instanceof HTMLScriptElement)) throw new Error("dtrag widget: include it with a <script src> element.");
const options = optionsOf(script);
if (document.readyState === "loading")
  document.addEventListener("DOMContentLoaded", () => mount(options), { once: true });
else mount(options);
