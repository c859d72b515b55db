/** One document: its text with what is marked, its passages, and who can see it. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { pathText } from "../../text/path-text";
import { announce } from "../../state/announce";
import { useResource } from "../../state/resource";
import { href, navigate } from "../../state/router";
import { mayAs, mayOpen } from "../../state/session";
import { api } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import { branchAt } from "../../parts/branches";
import { Button } from "../../parts/Button";
import { CopyButton } from "../../parts/CopyButton";
import { Dialog } from "../../parts/Dialog";
import { kindName } from "../../parts/file-kinds";
import { Facts } from "../../parts/Facts";
import { Page } from "../../parts/Page";
import { safeLink } from "../../parts/parse-markdown";
import { Segmented } from "../../parts/Segmented";
import { Failure, Loading } from "../../parts/States";
import { formatDateTime } from "../../text/texts";
import { metadataName, metadataValue } from "./metadata";
import { PassagesPart } from "./PassagesPart";
import { address, PARTS, type Document } from "./state";
import { t } from "./text";
import { TextPart } from "./TextPart";
import { written } from "./uploads";
import { WhoPart } from "./WhoPart";
import styles from "./DocumentPage.module.css";

export function DocumentPage({ id }: { id: string }) {
  const document = useResource(
    (signal) => api.get("/documents/{document_id}", { path: { document_id: id }, signal }),
    [id],
  );
  const { show } = address.read();
  if (document.problem) {
    return (
      <Page title={t("documents.document")}>
        <Failure problem={document.problem} onRetry={document.reload} />
      </Page>
    );
  }
  if (!document.data) {
    return (
      <Page title={t("documents.document")}>
        <Loading lines={8} />
      </Page>
    );
  }
  const shown = document.data;
  return (
    <Page
      title={<span lang={shown.language}>{shown.title || t("documents.untitled")}</span>}
      actions={<Actions document={shown} />}
    >
      <Overview document={shown} />
      <Segmented
        label={t("document.show")}
        value={show}
        choices={PARTS.map((part) => ({ value: part, text: t(`document.${part}`) }))}
        onChange={(part) => address.set({ show: part })}
      />
      {show === "text" && <TextPart document={shown} />}
      {show === "passages" && <PassagesPart document={shown} />}
      {show === "who" && <WhoPart id={id} />}
    </Page>
  );
}

function Overview({ document }: { document: Document }) {
  const tree = useResource(
    (signal) => api.get("/taxonomy/{version}/tree", { path: { version: "active" }, signal }),
    [],
  );
  const grade = branchAt(tree.data?.tree ?? [], document.taxonomy_path)?.grade;
  const original = safeLink(document.source_url);
  const metadata = Object.entries(document.metadata).filter(([, value]) => value !== null && value !== "");
  const source = original ? (
    <a href={original} target="_blank" rel="noopener noreferrer nofollow">
      {document.source_url}
    </a>
  ) : (
    readable(document.source_url)
  );
  const facts: [string, ComponentChildren][] = [
    [t("documents.category"), pathText(document.taxonomy_path) || t("documents.noCategory")],
    ...(grade ? [[t("document.grade"), grade] satisfies [string, string]] : []),
    [t("documents.kind"), kindName(document.content_type)],
    [t("document.length"), t("document.lengthIs", { characters: document.characters, passages: document.chunks })],
    [t("documents.indexed"), formatDateTime(document.processed_at)],
    ...metadata.map(([name, value]): [string, string] => [metadataName(name), metadataValue(name, value)]),
    [t("document.source"), source],
  ];
  return <Facts facts={facts} wideLast />;
}

function Actions({ document }: { document: Document }) {
  const [asking, setAsking] = useState(false);
  return (
    <>
      {mayOpen("documents") && (
        <a class={styles.action} href={href("documents")}>
          {t("document.all")}
        </a>
      )}
      {mayOpen("search") && (
        <a class={styles.action} href={href("search", { query: { why: document.document_id } })}>
          {t("document.why")}
        </a>
      )}
      <CopyButton small={false} text={() => document.document_id} label={t("document.copyId")} />
      {mayAs("editor") && (
        <Button kind="bare" danger icon="trash" aria-haspopup="dialog" onClick={() => setAsking(true)}>
          {t("document.delete")}
        </Button>
      )}
      {asking && <DeleteDialog document={document} onClose={() => setAsking(false)} />}
    </>
  );
}

function DeleteDialog({ document, onClose }: { document: Document; onClose: () => void }) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [running, setRunning] = useState(false);
  const remove = async () => {
    setRunning(true);
    try {
      await api.delete("/documents/{document_id}", { path: { document_id: document.document_id } });
      written.value += 1;
      announce(t("document.deleted", { title: document.title }));
      navigate(href("documents"), { replace: true });
    } catch (error) {
      setProblem(asProblem(error));
      setRunning(false);
    }
  };
  return (
    <Dialog
      title={t("document.deleteTitle")}
      open
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t("document.keep")}</Button>
          <Button kind="main" danger disabled={running} onClick={() => void remove()}>
            {t("document.deleteNow")}
          </Button>
        </>
      }
    >
      <p>{t("document.deleteHelp", { title: document.title, n: document.chunks })}</p>
      {problem && <Failure problem={problem} />}
    </Dialog>
  );
}

/** File names in a source address are percent-encoded. */
function readable(source: string): string {
  try {
    return decodeURIComponent(source);
  } catch {
    return source;
  }
}
