import { texts } from "../../text/texts";

const en = {
  "ask.title": "Ask your documents",
  "ask.lead": "The answer quotes them, and every sentence leads to its source.",
  "ask.question": "Question",
  "ask.placeholder": "Ask a question",
  "ask.followUp": "Ask a follow-up question",
  "ask.send": "Ask",
  "ask.stop": "Stop",
  "ask.hint": "Enter asks, Shift+Enter begins a new line.",
  "ask.focus": "Write a question",
  "ask.tooLong": "A question has at most {n} characters.",
  "ask.new": "New question",
  "ask.stopped": "You stopped this answer.",
  "ask.asking": "Searching the documents",
  "ask.writing": "Writing the answer",
  "ask.retry": "Ask again",
  "ask.copyLink": "Copy link",
  "ask.copyAnswer": "Copy answer",
  "ask.answered": "The answer is there, with {n} {n|source|sources}.",
  "ask.declined": "The documents do not answer this question.",
  "ask.source": "Source {n}: {label}",
  "ask.noSources": "The sources of earlier answers are not stored. Ask again to see them.",
  "ask.withheld": "This answer rests on documents that you may no longer see.",
};

const ko: Record<keyof typeof en, string> = {
  "ask.title": "문서에 물어보세요",
  "ask.lead": "답은 문서를 인용하고, 문장마다 출처로 이어집니다.",
  "ask.question": "질문",
  "ask.placeholder": "질문을 쓰세요",
  "ask.followUp": "이어서 질문하기",
  "ask.send": "질문하기",
  "ask.stop": "중지",
  "ask.hint": "Enter로 질문하고, Shift+Enter로 줄을 바꿉니다.",
  "ask.focus": "질문 쓰기",
  "ask.tooLong": "질문은 {n}자까지 쓸 수 있습니다.",
  "ask.new": "새 질문",
  "ask.stopped": "답변을 중지했습니다.",
  "ask.asking": "문서를 찾는 중",
  "ask.writing": "답을 쓰는 중",
  "ask.retry": "다시 질문",
  "ask.copyLink": "링크 복사",
  "ask.copyAnswer": "답 복사",
  "ask.answered": "답이 나왔습니다. 출처 {n}개.",
  "ask.declined": "문서에 이 질문의 답이 없습니다.",
  "ask.source": "출처 {n}: {label}",
  "ask.noSources": "지난 답의 출처는 저장하지 않습니다. 다시 질문하면 볼 수 있습니다.",
  "ask.withheld": "이제 볼 수 없는 문서에 근거한 답입니다.",
};

export const tables = { en, ko };
export const t = texts(en, ko);
export type AskKey = keyof typeof en;
