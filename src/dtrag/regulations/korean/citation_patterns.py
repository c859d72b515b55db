"""Patterns of citations: articles, their parts, names of rules and laws, appendices, divisions, addenda.

Patterns that a reader matches at a position do not consume white space before them, except those for what follows an
article (항, 호, titles). `SPACE` is white space within a line; it is possessive, so that runs of blanks are read once.
"""

from __future__ import annotations

import re

from dtrag.core.text.patterns import explained

DOTS = "·ㆍ‧•・․･⸱∙⋅"
SPACE = r"[ \t\u00a0\u3000]*+"
RULE_ENDING = r"규정|세칙|시행세칙|학칙|정관|지침|내규|요령|준칙|강령|요강|규약|헌장|기준"
_PARTICLE = r"[에의을를은는이가과와및로상중내부까만]"
_AMENDED = r"개\s*정|신\s*설|삭\s*제|이\s*동|전문|본조|제목|제\s*정"
MARK = explained(
    rf"[<〈(（\[【][^<>〈〉()（）\[\]【】\n]{{0,120}}?(?:{_AMENDED})[^<>〈〉()（）\[\]【】\n]{{0,200}}[>〉)）\]】]"
    r"|「[^「」\n]{0,40}?(?:개\s*정|신\s*설|삭\s*제|이\s*동|본조)[^「」\n]{0,40}?\d{4}[^「」\n]{0,200}」",
    finds=("<개정 2020. 3. 1.>", "[제5조에서 이동]"),
    refuses="(이하 이 조에서 같다)",
)

