/** Texts of grades; part of the tables in text.ts. */
export const en = {
  "grade.word": "Grade",
  "grade.none": "No grade of its own",
  "grade.rule":
    "The highest grade on the path holds. It says what may be sent to models and tools, not who may read. A lower grade must be accepted when the version is activated.",
  "grade.means": "Its texts go only to models and tools that may be sent grade {grade}.",
  "grade.exposed":
    "These branches can be read without a key, and have a grade above {lowest}: {branches}. A grade keeps nobody from reading.",
};

export const ko: Record<keyof typeof en, string> = {
  "grade.word": "등급",
  "grade.none": "따로 정하지 않음",
  "grade.rule":
    "상위 분류까지 가장 높은 등급을 따릅니다. 모델과 도구에 무엇을 보낼 수 있는지를 정하며, 누가 읽는지는 정하지 않습니다. 등급을 낮추면 버전을 적용할 때 승인해야 합니다.",
  "grade.means": "{grade} 등급을 보낼 수 있는 모델과 도구에만 본문을 보냅니다.",
  "grade.exposed":
    "다음 분류는 키 없이 읽을 수 있는데 등급이 {lowest}보다 높습니다: {branches}. 등급은 읽는 것을 막지 않습니다.",
};
