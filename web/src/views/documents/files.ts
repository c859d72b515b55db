/** Files that were dropped or chosen: folders are walked, and kinds that are not read are named, not sent. */
import { isRead, suffixOf } from "../../parts/file-kinds";

export interface FoundFile {
  file: File;
  /** Its path in the dropped folder; its name if it was dropped alone. */
  path: string;
}

export interface Found {
  files: FoundFile[];
  /** Suffix ("" for none) -> the paths with it. */
  skipped: Map<string, string[]>;
  /** What the browser could not read, with its reason. */
  unreadable: { path: string; reason: string }[];
}

const nothingFound = (): Found => ({ files: [], skipped: new Map(), unreadable: [] });

/** The files of a drop. Call it in the event: the browser forgets the items afterwards. */
export async function dropped(items: DataTransferItemList): Promise<Found> {
  const entries = [...items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  const found = nothingFound();
  for (const entry of entries) await walk(entry, found, entry.isFile);
  return found;
}

/** The files of an input; those of a chosen folder have their path in it. */
export function chosen(files: Iterable<File>): Found {
  const found = nothingFound();
  for (const file of files) {
    const path = file.webkitRelativePath || file.name;
    if (path.split("/").some((part) => part.startsWith(".")) && path.includes("/")) continue;
    add(found, file, path, !path.includes("/"));
  }
  return found;
}

async function walk(entry: FileSystemEntry, found: Found, alone: boolean): Promise<void> {
  const path = entry.fullPath.replace(/^\//, "");
  if (entry.name.startsWith(".") && !alone) return; // as the command line does
  try {
    if (isFile(entry)) add(found, await fileOf(entry), path, alone);
    else for (const child of await childrenOf(entry as FileSystemDirectoryEntry)) await walk(child, found, false);
  } catch (error) {
    found.unreadable.push({ path, reason: error instanceof Error ? error.message : String(error) });
  }
}

const isFile = (entry: FileSystemEntry): entry is FileSystemFileEntry => entry.isFile;

const fileOf = (entry: FileSystemFileEntry) => new Promise<File>((resolve, reject) => entry.file(resolve, reject));

/** All entries of a folder; the browser gives them in portions, and an empty one at the end. */
async function childrenOf(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const portion = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (portion.length === 0) return all.sort((a, b) => a.name.localeCompare(b.name));
    all.push(...portion);
  }
}

/** A file that was named itself is always tried: the service says what is wrong with it. */
function add(found: Found, file: File, path: string, alone: boolean): void {
  if (alone || isRead(file.name)) {
    found.files.push({ file, path });
    return;
  }
  const suffix = suffixOf(file.name);
  found.skipped.set(suffix, [...(found.skipped.get(suffix) ?? []), path]);
}