# Articles and their parts
ARTICLE = explained(
    rf"제{SPACE}(\d{{1,4}}){SPACE}조(?!건|직|치)"
    rf"(?:{SPACE}의{SPACE}(\d{{1,3}})(?!{SPACE}(?:항|호|\d|[%,.]?\d|개|년|월|일|분|차|인|명|배|회|학기|과목|시간)))?",
    finds=("제15조", "제 4 조의 2"),
    refuses=("제2조직", "제3항"),
)
ARTICLE_WITHOUT_MARK = explained(
    rf"(\d{{1,3}}){SPACE}조(?:{SPACE}의{SPACE}(\d{{1,2}})(?!\d|{SPACE}[항호]))?(?![원각건직치])",
    finds="22조의2",
    refuses="3조원",
)
SHORT_RANGE = explained(
    rf"제{SPACE}(\d{{1,4}}){SPACE}[~∼～〜\-－–]{SPACE}제?{SPACE}(\d{{1,4}}){SPACE}조(?![원각건직치])",
    finds="제1~4조",
    refuses="제1조~제4조",
)
SHORT_MEMBER = explained(
    rf"제?{SPACE}(\d{{1,4}})(?={SPACE}[,·ㆍ‧・]{SPACE}제?{SPACE}\d{{1,4}}{SPACE}(?:[,·ㆍ‧・]|조))",
    finds="제3, 5조",
    refuses="제3, 5항",
)
BARE_ARTICLE = explained(
    r"(?<![\d.,제가-힣~∼-])\d{1,3}조(?:의\d{1,2})?"
    r"(?=에\s?(?:규정|의한|의하여|의거|따른|따라|정한|명시)|의\s?규정|의?\s?제?\s?\d{1,2}\s?항|\s?제\s?\d{1,2}\s?[항호])",
    finds=("15조에 따라", "5조3항", "5조 제1호"),
    refuses=("5조 2교대", "15조를 편성"),
)
TITLE = re.compile(rf"{SPACE}[(（](?!이하)[^()（）\n]{{1,40}}[)）]")
NO_TITLE = explained(
    r"^\s*(?:이하|단서|본문|전단|후단|단|다만|현행|구|신|안|신설|개정|제정|삭제|폐지|변경|이동|생략|참조|참고|상동|별지|별표|붙임|각\s?호|전문\s?개정|일부\s?개정|개정안)"
    r"(?![가-힣])|^\s*(?:이하|단서|다만)\s|참조|참고|제\s*\d|\d{4}|[pP]\.\s*\d|에\s한|제외\)?$|포함\)?$|같다|이라\s?한다|라\s?한다",
    finds=("단서", "이하 같다", "제3조 관련"),
    refuses=("임용", "단서조항의 적용"),
)
PARAGRAPH = explained(
    rf"{SPACE}(?:의{SPACE})?제?{SPACE}(?:(\d{{1,3}})|([①-⑳])){SPACE}항(?!목|공)(?:{SPACE}의{SPACE}\d{{1,2}}(?!\d|{SPACE}[항호]))?",
    finds=("제2항", "의 2항", "제①항"),
    refuses=("2항목", "제2호"),
)
ITEM = explained(
    rf"{SPACE}(?:의{SPACE})?제?{SPACE}(?:(\d{{1,3}})|([①-⑳])){SPACE}호(?:{SPACE}의{SPACE}(\d{{1,2}})(?!\d))?"
    rf"(?!{SPACE}(?:서식|양식|안건|의안|의결|[관실선봉]))",
    finds=("제3호", "3호의2"),
    refuses=("제3호 서식", "3호관"),
)
SUBITEM = re.compile(rf"{SPACE}([가-하]){SPACE}목(?![가-힣](?<!의|에|을|은|과|및))")
FURTHER_ITEM = explained(
    rf"(\d{{1,2}}){SPACE}호(?:{SPACE}[~∼～]{SPACE}(\d{{1,2}}){SPACE}호)?(?=[는은의에를와과])",
    finds="5호는",
    refuses="5호실",
)
"""An item of the paragraph that the line cited before (제1항의 1호는 …, 5호는 …)."""
PARAGRAPH_MARK = re.compile(rf"제{SPACE}(?:\d{{1,3}}|[①-⑳]){SPACE}항(?![목공])")
ITEM_MARK = explained(
    rf"제{SPACE}(?:\d{{1,3}}|[①-⑳]){SPACE}호(?!{SPACE}(?:의?{SPACE}\d*{SPACE})?(?:서식|양식|의결|안건|의안))",
    finds="제3호",
    refuses="제3호 서식",
)
TO = re.compile(rf"{SPACE}(?:내지|부터|에서|[~∼～〜\-－–])\s?{SPACE}")
UNTIL = re.compile(rf"{SPACE}까지")
AND = re.compile(rf"{SPACE}(?:[,，、/{DOTS}]|및|와|과|또는|이나|혹은){SPACE}(?:및{SPACE})?")
JOINED = re.compile(rf"(?:{AND.pattern}|{SPACE}(?=제{SPACE}[\d①-⑳]{{1,3}}{SPACE}[항호]))")
"""What joins 항 and 호 of one article: a list, or nothing (제1항 제2항)."""
BLANKS = re.compile(SPACE)

# References to what the text cited before, or is
SAME_RULE = explained(
    r"(?<![가-힣])(?:같은|동|위|이|본|현|해당|상기|전기|그)\s?"
    r"(?:규정|시행\s?세칙|세칙|학칙|정관|지침|내규|규칙|요령|준칙|기준)(?!집|류)",
    finds=("같은 규정", "이 학칙"),
    refuses=("관련 규정", "이 규정집"),
)
OWN_RULE = re.compile(r"(?<![가-힣])(?:이|본|현)\s?(?:규정|세칙|시행세칙|학칙|정관|지침|내규|규칙|요령|준칙)")
SAME_LAW = explained(
    r"(?<![가-힣])(?:같은|동|위|이|본)\s?(?:(?:법률|법)(?:\s?시행령|\s?시행규칙)?|시행령|시행규칙|령|영)"
    r"(?![가-힣](?<![제에은을의상과와및]))",
    finds=("같은 법 시행령", "동법"),
    refuses=("고등교육법", "이 법인"),
)
SAME_ARTICLE = explained(
    rf"(?<![가-힣])(?:(?:같은|동)\s?|위\s)조(?!\s?[직정사합건치각])(?=[\s,.)]|제|{_PARTICLE}|$)",
    finds=("같은 조 제2항", "동조의"),
    refuses=("동조직", "다른 조", "위조 또는 변조"),
)
SAME_PARAGRAPH = explained(
    rf"(?<![가-힣])(?:같은|동|위)\s?항(?!\s?[목공만구])(?=[\s,.)]|제|{_PARTICLE}|$)",
    finds="같은 항 제1호",
    refuses="동 항목",
)
OWN_ARTICLE = explained(
    r"(?<![가-힣])(?:본\s?조|(?<!이하\s)이\s조)(?=[의에를은와,\s]|제)(?!\s?(?:신설|개정|삭제|전문))",
    finds=("본조에서", "이 조 제1항"),
    refuses=("본조신설", "이하 이 조에서"),
)
PREVIOUS_ARTICLE = re.compile(r"(?<![가-힣])전\s?조(?=[의에를은와과,\s]|제\d)")
PREVIOUS_PARAGRAPH = re.compile(r"(?<![가-힣])(?:전\s?항|전\s?[2-9]항)(?=[의에을은과,\s.]|제\d)")
OF_SEVERAL = re.compile(r"(?:전자|후자|(?:두|양|각)\s?규정)의?\s?$")
"""Before a reference to one of several regulations: 전자의 제9조."""
SENTENCE_END = re.compile(r"(?<!\d)[.。!?](?=\s)|\n")
STARTS = re.compile(r"[\d제같동본이전현위해상그별부]")
"""Characters that a citation without a name of a rule may start with."""

