import { texts } from "../../text/texts";

const en = {
  "jobs.title": "Background jobs",
  "jobs.active": "{n} {n|has|have} not ended",
  "jobs.ingest": "Upload",
  "jobs.vectors": "Vectors of passages",
  "jobs.imagined": "Imagined questions",
  "jobs.backup": "Backup",
  "jobs.running": "Running",
  "jobs.done": "Done",
  "jobs.cancelled": "Cancelled",
  "jobs.cancel": "Cancel {name}",
  "jobs.waiting": "Waiting",
  "jobs.failed": "Failed",
  "jobs.failedCount": "{n} failed",
  "jobs.unreachable": "The service could not be reached. Try again when it is back.",
  "jobs.retry": "Try {name} again",
};

const ko: Record<keyof typeof en, string> = {
  "jobs.title": "백그라운드 작업",
  "jobs.active": "진행 중 {n}개",
  "jobs.ingest": "업로드",
  "jobs.vectors": "구절 벡터",
  "jobs.imagined": "예상 질문",
  "jobs.backup": "백업",
  "jobs.running": "실행 중",
  "jobs.done": "완료",
  "jobs.cancelled": "취소됨",
  "jobs.cancel": "{name} 취소",
  "jobs.waiting": "대기",
  "jobs.failed": "실패",
  "jobs.failedCount": "실패 {n}개",
  "jobs.unreachable": "서비스에 연결할 수 없습니다. 다시 연결되면 시도하세요.",
  "jobs.retry": "{name} 다시 시도",
};

export const tables = { en, ko };
export const t = texts(en, ko);
