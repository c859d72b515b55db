/** Texts of the dialog that splits a category; part of the tables in text.ts. */
export const en = {
  "split.rule":
    "New categories below “{path}”. A document goes to the part for which you pick it; otherwise to the part with the most of its keywords in the text, when the document has more than half of them. All others stay in “{path}”.",
  "split.part": "Part {n}",
  "split.keywords": "Keywords, separated by commas",
  "split.keywordsExample": "contract, party, clause",
  "split.add": "Another part",
  "split.remove": "Remove part {n}",
  "split.removed": "The part is removed.",
  "split.noPart": "Give at least one part a name.",
  "split.manyKeywords": "A part has at most 100 keywords of at most 100 characters each.",
  "split.pick": "Pick single documents",
  "split.words": "Words of the document",
  "split.find": "Search",
  "split.found": "{n} {n|document|documents} found in this category.",
  "split.none": "No document directly in this category has these words. Try others.",
  "split.goesTo": "Where “{title}” goes",
  "split.byWords": "By its keywords",
  "split.unpick": "Do not pick “{title}” any more",
};

export const ko: Record<keyof typeof en, string> = {
  "split.rule":
    "‘{path}’ 아래에 새 분류를 만듭니다. 문서는 직접 지정한 분류로 갑니다. 지정하지 않은 문서는 키워드가 가장 많이 나오는 분류로 가는데, 그 분류 키워드의 절반을 넘게 포함해야 합니다. 나머지는 ‘{path}’에 남습니다.",
  "split.part": "새 분류 {n}",
  "split.keywords": "키워드 (쉼표로 구분)",
  "split.keywordsExample": "계약, 당사자, 조항",
  "split.add": "새 분류 추가",
  "split.remove": "새 분류 {n} 빼기",
  "split.removed": "새 분류를 뺐습니다.",
  "split.noPart": "새 분류의 이름을 하나 이상 입력하세요.",
  "split.manyKeywords": "키워드는 분류마다 100개까지, 하나에 100자까지입니다.",
  "split.pick": "문서를 직접 지정",
  "split.words": "문서에 있는 단어",
  "split.find": "검색",
  "split.found": "이 분류에서 문서 {n}건을 찾았습니다.",
  "split.none": "이 분류에 바로 속한 문서 중 이 단어가 있는 것이 없습니다. 다른 단어로 찾아 보세요.",
  "split.goesTo": "‘{title}’이(가) 갈 곳",
  "split.byWords": "키워드에 따라",
  "split.unpick": "‘{title}’ 지정 취소",
};
