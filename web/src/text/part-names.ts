/** Names of the parts of search and answers that may fail and be left out (`degraded`). */
import { language } from "./language";

const NAMES: Record<string, [en: string, ko: string]> = {
  lexical: ["search by words", "단어 검색"],
  vector: ["search by meaning", "벡터 검색"],
  imagined: ["imagined questions", "예상 질문"],
  rerank: ["reranking", "순위 조정"],
  references: ["articles that the question names", "질문이 가리키는 조항 찾기"],
  editions: ["editions of regulations", "규정의 판 확인"],
  citations: ["cited articles", "인용된 조문 찾기"],
  mentions: ["mentioned passages", "언급된 구절 찾기"],
  context: ["headers of tables and lists", "표와 목록의 머리말 읽기"],
  confidence: ["confidence", "신뢰도 계산"],
  official_words: ["official words", "공식 용어 찾기"],
  cases: ["case memory", "사례 기억"],
  llm: ["language model", "언어 모델"],
  debate: ["debate", "토론"],
  intent: ["kind of question", "질문의 종류"],
  rewrite: ["reading the follow-up", "이어진 질문 풀기"],
  retrieve: ["search", "검색"],
  plan: ["planning", "계획"],
  tools_debate: ["tools and debate", "도구와 토론"],
  read: ["reading the passages", "구절 읽기"],
  compose: ["choosing the sentences", "문장 고르기"],
  cite: ["checking the answer", "답 대조"],
  respond: ["finishing the answer", "답 마무리"],
};

/** The names, as a list in a sentence; a part without a name here is named as the service does. */
export function partNames(parts: readonly string[]): string {
  return parts.map((part) => NAMES[part]?.[language.value === "ko" ? 1 : 0] ?? part).join(", ");
}

/** A step of the pipeline: in English its identifier, as in traces and logs. */
export const stepName = (step: string): string => (language.value === "ko" ? (NAMES[step]?.[1] ?? step) : step);