# Divisions, appendices, addenda
DIVISION = re.compile(rf"제{SPACE}(\d{{1,3}}){SPACE}([편장절관])(?![가-힣](?<!제)(?<!{_PARTICLE}))")
DIVISION_CITED = explained(
    rf"(?:에서|에|의|을|를|은|는|과|와|까지)(?![가-힣](?<![서는도]))|{SPACE}(?:및|또는|내지|규정|중)(?![가-힣])",
    finds=("에서 정한", " 및 별표"),
    refuses=(" 총칙", " 의무"),
)
"""Behind a division that is cited, not the heading of one."""
INSIDE_DIVISION = explained(
    rf"{SPACE}(?:[(（][^()（）\n]{{1,40}}[)）])?{SPACE}(?={SPACE}제{SPACE}\d{{1,4}}{SPACE}조)",
    finds="(임용) 제4조",
    refuses=" 제4항",
)
"""Between a division and an article of it: 제2장(임용) 제4조."""
DIVISION_BEFORE = re.compile(r"제\s*\d+\s*[장절편관]\s*$|(?:훈령|고시|예규|법률|대통령령|부령|조례|공고)\s*$")
APPENDIX = explained(
    rf"(?<![가-힣])(별{SPACE}표|별{SPACE}지|별{SPACE}첨)"
    rf"({SPACE}(?:서식{SPACE})?(?:제|#)?{SPACE}\d{{1,3}}(?:{SPACE}(?:의|[-–]){SPACE}\d{{1,3}}(?!{SPACE}(?:호|항)?\d))?{SPACE}(?:호)?"
    rf"(?:{SPACE}의{SPACE}\d{{1,2}})?(?:\(\d{{1,2}}-\d{{1,2}}\))?)?({SPACE}(?:서식|양식)(?:{SPACE}\d{{1,3}})?)?",
    finds=("별표 1의2", "별지 제1호 서식", "별표"),
    refuses=("특별표", "붙임 1"),
)
OTHER_APPENDIX = re.compile(rf"(붙임|서식)({SPACE}제?{SPACE}\d{{1,3}}(?:-\d{{1,3}})?{SPACE}호?)()")
FURTHER_APPENDIX = explained(
    rf"[\[<〈【「(]?(?P<kind>별{SPACE}[표지첨])?{SPACE}(?P<number>제?{SPACE}\d{{1,3}}(?:{SPACE}[-–의]{SPACE}\d{{1,3}})?{SPACE}호?)"
    rf"(?P<form>{SPACE}(?:서식|양식))?(?![가-힣\d](?<!{_PARTICLE}))(?!{SPACE}[조항호]|\.{SPACE}\S)",
    finds=("제6호와", "제3호 서식", "별지 제4호 서식에"),
    refuses=("2024년", "3. 다음"),
)
"""In a list or range of appendices, behind what joins it."""
APPENDIX_TITLE = re.compile(rf"[\]〉>】」)]?{SPACE}[(（]([^()（）\n]{{2,60}})[)）]")
NO_APPENDIX_TITLE = re.compile(r"\d{4}|제\s*\d|이하|참조|참고")
APPENDIX_CITED = re.compile(rf"[\]】〉>)」”’\"']|{SPACE}(?:에|와|과|의|로|으로|를|을|참[조고])")
"""What follows an appendix without a number that is cited, not merely mentioned."""
CITES_APPENDIX = re.compile(rf"{SPACE}(?:에\s?따른|에\s?의한|에서\s?정한|의){SPACE}[\[【〈<(「]?{SPACE}")
"""Between the name of a rule and its appendix (…규정에 따른 [별표])."""
ADDENDUM = re.compile(rf"(?<![가-힣])부{SPACE}칙(?!{SPACE}[가-힣]*규정|금)")
AFTER_ADDENDUM = explained(
    rf"{SPACE}(?:[(（<〈\[](?P<heading>[^()（）<>〈〉\[\]\n]{{2,60}})[)）>〉\]])?{SPACE}(?:의|중)?{SPACE}",
    finds="(2019. 3. 1.) 제2조",
    refuses=(),
)
AFTER_OWN_ADDENDUM = re.compile(rf"{SPACE}(?:제|에|의|\d|을|를|은|과|[<(])")

