/** The button and its panel, in a shadow root: the styles of the site and of the widget do not meet. */
import { answerElements, writingElements } from "./answer";
import { ask, AskFailure } from "./ask";
import { button, element } from "./element";
import { failureElements, failureSentences } from "./failure";
import type { Options } from "./options";
import css from "./style.css?inline";
import { textsIn } from "./text";

const MAX_QUESTION = 2000;
/** Below this width the panel covers the window, and nothing else can be used while it is open. */
const NARROW = "(max-width: 30em)";

export function mount(options: Options): HTMLElement {
  const host = element("div", { "data-dtrag-widget": "", "data-theme": options.theme, lang: options.language });
  const root = host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  root.adoptedStyleSheets = [sheet];
  root.append(...new Panel(options).elements);
  document.body.append(host);
  return host;
}

class Panel {
  readonly elements: HTMLElement[];
  private readonly say;
  private readonly opener: HTMLButtonElement;
  private readonly dialog: HTMLDialogElement;
  private readonly log: HTMLElement;
  private readonly field: HTMLTextAreaElement;
  private readonly submit: HTMLButtonElement;
  private readonly status: HTMLElement;
  private running: AbortController | null = null;

  constructor(private readonly options: Options) {
    const say = textsIn(options.language);
    this.say = say;
    this.opener = button(say("open"), () => this.open(), "opener");
    this.opener.setAttribute("aria-haspopup", "dialog");
    this.opener.setAttribute("aria-expanded", "false");
    this.log = element(
      "div",
      { class: "log", role: "region", tabindex: "0", "aria-label": say("answers") },
      element("p", { class: "quiet" }, say("intro")),
    );
    this.field = element("textarea", { id: "question", rows: "2", maxlength: String(MAX_QUESTION) });
    this.submit = element("button", { type: "submit", class: "primary" }, say("send"));
    this.status = element("p", { role: "status", class: "unseen" });
    this.dialog = this.dialogElement();
    this.elements = [this.opener, this.dialog];
  }

  private dialogElement(): HTMLDialogElement {
    const { say } = this;
    const form = element("form", {}, element("label", { for: "question" }, say("question")), this.field, this.submit);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.running) this.running.abort();
      else this.send(this.field.value.trim());
    });
    this.field.addEventListener("keydown", (event) => {
      // While Hangul is being composed, Enter only ends the syllable.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!this.running) form.requestSubmit();
    });
    const title = element("h2", { id: "title" }, say("title"));
    const head = element(
      "header",
      {},
      title,
      button(say("close"), () => this.close(), "close"),
    );
    const dialog = element("dialog", { "aria-labelledby": "title" }, head, this.log, this.status, form);
    dialog.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.isComposing) return;
      event.preventDefault();
      event.stopPropagation();
      this.close();
    });
    dialog.addEventListener("close", () => this.closed()); // by a gesture of the device
    return dialog;
  }

  /** Beside the page, which stays usable; where there is no space for both, instead of it. */
  private open(): void {
    if (matchMedia(NARROW).matches) this.dialog.showModal();
    else this.dialog.show();
    this.opener.setAttribute("aria-expanded", "true");
    this.field.focus();
  }

  private close(): void {
    this.dialog.close();
    this.closed();
  }

  private closed(): void {
    this.opener.setAttribute("aria-expanded", "false");
    this.opener.focus();
  }

  private send(question: string): void {
    if (question) void this.answer(question);
    else this.field.focus();
  }

  private async answer(question: string): Promise<void> {
    const { say } = this;
    const running = new AbortController();
    this.running = running;
    const state = element("div", {}, element("p", { class: "quiet" }, `${say("asking")}…`));
    const turn = element("article", { "aria-busy": "true" }, element("p", { class: "asked" }, question), state);
    this.log.append(turn);
    turn.scrollIntoView({ block: "nearest" });
    this.field.value = "";
    this.submit.textContent = say("stop");
    this.status.textContent = say("asking");
    try {
      const answer = await ask(this.options, question, running.signal, (text, citations) => {
        this.show(state, writingElements(text, citations, say));
        this.status.textContent = say("writing");
      });
      const declined = answer.decision === "abstain";
      this.show(state, answerElements(answer, answer.notes, say));
      this.status.textContent = declined ? say("declined") : say("answered", { n: answer.citations.length });
    } catch (error) {
      this.failed(error, running.signal, question, turn, state);
    }
    turn.setAttribute("aria-busy", "false");
    turn.scrollIntoView({ block: "nearest" });
    this.submit.textContent = say("send");
    this.running = null;
  }

  private failed(error: unknown, signal: AbortSignal, question: string, turn: HTMLElement, state: HTMLElement): void {
    if (signal.aborted) {
      // What was written so far stays, above the sentence.
      const written = state.querySelectorAll<HTMLElement>(":scope > .answer");
      this.show(state, [...written, element("p", { class: "quiet" }, this.say("stopped"))]);
      this.status.textContent = this.say("stopped");
    } else {
      const failure = error instanceof AskFailure ? error : new AskFailure("failed");
      this.show(
        state,
        failureElements(failure, this.say, () => this.again(question, turn)),
      );
      this.status.textContent = failureSentences(failure.kind, this.say);
    }
    if (!this.field.value) this.field.value = question;
  }

  /** The button that was pressed goes with its turn, so the focus moves to the field. */
  private again(question: string, turn: HTMLElement): void {
    if (this.running) return;
    turn.remove();
    this.field.focus();
    this.send(question);
  }

  private show(state: HTMLElement, elements: HTMLElement[]): void {
    state.replaceChildren(...elements);
  }
}
