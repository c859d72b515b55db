/**
 * Reasons and notes of the service in Korean, by their code. In English the service has written them.
 *
 * A Python test compares the codes with those that the service knows (tests/unit/core/test_statements.py).
 */
import { filled } from "./fill";
import { language, languageOf } from "./language";
import type { Language } from "./tags";

export interface Statement {
  code: string;
  text: string;
  values: Record<string, string>;
}

const ko: Record<string, string> = {
  evidence_words:
    "가장 좋은 구절에 질문한 내용의 {coverage}가 들어 있고(단어의 무게로 계산), 얻을 수 있는 본문 점수의 {lexical}에 이릅니다.",
  evidence_words_without_number:
    "가장 좋은 구절에 질문한 내용의 {coverage}가 들어 있고(단어의 무게로 계산), 얻을 수 있는 본문 점수의 {lexical}에 이릅니다. 질문에 있는 숫자는 그 구절에 없습니다.",
  evidence_regulations_whole:
    "가장 잘 맞는 규정이 만점 본문 점수의 {score}에 이르고, 용어집이 질문의 단어 가운데 {explained}를 상황으로 설명하며, 첫 조문이 질문 전체를 다룹니다.",
  evidence_regulations_part:
    "가장 잘 맞는 규정이 만점 본문 점수의 {score}에 이르고, 용어집이 질문의 단어 가운데 {explained}를 상황으로 설명하며, 첫 조문은 질문의 일부만 다룹니다.",
  names_provision: "질문이 조항을 직접 가리킵니다: {provisions}.",
  not_judged: "구절이 질문에 얼마나 답하는지 제시간에 판단하지 못했습니다. 출처를 확인하세요.",
  sentences_unsupported: "문장 {sentences}개 가운데 {unsupported}개는 뒷받침하는 구절이 없습니다.",

  no_passage: "질문의 단어가 들어 있는 구절이 없습니다.",
  nothing_visible: "볼 수 있는 문서가 없습니다. 문서를 추가하거나 다른 분류에서 질문하세요.",
  searched: "볼 수 있는 구절 {passages}개를 찾아보았습니다.",
  unknown_words: "다음 단어는 어디에도 없습니다: {words}. 다른 말로 묻거나, 그 내용이 있는 문서를 추가하세요.",
  words_apart: "질문의 단어들은 있지만 함께 나오지 않습니다. 더 구체적으로 묻거나, 그 내용이 있는 문서를 추가하세요.",
  nearest_headings: "가장 가까운 제목: {headings}.",
  greeting: "인사말이라 문서에서 찾을 내용이 없습니다.",
  model_no_answer: "언어 모델이 구절에서 답을 찾지 못했습니다.",
  debate_no_answer: "토론에서 구절의 답을 찾지 못했습니다.",
  no_provision: "{provision}은(는) 없는 조항입니다. 규정에 있는 조항: {existing}.",
  provision_deleted: "{provision}은(는) 삭제된 조항입니다{on}.",
  several_provisions: "질문에 맞는 조항이 {count}개입니다. 규정의 이름을 함께 쓰세요.",

  step_late: "‘{step}’ 단계가 제시간에 끝나지 않아 그 결과 없이 답했습니다.",
  search_late: "검색이 제한 시간보다 오래 걸렸습니다.",
  search_partial: "검색의 일부가 실패했거나 늦었습니다.",
  nothing_in_time: "제시간에 아무것도 만들지 못했습니다.",
  model_failed: "언어 모델이 쓸 수 있는 답을 주지 않았습니다. {error}",
  model_broke_off: "언어 모델의 답이 중간에 끊겨 마지막 문장을 뺐습니다.",
  model_broke_off_early: "언어 모델의 답이 첫 문장에서 끊겼습니다.",
  plan_failed: "언어 모델의 계획을 쓸 수 없어 규칙으로 계획했습니다. {reason}",
  tool_left_out: "계획에 있던 도구 {tool}을(를) 뺐습니다: {mistake}.",

  no_embedder: "임베딩 모델이 없어 단어로만 찾았습니다. ‘dtrag models list’를 참고하세요.",
  embedder_language: "임베딩 모델 {embedder}이(가) 질문의 언어({language})를 지원하지 않아 단어로만 찾았습니다.",
  index_rebuilding: "색인을 다시 만드는 중이라 완전하지 않습니다. 실행 중인 ‘dtrag reindex’가 없으면 다시 실행하세요.",
  question_shortened: "규정 검색은 질문의 처음 {characters}자만 해석했습니다.",
  strict_index_forbidden:
    "정확 검색이 단어로 고른 구절 {passages}개만 읽어 빠진 것이 있을 수 있습니다. 이 데이터베이스 사용자는 색인을 만들 수 없으니 dtrag.chunks의 소유자가 다음을 실행해야 합니다: {statement}",
  strict_index_failed:
    "정확 검색이 단어로 고른 구절 {passages}개만 읽어 빠진 것이 있을 수 있습니다. 색인을 만들지 못했으며 10분 뒤에 다시 시도합니다. 까닭은 로그에 있습니다.",
  strict_index_pending:
    "정확 검색이 단어로 고른 구절 {passages}개만 읽어 빠진 것이 있을 수 있습니다. 색인을 만드는 중이니 몇 분 뒤에 다시 검색하세요.",
  earlier_tree: "분류는 판 {version}의 것이고, 문서는 지금의 판 {active}에 따른 것입니다.",
  categories_gone: "다음 분류는 지금의 분류 체계에 없습니다: {categories}.",

  nothing_supported: "언어 모델의 답을 뒷받침하는 구절이 없어 보여 주지 않습니다.",
  sentence_marked: "뒷받침하는 구절이 없어 {mark} 표시를 했습니다: “{sentence}” ({reason})",
  sentence_left_out: "뒷받침하는 구절이 없어 뺐습니다: “{sentence}” ({reason})",
  citations_removed: "없는 구절을 가리키는 인용을 지웠습니다: {numbers}.",
  source_list_removed: "언어 모델이 쓴 출처 목록을 지웠습니다.",

  model_not_allowed: "언어 모델을 부르지 않았습니다. {error}",
  budget_spent: "에이전트의 오늘 예산을 다 써서 언어 모델을 부르지 않고 문서를 인용했습니다.",
  in_review: "확신이 낮아 이 답을 검토 목록에 올렸습니다.",
  agent_review: "확신이 에이전트의 기준보다 낮아 이 답을 검토 목록에 올렸습니다.",
  review_queue_full: "확신이 에이전트의 기준보다 낮지만 검토 목록이 가득 찼습니다. 출처를 확인하세요.",

  debate_late: "토론이 제시간에 끝나지 않아 토론 없이 답했습니다.",
  debate_failed: "토론이 실패하여 토론 없이 답했습니다.",
  debate_short: "토론이 한 번 만에 끝나 토론 없이 답했습니다.",
  debate_not_allowed: "토론을 하지 않고 답했습니다. {reason}",
  debate_rounds_limited: "토론은 {most}번까지 합니다. 요청은 {requested}번이었습니다.",
  debate_calls_limited: "모델을 {calls}번 부를 수 있어 토론을 {rounds}번만 했습니다.",
  debate_no_time: "시간이 없어 다음을 하지 못했습니다: {phase}.",
  debate_text_cut: "너무 길어 잘랐습니다: {text}.",
  debate_question_trimmed: "토론에서는 질문의 처음 {characters}자만 썼습니다.",
  debate_passages_limited: "에이전트에게 구절 {passages}개 가운데 처음 {shown}개를 보여 주었습니다.",
  debate_without_passages: "구절이 없어 에이전트가 인용할 수 없었습니다.",
  agents_no_answer: "에이전트들이 구절에서 답을 찾지 못했습니다.",
  agents_agree: "두 에이전트의 답이 같았습니다.",
  agent_failed_first: "{round}번째 토론에서 {agent} 에이전트가 실패하여 다른 답만 썼습니다. {error}",
  agent_failed_later: "{round}번째 토론에서 {agent} 에이전트가 실패하여 앞의 답을 썼습니다. {error}",
  synthesis_failed: "두 답을 모으는 데 실패하여 그대로 이어 붙였습니다. {error}",
  synthesis_no_answer: "두 답을 모았지만 구절에서 답을 찾지 못했습니다.",
};

/** A statement in the language of the page, with the language that it is in. */
export function sayStatement({ code, text, values }: Statement): { text: string; lang: Language } {
  const korean = language.value === "ko" ? ko[code] : undefined;
  if (korean === undefined) return { text, lang: languageOf(text) };
  return { text: filled(korean, values, "ko"), lang: "ko" };
}
