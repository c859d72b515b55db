/** The tools that an agent may be allowed, as people read them. */
import { t } from "./text";

/** Those that exist; the service reserves further names. */
export const TOOLS = ["calculator", "doc_parser", "web_search"] as const;

const knownOf = (tool: string) => TOOLS.find((known) => known === tool);

/** A tool of an MCP server has the name that it has there. */
export function nameOfTool(tool: string): string {
  const known = knownOf(tool);
  return known ? t(`tool.${known}`) : tool;
}

export const useOfTool = (tool: string): string => t(`use.${knownOf(tool) ?? "server"}`);
