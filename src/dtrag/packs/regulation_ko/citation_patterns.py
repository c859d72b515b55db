"""Patterns of citations in the text of regulations: articles, their parts, names of rules and laws, appendices.

Patterns that a reader matches at a position do not consume white space before them, except those for what follows an
article (항, 호, titles). `SPACE` is white space within a line; it is possessive, so that runs of blanks are read once.
"""

from __future__ import annotations

import re

DOTS = "·ㆍ‧•・․･⸱∙⋅"
SPACE = r"[ \t\u00a0\u3000]*+"
MARK = re.compile(
    r"[<〈(（\[【][^<>〈〉()（）\[\]【】\n]{0,120}?(?:개\s*정|신\s*설|삭\s*제|이\s*동|전문|본조|제목|제\s*정)[^<>〈〉()（）\[\]【】\n]{0,200}[>〉)）\]】]"
    r"|「[^「」\n]{0,40}?(?:개\s*정|신\s*설|삭\s*제|이\s*동|본조)[^「」\n]{0,40}?\d{4}[^「」\n]{0,200}」"
)
ARTICLE = re.compile(
    rf"제{SPACE}(\d{{1,4}}){SPACE}조(?!건|직|치)"
    rf"(?:{SPACE}의{SPACE}(\d{{1,3}})(?!{SPACE}(?:항|호|\d|[%,.]?\d|개|년|월|일|분|차|인|명|배|회|학기|과목|시간)))?"
)
FURTHER_ARTICLE = re.compile(r"(\d{1,3})조(?:의\s?(\d{1,2})(?!\d))?(?=[의에을를은와과,)\s]|제?\s?\d{1,2}\s?항|$)")
"""22조 in a list of articles (제18조, 22조)."""
BARE_ARTICLE = re.compile(
    r"(?<![\d.,제가-힣~∼-])(\d{1,3})조(?:의(\d{1,2}))?(?=에\s?(?:규정|의한|의하여|의거|따른|따라|정한|명시)|의\s?규정|\s?제?\s?\d+\s?항)"
)
TITLE = re.compile(rf"{SPACE}[(（](?!이하)[^()（）\n]{{1,40}}[)）]")
PARAGRAPH = re.compile(
    rf"{SPACE}(?:의{SPACE})?(?:제?{SPACE}(\d{{1,3}}){SPACE}|제{SPACE}([①-⑳]){SPACE})항(?:{SPACE}의{SPACE}\d{{1,2}}(?!\d|{SPACE}호))?"
)
ITEM = re.compile(
    rf"{SPACE}(?:의{SPACE})?(?:제?{SPACE}(\d{{1,3}})|제{SPACE}([①-⑳])){SPACE}호(?:{SPACE}의{SPACE}\d{{1,2}}(?!\d))?(?!\s*(?:서식|양식))"
)
SUBITEM = re.compile(rf"{SPACE}([가-하]){SPACE}목(?![가-힣](?<!의|에|을|은|과|및))")
OWN_PARAGRAPH = re.compile(rf"제{SPACE}(\d{{1,3}}){SPACE}항")
OWN_ITEM = re.compile(
    rf"제{SPACE}(?:\d{{1,3}}|[①-⑳]){SPACE}호(?!{SPACE}(?:의?{SPACE}\d*{SPACE})?(?:서식|양식|의결|안건))"
)
TO = re.compile(rf"{SPACE}(?:내지|부터|에서|[~∼～〜\-－–])\s?{SPACE}")
UNTIL = re.compile(rf"{SPACE}까지")
AND = re.compile(rf"{SPACE}(?:[,，、/{DOTS}]|및|와|과|또는|이나|혹은){SPACE}(?:및{SPACE})?")
JOINED_PARTS = re.compile(rf"(?:{TO.pattern}|{AND.pattern}|{SPACE}(?=제{SPACE}\d{{1,3}}{SPACE}[항호]))")
"""What joins 항 and 호 of one article: a range, a list, or nothing (제1항 제2항)."""
SAME_ARTICLE = re.compile(r"(?<![가-힣])(?:같은\s?조|동\s?조(?!\s*[직정사합]))")
OWN_ARTICLE = re.compile(
    r"(?<![가-힣])(?:본\s?조|(?<!이하\s)이\s조)(?=[의에를은와,\s]|제)(?!\s?(?:신설|개정|삭제|전문))"
)
PREVIOUS_ARTICLE = re.compile(r"(?<![가-힣])전\s?조(?=[의에를은와과,\s]|제\d)")
PREVIOUS_PARAGRAPH = re.compile(r"(?<![가-힣])(?:전\s?항|전\s?[2-9]항)(?=[의에을은과,\s.]|제\d)")
SAME_PARAGRAPH = re.compile(r"(?<![가-힣])(?:같은\s?항|동\s?항)(?=[의에을은과,\s.]|제\s*\d)")
SELF = re.compile(r"(?<![가-힣])(?:이|본|현)\s?(?:규정|세칙|시행세칙|학칙|정관|지침|내규|규칙|요령|준칙)")
SAME_RULE = re.compile(r"(?<![가-힣])(?:같은|동|위)\s?(?:규정|세칙|시행세칙|학칙|정관|지침|내규)")
SAME_LAW = re.compile(
    r"(?<![가-힣])(?:같은|동)\s?(?:법률|법|영|령)(?:\s?시행령|\s?시행규칙)?|(?<![가-힣])동\s?(?:시행령|시행규칙)"
)
APPENDIX = re.compile(
    rf"(?<![가-힣])(별{SPACE}표|별{SPACE}지|별{SPACE}첨)"
    rf"({SPACE}(?:서식{SPACE})?(?:제|#)?{SPACE}\d{{1,3}}(?:{SPACE}(?:의|[-–]){SPACE}\d{{1,3}}(?!{SPACE}(?:호|항)?\d))?{SPACE}(?:호)?(?:{SPACE}의{SPACE}\d{{1,2}})?(?:\(\d{{1,2}}-\d{{1,2}}\))?)?"
    rf"({SPACE}(?:서식|양식)(?:{SPACE}\d{{1,3}})?)?"
)
ADDENDUM = re.compile(rf"(?<![가-힣])부{SPACE}칙(?![가-힣]*규정)")
RULE_ENDING = r"규정|세칙|시행세칙|학칙|정관|지침|내규|요령|준칙|강령|요강|규약|헌장|기준"
QUOTED = re.compile(r"[「『｢“\"‘'<〈《\[]([^「」『』｢｣“”\"‘’'<>〈〉《》\[\]\n]{2,60})[」』｣”\"’'>〉》\]]")
LAW_ENDING = re.compile(r"(?:법|법률|시행령|시행규칙|[가-힣]령|규칙|조례|기본법|특별법|회계\s?규칙|예규|고시|훈령)$")
STATE_RULE = re.compile(
    r"국가|공무원|공공기관|교육부|교육과학|과학기술|정부|지방자치|행정|대통령|보건복지|고용노동|문화|국방|병무|법무|조달|기획재정|회계예규"
    r"|고시|훈령|예규"
)
BARE_LAW = re.compile(
    r"(?<![가-힣])((?:[가-힣·ㆍ]{1,40}\s){0,5}?[가-힣·ㆍ]{0,40}에\s?관한\s?(?:특별법|법률|특례법)"
    r"|[가-힣·ㆍ]{1,40}법(?:률)?|[가-힣]{2,15}령"
    r"|[가-힣·ㆍ]{2,30}에관한규칙|[가-힣·ㆍ ]{2,30}에\s관한\s?(?:규칙|훈령|고시))"
    r"(\s?시행령|\s?시행규칙)?(?![가-힣]*(?:인|적)|(?!상의|상\s)[가-힣]*상)"
)
NOT_LAW = re.compile(
    r"^(?:공사|공·사|공ㆍ사)법$|^(?:방|문|용|기|불|위|적|입|사|합|편|화|수|어|요|공|처|해|비|작|타|제|관|이|재|초|탈|준|무|진|범|마|창|필|농|육|주|검|총|태)법$|(?:방|(?<!기)기|용|관련|해당|소관|맞춤|재배|조리|사용|기록|표현|검사|운용|설계|시공|가공|치료|학습|교수|연구|측정|작성|분석|평가|제조|공식|투자|계산|표기|지급|지도|실험)법$"
    r"|(?:명|연|고|발|(?<!관한\s)훈|사|법|강|지|수|호|점|대통)령$|방법|^법령$|불법|적법|위법"
)
WORDS_BEFORE = re.compile(
    rf"(?:[가-힣A-Za-z0-9{DOTS}]*[가-힣A-Za-z0-9](?<![은는이가을를에])(?:및)?[ ]){{0,4}}[가-힣A-Za-z0-9{DOTS}()]+$"
)
LAW_PARTICLE = re.compile(r"(?:에|의|상|을|를|과|와|및|이나|또는|으로|에서|[,，ㆍ·])(?!니)")
LONG_RULE = re.compile(r"[가-힣·ㆍ]+(?:[ ][가-힣·ㆍ]+){0,4}?[ ]?[가-힣]*에[ ]?관한[ ]?(?:규정|규칙|지침|세칙)$")
KNOWN_LAWS = frozenset(
    "사립학교법 고등교육법 교육기본법 교육공무원법 국가공무원법 지방공무원법 근로기준법 병역법 민법 형법 "
    "상법 헌법 저작권법 특허법 발명진흥법 사립학교교직원연금법 사립학교교직원연금법시행령 국민건강보험법 "
    "고용보험법 산업재해보상보험법 산업안전보건법 개인정보보호법 평생교육법 초ㆍ중등교육법 초·중등교육법 "
    "초중등교육법 학술진흥법 과학기술기본법 산업교육진흥법 소득세법 법인세법 부가가치세법 국세기본법 "
    "지방세법 남녀고용평등법 장애인복지법 노동조합법 도로교통법 의료법 약사법 간호법 동물보호법 "
    "실험동물법 소방기본법 원자력안전법 원자력법 생명윤리법 정보통신망법 전자서명법 행정절차법 "
    "청소년보호법 국가보훈기본법 예비군법 향토예비군설치법 민방위기본법 국가배상법 최저임금법 국민연금법 "
    "국적법 출입국관리법 재외동포법 도서관법 기록물관리법 감사원법 국고금관리법 국가재정법 국가계약법 "
    "지방재정법".split()
)
AFTER_NAME = re.compile(
    rf"[」』｣”\"’'>〉》]?{SPACE}(?:[(（][^()（）\n]{{0,60}}[)）])?{SPACE}(?:의{SPACE}|중{SPACE}|상의{SPACE})?"
    rf"(?={SPACE}제{SPACE}\d{{1,4}}{SPACE}조|[(（]?{SPACE}제{SPACE}\d{{1,4}}{SPACE}조|[<〈\[(（【「]?{SPACE}별{SPACE}[표지첨]|부{SPACE}칙)"
)
ARTICLE_AFTER = re.compile(rf"{SPACE}제{SPACE}\d{{1,4}}{SPACE}조")
PARTICLE_AFTER = re.compile(
    rf"$|[^가-힣]|(?:에서|에게|에는|에도|에의|에|의|을|를|은|는|과|와|이|가|으로|로|및|또는|이나|나|도|만|등|중|상|내|별표|별지|부칙|제{SPACE}\d|시행(?!세칙|규칙|규정|내규|지침)|준용|따|개정|제정|안에|하|이라|이란|이며|이고|이외|외|규정에)"
)
PREFIXES = (
    "본교",
    "본대학교",
    "본대학",
    "우리대학교",
    "우리대학",
    "대학교",
    "대학",
    "법인",
    "본법인",
    "학교법인",
    "당해",
    "관련",
    "해당",
    "동",
    "현행",
    "구",
    "각",
)
PLAIN = re.compile(
    rf"(?:[「『｢]?(?<![가-힣{DOTS}])[가-힣{DOTS}]*(?:{RULE_ENDING})[」』｣]?{SPACE})?제{SPACE}\d{{1,4}}{SPACE}조(?:{SPACE}의{SPACE}\d{{1,3}})?"
    rf"|(?<![가-힣{DOTS}])[가-힣{DOTS}]+(?:{RULE_ENDING})"
)
SHORT_LAW = re.compile(rf"(?<![가-힣])(?:법|영|시행령|시행규칙)(?={SPACE}(?:제{SPACE}\d+{SPACE}조|별{SPACE}표))")
LAW_ABOUT = re.compile(r"에\s?관한\s?(?:특별법|법률|특례법|규칙|훈령|고시)$")
RULE_ENDINGS = re.compile(RULE_ENDING)
ENDS_AS_RULE = re.compile(rf"(?:{RULE_ENDING})$")
BARE_RULE = re.compile(rf"(?:[가-힣]+(?:의|한|된|는)\s)?(?:{RULE_ENDING})")
CLAUSE_END = re.compile(r"(?:경우|은|는|이|가|함은|후에|하여|하고|하며|따라|의하여|의한|의거|및|또는|등)$")
FURTHER_APPENDIX = re.compile(
    rf"{SPACE}(?:[,，{DOTS}~∼～]|및|와|과|또는|내지){SPACE}"
    rf"(제?{SPACE}\d{{1,3}}(?:{SPACE}[-–의]{SPACE}\d{{1,3}})?{SPACE}호?)({SPACE}(?:서식|양식))"
)
BLANKS = re.compile(SPACE)
AFTER_OWN_ADDENDUM = re.compile(rf"{SPACE}(?:제|에|의|\d|을|를|은|과|[<(])")
DIVISION_BEFORE = re.compile(r"제\s*\d+\s*[장절편관]\s*$|(?:훈령|고시|예규|법률|대통령령|부령|조례|공고)\s*$")
ADDENDUM_PARAGRAPH = re.compile(rf"{SPACE}(?:중{SPACE})?(?=제{SPACE}\d{{1,3}}{SPACE}항)")
ABOUT_BEFORE = re.compile(r"(?:관한|대한)\s?$")
LAW_ALONE = re.compile(
    r"(?<![가-힣])(?<!관계 )(?<!관련 )(?<![\s(]이 )(?<!동 )(?<!해당 )(?<!다른 )(?<!현행 )(?<!같은 )법"
    r"(?=에\s(?:따른|따라|의한|의하여|의거)|에서\s(?:정한|정하는|규정)|\s시행(?:[·ㆍ]|에\s)|\s및\s(?:이\s)?(?:영|시행령))"
    r"|(?<![가-힣])이\s영(?=[에의을은])"
)
"""A law that its short name means (법에 따른)."""
FOLLOWED_RULE = re.compile(
    r"(?<![가-힣])([가-힣A-Za-z]{3,20}(?:지침|내규)|[가-힣]{4,12}(?<![의한는은른할인이을를])\s지침|[가-힣]{2,12}\s?행동강령)"
    r"(?:(?:을|를)\s(?:준수|준용|따른|따라|적용)|에\s(?:따른다|따라|의한다|의하여|의거|준한다))"
)
"""A rule outside the collection that the text requires to be followed."""
GENERAL_RULE = re.compile(
    r"^(?:(?:세부|운영|시행|별도|관련|해당|기타|본|동|각종|정부|관리|업무|자체|내부|제반|대학|기관|지원|위원회)\s?){1,3}(?:지침|내규)$"
)
FURTHER_DECREE = re.compile(rf"{AND.pattern}((?:시행령|시행규칙)(?![가-힣]*법))(?!{SPACE}제{SPACE}\d)")
"""A decree of the law that was cited just before (동법 시행령 및 시행규칙)."""
APPENDIX_CITED = re.compile(rf"[\]】〉>)」”’\"']|{SPACE}(?:에|와|과|의|로|으로|를|을|참[조고])")
"""What follows an appendix without a number that is cited, not merely mentioned."""
CITES_APPENDIX = re.compile(rf"{SPACE}(?:에\s?따른|에\s?의한|에서\s?정한|의){SPACE}[\[【〈<(「]?{SPACE}")
"""Between the name of a rule and its appendix (…규정에 따른 [별표])."""
FURTHER_ITEM = re.compile(rf"(\d{{1,2}}){SPACE}호(?:{SPACE}[~∼～]{SPACE}\d{{1,2}}{SPACE}호)?(?=[는은의에를와과])")
"""An item of the paragraph that the line cited before (제1항의 1호는 …, 5호는 …)."""
ABOLISHES = re.compile(r"(?:은|는|을|를)\s?(?:각각\s?|모두\s?)?(?:폐지|신설|제정)(?:한다|하고|하며|된다|되고)")
"""After the rules that an addendum abolishes or creates."""
LIST_SEPARATOR = re.compile(r"\s*(?:[,，、]|\s및\s|\s와\s|\s과\s)\s*|(?:동시에|따라|하고|하며)\s+")
FORMER_RULE = re.compile(rf"^(?:종전|종래|구|기존|현행|변경|이|본|각|해당|관련|다음|전)(?:의)?\s.*|^(?:{RULE_ENDING})$")
STARTS = re.compile(r"[\d제같동본이전현위별부]")
"""Characters that a citation without a name of a rule may start with."""


def masked(text: str) -> str:
    """The text with amendment marks blanked: `[제5조에서 이동]` and `[본조신설 …]` cite nothing."""
    return MARK.sub(lambda match: " " * len(match.group()), text)
