/** An answer with its sources, or that the documents do not answer. */
import { parseMarkdown, safeLink } from "../parts/parse-markdown";
import { languageOf } from "../text/tags";
import { distinctLabels } from "../parts/source-labels";
import { quotationBlocks, quotedBlocks, type Quoted } from "../parts/table-rows";
import type { Answer, Citation } from "./ask";
import { element } from "./element";
import { blockElement, type Cite } from "./render-markdown";
import type { Say } from "./text";

export function answerElements(answer: Answer, notes: readonly string[], say: Say): HTMLElement[] {
  if (answer.decision === "abstain")
    return [element("p", { class: "strong" }, say("declined")), element("p", { class: "quiet" }, say("declinedHelp"))];
  const labelled = answer.citations.map((citation) => ({ ...citation, address: citation.source_url }));
  const labels = distinctLabels(labelled, (n) => say("page", { n }));
  const citations = answer.citations.map((citation, at) => ({ ...citation, label: labels[at] ?? citation.label }));
  const sources = new Map(citations.map((citation) => [citation.number, sourceElement(citation, say)]));
  const body = element(
    "div",
    { class: "answer", lang: languageOf(answer.text) },
    ...textOf(answer, marksOf(sources, citations, say)),
  );
  const warnings = [
    ...(answer.decision === "review" ? [say("review")] : []),
    ...(answer.model === null ? [] : [say("model")]),
  ];
  return [
    body,
    ...warnings.map((note) => element("p", { class: "note", lang: languageOf(note) }, note)),
    ...(sources.size > 0 ? [element("p", { class: "heading" }, say("sources")), ...sources.values()] : []),
    ...(notes.length > 0 ? [notesElement(notes, say)] : []),
  ];
}

/** The text so far; marks and sources come with the whole answer. */
export function writingElements(text: string, citations: readonly Citation[], say: Say): HTMLElement[] {
  const cite: Cite = (n) => document.createTextNode(`[${n}]`);
  const body = quotedElements(quotedBlocks(text, citations), cite);
  return [
    element("div", { class: "answer", lang: languageOf(text) }, ...body),
    element("p", { class: "quiet" }, `${say("writing")}…`),
  ];
}

/** Quotations are shown as they are; what a model wrote is Markdown. */
function textOf(answer: Answer, cite: Cite): HTMLElement[] {
  if (answer.model !== null) return parseMarkdown(answer.text).map((block) => blockElement(block, cite));
  return quotedElements(quotedBlocks(answer.text, answer.citations, answer.marked), cite);
}

function quotedElements(blocks: readonly Quoted[], cite: Cite): HTMLElement[] {
  return blocks.map((block) => {
    const shown = blockElement(block, cite);
    if (block.kind === "paragraph") shown.className = "quoted";
    return shown;
  });
}

function marksOf(sources: Map<number, HTMLDetailsElement>, citations: readonly Citation[], say: Say): Cite {
  return (number) => {
    const source = sources.get(number);
    const label = citations.find((citation) => citation.number === number)?.label;
    if (!source || label === undefined) return document.createTextNode(`[${number}]`);
    const mark = element("button", { type: "button", class: "mark" }, String(number));
    mark.setAttribute("aria-label", say("source", { n: number, label }));
    mark.addEventListener("click", () => {
      source.open = true;
      source.querySelector("summary")?.focus();
      source.scrollIntoView({ block: "nearest" });
    });
    return mark;
  };
}

function sourceElement(citation: Citation, say: Say): HTMLDetailsElement {
  const { number, label, display, source_url } = citation;
  const blocks = quotedElements(quotationBlocks(citation), (n) => document.createTextNode(`[${n}]`));
  const quote = element("blockquote", { lang: languageOf(display) }, ...blocks);
  const source = element("details", {}, element("summary", { lang: languageOf(label) }, `[${number}] ${label}`), quote);
  const original = safeLink(source_url);
  if (original !== null)
    source.append(element("a", { href: original, target: "_blank", rel: "noopener noreferrer" }, say("original")));
  return source;
}

/** What the service notes about an answer, such as an amendment of a quoted article. */
function notesElement(notes: readonly string[], say: Say): HTMLElement {
  const items = notes.map((note) => element("li", { lang: languageOf(note) }, note));
  return element("details", {}, element("summary", {}, say("notes", { n: notes.length })), element("ul", {}, ...items));
}
