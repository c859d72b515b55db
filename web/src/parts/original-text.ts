import { texts } from "../text/texts";

const en = {
  "original.previous": "Previous page",
  "original.next": "Next page",
  "original.page": "Page {n} of {pages}",
  "original.narrower": "Smaller",
  "original.wider": "Larger",
  "original.unmarked":
    "The text is from this page, but its exact place on it is not known. Read it with “Show the text”.",
  "original.also": "The text is also marked on page {pages}.",
  "original.failed": "This page cannot be shown. Read the text with “Show the text”.",
  "original.alt": "Page {n} of the original as a picture; “Show the text” has its text",
};

const ko: Record<keyof typeof en, string> = {
  "original.previous": "이전 쪽",
  "original.next": "다음 쪽",
  "original.page": "{pages}쪽 가운데 {n}쪽",
  "original.narrower": "작게",
  "original.wider": "크게",
  "original.unmarked": "이 쪽에 있는 글이지만 정확한 위치를 찾지 못했습니다. ‘글로 보기’에서 읽으세요.",
  "original.also": "{pages}쪽에도 표시되어 있습니다.",
  "original.failed": "이 쪽을 보여 드릴 수 없습니다. ‘글로 보기’에서 읽으세요.",
  "original.alt": "원본 {n}쪽의 그림입니다. 글은 ‘글로 보기’에 있습니다",
};

export const tables = { en, ko };
export const t = texts(en, ko);