# Names of rules and laws
AFTER_NAME = explained(
    rf"{SPACE}(?:[(（](?!{SPACE}제{SPACE}\d)[^()（）\n]{{0,60}}[)）])?{SPACE}(?:의|중|상의|상|내)?{SPACE}[(（\[<〈「【,:：|]?{SPACE}",
    finds="(2-1-1)의 [별표 1]",
    refuses=(),
)
"""Between a name and what is cited of it."""
REFERENCE_AFTER = explained(
    rf"[」』｣”\"’'>〉》]?{SPACE}(?:[(（][^()（）\n]{{0,60}}[)）])?{SPACE}(?:의{SPACE}|중{SPACE}|상의{SPACE})?"
    rf"(?=[(（]?{SPACE}제{SPACE}\d{{1,4}}{SPACE}조|[<〈\[(（【「]?{SPACE}별{SPACE}[표지첨]|부{SPACE}칙)",
    finds=("의 제3조", "(이하 같다) 별표"),
    refuses=("에 따라", " 제3항"),
)
"""Behind a name of which a part is cited."""
ARTICLE_AFTER = re.compile(rf"{SPACE}제{SPACE}\d{{1,4}}{SPACE}조")
QUOTED = re.compile(r"[「『｢“\"‘'<〈《\[]([^「」『』｢｣“”\"‘’'<>〈〉《》\[\]\n]{2,60})[」』｣”\"’'>〉》\]]")
LAW_ENDING = re.compile(r"(?:법|법률|시행령|시행규칙|[가-힣]령|규칙|조례|기본법|특별법|회계\s?규칙|예규|고시|훈령)$")
STATE_RULE = explained(
    r"국가|공무원|공공기관|교육부|교육과학|과학기술|정부|지방자치|행정|대통령|보건복지|고용노동|문화|국방|병무|법무|조달|기획재정|회계예규"
    r"|고시|훈령|예규",
    finds=("국가공무원복무규정", "교육부고시"),
    refuses="교원인사규정",
)
BARE_LAW = explained(
    r"(?<![가-힣])((?:[가-힣·ㆍ]{1,40}\s){0,5}?[가-힣·ㆍ]{0,40}에\s?관한\s?(?:특별법|법률|특례법)"
    r"|[가-힣·ㆍ]{1,40}법(?:률)?|[가-힣]{2,15}령"
    r"|[가-힣·ㆍ]{2,30}에관한규칙|[가-힣·ㆍ ]{2,30}에\s관한\s?(?:규칙|훈령|고시))"
    r"(\s?시행령|\s?시행규칙)?(?![가-힣]*(?:인|적)|(?!상의|상\s)[가-힣]*상)",
    finds=("고등교육법 시행령", "공공기관의 정보공개에 관한 법률"),
    refuses=("교원인사규정", "합법적"),
)
NOT_LAW = explained(
    r"^(?:공사|공·사|공ㆍ사)법$|^(?:방|문|용|기|불|위|적|입|사|합|편|화|수|어|요|공|처|해|비|작|타|제|관|이|재|초|탈|준|무|진|범|마|창|필|농|육|주|검|총|태)법$|(?:방|(?<!기)기|용|관련|해당|소관|맞춤|재배|조리|사용|기록|표현|검사|운용|설계|시공|가공|치료|학습|교수|연구|측정|작성|분석|평가|제조|공식|투자|계산|표기|지급|지도|실험)법$"
    r"|(?:명|연|고|발|(?<!관한\s)훈|사|법|강|지|수|호|점|대통)령$|방법|^법령$|불법|적법|위법",
    finds=("방법", "교수법", "명령"),
    refuses=("고등교육법", "민법"),
)
LAW_PARTICLE = re.compile(r"(?:에|의|상|을|를|과|와|및|이나|또는|으로|에서|[,，ㆍ·])(?!니)")
LAW_ABOUT = re.compile(r"에\s?관한\s?(?:특별법|법률|특례법|규칙|훈령|고시)$")
SHORT_LAW = re.compile(rf"(?<![가-힣])(?:법|영|시행령|시행규칙)(?={SPACE}(?:제{SPACE}\d+{SPACE}조|별{SPACE}표))")
LAW_ALONE = explained(
    r"(?<![가-힣])(?<!관계 )(?<!관련 )(?<![\s(]이 )(?<!동 )(?<!해당 )(?<!다른 )(?<!현행 )(?<!같은 )법"
    r"(?=에\s(?:따른|따라|의한|의하여|의거)|에서\s(?:정한|정하는|규정)|\s시행(?:[·ㆍ]|에\s)|\s및\s(?:이\s)?(?:영|시행령))"
    r"|(?<![가-힣])이\s영(?=[에의을은])",
    finds=("법에 따른", "이 영에"),
    refuses=("관계 법에 따른", "방법에 따라"),
)
"""A law that its short name means (법에 따른)."""
FURTHER_DECREE = re.compile(rf"{AND.pattern}((?:시행령|시행규칙)(?![가-힣]*법))(?!{SPACE}제{SPACE}\d)")
"""A decree of the law that was cited just before (동법 시행령 및 시행규칙)."""
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
PARTICLE_AFTER = explained(
    rf"$|[^가-힣]|(?:에서|에게|에는|에도|에의|에|의|을|를|은|는|과|와|이|가|으로|로|및|또는|이나|나|도|만|등|중|상|내|별표|별지|부칙|제{SPACE}\d|시행(?!세칙|규칙|규정|내규|지침)|준용|따|개정|제정|안에|하|이라|이란|이며|이고|이외|외|규정에)",
    finds=("에 따라", "별표"),
    refuses=(),
)
PREFIXES = tuple(
    "본교 본대학교 본대학 우리대학교 우리대학 대학교 대학 법인 본법인 학교법인 당해 관련 해당 동 현행 구 각".split()
)
WORDS_BEFORE = explained(
    rf"(?:[가-힣A-Za-z0-9{DOTS}]*[가-힣A-Za-z0-9](?<![은는이가을를에])(?:및)?[ ]){{0,4}}[가-힣A-Za-z0-9{DOTS}()]+$",
    finds="드론 운영 규정",
    refuses="규정 ",
)
LONG_RULE = explained(
    r"[가-힣·ㆍ]+(?:[ ][가-힣·ㆍ]+){0,4}?[ ]?[가-힣]*에[ ]?관한[ ]?(?:규정|규칙|지침|세칙)$",
    finds="대학의 설립에 관한 규정",
    refuses="인사 규정",
)
RULE_ENDINGS = re.compile(RULE_ENDING)
ENDS_AS_RULE = re.compile(rf"(?:{RULE_ENDING})$")
BARE_RULE = re.compile(rf"(?:[가-힣]+(?:의|한|된|는)\s)?(?:{RULE_ENDING})")
ABOUT_BEFORE = re.compile(r"(?:관한|대한)\s?$")
CLAUSE_END = re.compile(r"(?:경우|은|는|이|가|함은|후에|하여|하고|하며|따라|의하여|의한|의거|및|또는|등)$")
FOLLOWED_RULE = explained(
    r"(?<![가-힣])([가-힣A-Za-z]{3,20}(?:지침|내규)|[가-힣]{4,12}(?<![의한는은른할인이을를])\s지침|[가-힣]{2,12}\s?행동강령)"
    r"(?:(?:을|를)\s(?:준수|준용|따른|따라|적용)|에\s(?:따른다|따라|의한다|의하여|의거|준한다))",
    finds="자전거보관지침을 따른다",
    refuses="지침에 따른다",
)
"""A rule outside the collection that the text requires to be followed."""
GENERAL_RULE = explained(
    r"^(?:(?:세부|운영|시행|별도|관련|해당|기타|본|동|각종|정부|관리|업무|자체|내부|제반|대학|기관|지원|위원회)\s?){1,3}(?:지침|내규)$",
    finds="세부운영지침",
    refuses="자전거보관지침",
)
ABOLISHES = re.compile(r"(?:은|는|을|를)\s?(?:각각\s?|모두\s?|이를\s?)?(?:폐지|신설|제정)(?:한다|하고|하며|된다|되고)")
"""After the rules that an addendum abolishes or creates."""
RENAMES = explained(
    rf"(?P<before>[가-힣A-Za-z{DOTS}]{{2,40}}(?:{RULE_ENDING}))[」”’]?(?:은|는|을|를|이|가)\s[「“‘]?(?P<after>[가-힣A-Za-z{DOTS}]{{2,40}}(?:{RULE_ENDING}))"
    r"[」”’]?\s?(?:으로|로)\s(?:그\s)?(?:명칭을\s)?(?:변경|개칭)",
    finds="외국어교육원규정은 국제언어교육원규정으로 명칭을 변경한다",
    refuses="이 규정은 2004년부터 시행한다",
)
CONTINUES = explained(
    rf"(?:종전|기존)의\s[「“‘]?([가-힣A-Za-z{DOTS} ]{{2,40}}?(?:{RULE_ENDING}))"
    rf"[」”’]?에\s(?:의한|따른|의하여|따라)[^.\n]{{0,40}}\s이\s(?:{RULE_ENDING})에\s(?:의한|따른)",
    finds="종전의 「연계교육과정운영지침」에 의한 업무는 이 규정에 의한 것으로 본다",
    refuses="종전의 규정에 따른다",
)
"""A former rule whose acts count as those of this one."""
LIST_SEPARATOR = explained(
    r"\s*(?:[,，、]|\s및\s|\s와\s|\s과\s)\s*|(?<=[”」’])\s?(?:및|와|과)\s?(?=[“「‘])|(?:동시에|따라|하고|하며)(?:\s+|(?=[“「‘]))",
    finds=("인사규정, 보수규정", "”및“", "동시에「"),
    refuses="교육및연구규정",
)
FORMER_RULE = re.compile(rf"^(?:종전|종래|구|기존|현행|변경|이|본|각|해당|관련|다음|전)(?:의)?\s.*|^(?:{RULE_ENDING})$")
PLAIN = explained(
    rf"(?:[「『｢]?(?<![가-힣{DOTS}])[가-힣{DOTS}]*(?:{RULE_ENDING})[」』｣]?{SPACE})?제{SPACE}\d{{1,4}}{SPACE}조(?:{SPACE}의{SPACE}\d{{1,3}})?"
    rf"|(?<![가-힣{DOTS}])[가-힣{DOTS}]+(?:{RULE_ENDING})",
    finds=("「학칙」 제20조", "휴학규정"),
    refuses="제3항",
)
"""A citation in a passage of an unknown collection."""


def masked(text: str) -> str:
    """The text with amendment marks blanked: `[제5조에서 이동]` and `[본조신설 …]` cite nothing."""
    return MARK.sub(lambda match: " " * len(match.group()), text)
