import { texts } from "../../../text/texts";

const en = {
  "guide.title": "Set up in four steps",
  "guide.lead": "Then others can ask, too. The service checks each step; the list goes away when all are done.",
  "guide.done": "Done",
  "guide.away": "Hide this list",

  "step.documents": "Add documents",
  "step.categories": "Put them into categories",
  "step.question": "Ask a question",
  "step.access": "Let others ask",

  "documents.help": "Choose files or a folder, and a category for them.",
  "documents.add": "Add documents",
  "documents.again": "Add them again",
  "documents.reading": "{n} {n|upload is|uploads are} being read.",
  "documents.failed": "{n} {n|upload|uploads} failed.",
  "documents.jobs": "See why",
  "documents.noText": "What was added has no text that can be searched.",
  "documents.wordsOnly": "Search finds only the words of a question.",

  "categories.help": "The category decides who may see a document. Give one when you add it, or make the tree first.",
  "categories.none":
    "{n} {n|document has|documents have} no category. The same {n|file|files} with one such as HR/Leave {n|replaces it|replace them}.",
  "categories.waiting": "{n} {n|document waits|documents wait} for a person to choose the category.",
  "categories.tree": "Make the tree",
  "categories.review": "Choose it",

  "question.later": "As soon as there are documents.",
  "question.help": "Such as this one; it is done when the answer names its source.",
  "question.declined": "The documents did not answer what was asked so far. Ask for something that they say:",

  "access.first": "First create a key for yourself. From then on everybody needs one.",
  "access.second": "Now create a key for the next person: a reader, with the categories that they may see.",
  "access.keys": "Create a key",
  "access.public": "Or start the service so that everybody reads a category without a key:",
  "access.thisMachine": "This address works on this machine only. For others, start the service with:",
};

const ko: Record<keyof typeof en, string> = {
  "guide.title": "네 단계로 준비하기",
  "guide.lead": "마치면 다른 사람도 질문할 수 있습니다. 단계마다 서비스가 확인하며, 모두 끝나면 이 목록은 사라집니다.",
  "guide.done": "완료",
  "guide.away": "이 목록 숨기기",

  "step.documents": "문서 추가",
  "step.categories": "문서에 분류 정하기",
  "step.question": "질문해 보기",
  "step.access": "다른 사람도 질문하게 하기",

  "documents.help": "파일이나 폴더를 고르고 분류를 적으세요.",
  "documents.add": "문서 추가",
  "documents.again": "다시 추가",
  "documents.reading": "파일을 읽는 중입니다. 남은 작업 {n}건.",
  "documents.failed": "추가하지 못한 작업이 {n}건 있습니다.",
  "documents.jobs": "이유 보기",
  "documents.noText": "추가한 문서에 찾을 수 있는 글이 없습니다.",
  "documents.wordsOnly": "질문에 나온 단어로만 찾습니다.",

  "categories.help":
    "누가 어떤 문서를 볼지는 분류로 정합니다. 문서를 추가할 때 분류를 적거나, 분류 체계를 먼저 만드세요.",
  "categories.none": "문서 {n}개에 분류가 없습니다. 같은 파일을 인사/휴가 같은 분류와 함께 추가하면 바뀝니다.",
  "categories.waiting": "문서 {n}개가 분류를 정해 주기를 기다립니다.",
  "categories.tree": "분류 체계 만들기",
  "categories.review": "분류 정하기",

  "question.later": "문서가 있어야 질문할 수 있습니다.",
  "question.help": "예를 들어 아래 질문을 해 보세요. 출처가 있는 답이 나오면 완료입니다.",
  "question.declined": "지금까지의 질문에는 문서에 답이 없었습니다. 문서에 있는 내용을 물어보세요.",

  "access.first": "먼저 내 키를 만드세요. 그때부터는 누구나 키가 있어야 합니다.",
  "access.second": "이제 다음 사람의 키를 만드세요. 역할은 열람으로 하고, 볼 수 있는 분류를 고릅니다.",
  "access.keys": "키 만들기",
  "access.public": "또는 누구나 키 없이 한 분류를 읽도록 서비스를 이렇게 시작하세요.",
  "access.thisMachine": "이 주소는 이 컴퓨터에서만 열립니다. 다른 컴퓨터에서도 쓰려면 서비스를 이렇게 시작하세요.",
};

export const tables = { en, ko };
export const t = texts(en, ko);
