import { texts } from "../../text/texts";

const en = {
  "category.title": "Category of the document",
  "category.alternatives": "Other candidates",
  "category.search": "Search categories",
  "category.none": "No category has this name.",
  "category.cancel": "Cancel",
  "category.choose": "Choose a category",
  "category.move": "Move to {name}",

  "reach.none": "No key or agent gains or loses sight of a document.",
  "reach.public": "Everybody, without a key",
  "reach.key": "Key {name}",
  "reach.agent": "Agent {name}",
  "reach.gains": "gains {n}",
  "reach.loses": "loses {n}",

  "accept.widening": "I accept that more documents than now become visible to: {names}.",
  "accept.unknown": "I accept that the documents become visible to all who may read their new category.",
  "accept.names": "{n} {n|key or agent|keys and agents}",
  "accept.lowering": "I accept that documents in these categories get a lower grade: {branches}.",
  "accept.missing": "Tick this first: someone gains access, or grades become lower.",
};

const ko: Record<keyof typeof en, string> = {
  "category.title": "문서의 분류",
  "category.alternatives": "다른 후보",
  "category.search": "분류 검색",
  "category.none": "이 이름의 분류가 없습니다.",
  "category.cancel": "취소",
  "category.choose": "분류를 고르세요",
  "category.move": "{name}(으)로 옮기기",

  "reach.none": "볼 수 있는 문서가 달라지는 키나 에이전트가 없습니다.",
  "reach.public": "누구나(키 없이)",
  "reach.key": "키 {name}",
  "reach.agent": "에이전트 {name}",
  "reach.gains": "{n}건 늘어남",
  "reach.loses": "{n}건 줄어듦",

  "accept.widening": "지금보다 많은 문서가 다음에 보이는 것을 승인합니다: {names}.",
  "accept.unknown": "새 분류를 읽을 수 있는 모두에게 이 문서가 보이는 것을 승인합니다.",
  "accept.names": "키와 에이전트 {n}개",
  "accept.lowering": "다음 분류에 있는 문서의 등급이 낮아지는 것을 승인합니다: {branches}.",
  "accept.missing": "먼저 선택하세요: 접근이 늘어나는 대상이나 낮아지는 등급이 있습니다.",
};

export const tables = { en, ko };
export const t = texts(en, ko);
