/** A conversation as a Markdown file: its questions as headings, with their answers. */
import { api } from "../../api/client";
import type { components } from "../../api/schema";
import { saveAs } from "../../state/save-as";
import { formatDateTime } from "../../text/texts";
import { keptAnswer } from "./kept-answers";
import { t } from "./text";

export type Conversation = components["schemas"]["ConversationShape"];
type Stored = components["schemas"]["ConversationResponse"];

export const titleOf = ({ title, question }: Conversation): string => title || question;

/** Throws `Problem`. */
export async function saveConversation(conversation_id: string): Promise<void> {
  const stored = await api.get("/conversations/{conversation_id}", { path: { conversation_id } });
  const name = titleOf(stored.conversation)
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .replace(/^-|-$/g, "")
    .slice(0, 60);
  saveAs(`${name || "conversation"}.md`, asMarkdown(stored), "text/markdown");
}

/** With the sources of the answers that this tab has; the service stores only their texts. */
export function asMarkdown({ conversation, messages }: Stored): string {
  const turns = messages.map((message) => {
    const sources = message.withheld ? [] : (keptAnswer(conversation.conversation_id, message)?.answer.sources ?? []);
    return [
      `## ${oneLine(message.question)}`,
      `*${formatDateTime(message.created_at)}*`,
      message.withheld ? `*${t("ask.withheld")}*` : message.answer,
      sources.map(({ number, label, quote }) => `[${number}] ${label}: “${oneLine(quote)}”`).join("  \n"),
    ];
  });
  return [`# ${oneLine(titleOf(conversation))}`, ...turns.flat().filter(Boolean)].join("\n\n") + "\n";
}

const oneLine = (text: string): string => text.replace(/\s+/g, " ").trim();
