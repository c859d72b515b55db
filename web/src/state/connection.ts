/** Whether the service responds. It is asked only after a request has failed, until it is ready again. */
import { signal } from "@preact/signals";
import { onUnreachable } from "../api/client";

export type Connection = "ok" | "down" | "offline";

export const connection = signal<Connection>("ok");
/** Counts recoveries; resources that failed load again when it changes. */
export const recoveries = signal(0);

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 5000;
let timer: ReturnType<typeof setTimeout> | undefined;
let wait = FIRST_WAIT_MS;

export function startConnection(): void {
  onUnreachable(lost);
  window.addEventListener("online", tryNow);
  window.addEventListener("offline", lost);
}

function lost(): void {
  connection.value = navigator.onLine ? "down" : "offline";
  if (timer === undefined) later();
}

function later(): void {
  timer = setTimeout(() => void check(), wait);
  wait = Math.min(wait * 1.5, LONGEST_WAIT_MS);
}

export function tryNow(): void {
  if (connection.value === "ok") return;
  clearTimeout(timer);
  timer = undefined;
  wait = FIRST_WAIT_MS;
  void check();
}

async function check(): Promise<void> {
  timer = undefined;
  if (await ready()) {
    wait = FIRST_WAIT_MS;
    connection.value = "ok";
    recoveries.value += 1;
    return;
  }
  connection.value = navigator.onLine ? "down" : "offline";
  later();
}

async function ready(): Promise<boolean> {
  try {
    return (await fetch("/readyz", { cache: "no-store", signal: AbortSignal.timeout(LONGEST_WAIT_MS) })).ok;
  } catch {
    return false; // that is what is being asked
  }
}
