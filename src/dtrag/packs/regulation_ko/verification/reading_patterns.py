"""Patterns of what a text cites without the name of a regulation, and of what is between a name and its articles."""

from __future__ import annotations

import re

from dtrag.packs.regulation_ko.citation_patterns import SPACE

STARTS = re.compile(r"[\d제같동본이전위해상그별부]")
SAME_RULE = re.compile(
    r"(?<![가-힣])(?:같은|동|위|이|본|해당|상기|전기|그)\s?"
    r"(?:규정|시행\s?세칙|세칙|학칙|정관|지침|내규|규칙|요령|준칙|기준)(?!집|류)"
)
SAME_LAW = re.compile(
    r"(?<![가-힣])(?:같은|동|위|이|본)\s?(?:(?:법률|법)(?:\s?시행령|\s?시행규칙)?|시행령|시행규칙|령|영)"
    r"(?![가-힣](?<![제에은을의상과와및]))"
)
SAME_ARTICLE = re.compile(r"(?<![가-힣])(?:같은|동|위)\s?조(?!\s?[직정사합건치각])(?=[\s의에은을와과및제,.)]|$)")
SAME_PARAGRAPH = re.compile(r"(?<![가-힣])(?:같은|동|위)\s?항(?!\s?[목공만구])(?=[\s의에은을와과및제,.)]|$)")
PARAGRAPH_MARK = re.compile(rf"제{SPACE}(?:\d{{1,3}}|[①-⑳]){SPACE}항(?![가-힣](?<![의에은을과와및]))")
ITEM_MARK = re.compile(
    rf"제{SPACE}(?:\d{{1,3}}|[①-⑳]){SPACE}호(?=[의에은을과와및는를,가\s])(?!{SPACE}(?:서식|양식|안건|의안|의결))"
)
BARE_ARTICLE = re.compile(
    r"(?<![\d.,제가-힣~∼-])\d{1,3}조(?:의\d{1,2})?(?=의?\s?제?\s?\d{1,2}\s?항|\s?제\s?\d{1,2}\s?[항호])"
)
AFTER_NAME = re.compile(
    rf"{SPACE}(?:[(（](?!{SPACE}제{SPACE}\d)[^()（）\n]{{0,60}}[)）])?{SPACE}(?:의|중|상의|상|내)?"
    rf"(?:{SPACE}제{SPACE}\d{{1,3}}{SPACE}[편장절관](?:{SPACE}[(（][^()（）\n]{{1,40}}[)）])?(?={SPACE}[제\[(<【「]))*"
    rf"{SPACE}[(（\[<〈「【,:：|]?{SPACE}"
)
ADDENDUM = re.compile(rf"(?<![가-힣])부{SPACE}칙(?!{SPACE}[가-힣]*규정|금)")
AFTER_ADDENDUM = re.compile(
    rf"{SPACE}(?:[(（<〈\[](?P<heading>[^()（）<>〈〉\[\]\n]{{2,60}})[)）>〉\]])?{SPACE}(?:의|중)?{SPACE}"
)
DIVISION = re.compile(rf"제{SPACE}(\d{{1,3}}){SPACE}([편장절관])(?![가-힣](?<![의에은을과와및]))")
APPENDIX_TITLE = re.compile(rf"[\]〉>】」)]?{SPACE}[(（]([^()（）\n]{{2,60}})[)）]")
OTHER_APPENDIX = re.compile(rf"(붙임|서식)({SPACE}제?{SPACE}\d{{1,3}}(?:-\d{{1,3}})?{SPACE}호?)()")
SENTENCE_END = re.compile(r"(?<!\d)[.。!?](?=\s)|\n")
CIRCLED = re.compile("[①-⑳]")
ENUMERATED = re.compile(rf"{SPACE}(?:[,，·ㆍ]|및|와|과|또는|내지|부터|[~∼～]){SPACE}")
OF_SEVERAL = re.compile(r"(?:전자|후자|(?:두|양|각)\s?규정)의?\s?$")
"""Before a reference to one of several regulations: 전자의 제9조."""
