/** Operations and paths in words. */
import type { Misfit, Operation, Part } from "./operations";
import { pathText } from "../../text/path-text";
import { t } from "./text";

export { pathText };

export function sentenceOf(operation: Operation): string {
  switch (operation.op) {
    case "add":
      return t("op.add", { path: pathText(operation.path) });
    case "rename":
      return t("op.rename", { path: pathText(operation.path), name: operation.name });
    case "move":
      return t("op.move", {
        path: pathText(operation.path),
        to: operation.to.length ? pathText(operation.to) : t("op.top"),
      });
    case "merge":
      return t("op.merge", { paths: operation.paths.map(pathText).join(", "), into: pathText(operation.into) });
    case "delete":
      return t("op.delete", {
        path: pathText(operation.path),
        to: operation.to ? pathText(operation.to) : operation.path.length > 1 ? t("op.parent") : t("impact.nowhere"),
      });
    case "grade":
      return operation.grade
        ? t("op.grade", { path: pathText(operation.path), grade: operation.grade })
        : t("op.ungrade", { path: pathText(operation.path) });
    case "split":
      return t("op.split", {
        path: pathText(operation.path),
        parts: operation.into.map(partText).join("; "),
      });
  }
}

function partText({ name, keywords = [], documents = [] }: Part): string {
  const rules = [keywords.join(", "), documents.length > 0 && t("op.picked", { n: documents.length })];
  const text = rules.filter(Boolean).join(", ");
  return text ? `${name} (${text})` : name;
}

export const misfitText = (error: Misfit): string => t(`misfit.${error.kind}`, { subject: error.subject });
