"""Questions in which the author and another participant exchange what they do."""

from __future__ import annotations

import pytest

from dtrag.core.cases.same_question import same_question

EXCHANGED_EN = [
    ("Can I end the sublet even if the landlord objects?", "Can the landlord end the sublet even if I object?"),
    ("Can I end the internship if my supervisor disagrees?", "Can my supervisor end the internship if I disagree?"),
    ("May we change the meeting date when the tutor is ill?", "May the tutor change the meeting date when we are ill?"),
    ("If the client complains, can I leave the project?", "If I complain, can the client leave the project?"),
    (
        "Do I have to pay if the landlord terminates the lease?",
        "Does the landlord have to pay if I terminate the lease?",
    ),
    (
        "If my landlord terminates the lease, do I have to pay?",
        "If I terminate the lease, does my landlord have to pay?",
    ),
    (
        "Can we postpone the exam although the examiner refuses?",
        "Can the examiner postpone the exam although we refuse?",
    ),
    (
        "What happens if I miss the deadline because my tutor was late?",
        "What happens if my tutor misses the deadline because I was late?",
    ),
    ("Can I record the call when the customer agrees?", "Can the customer record the call when I agree?"),
    (
        "Must I tell the neighbour before we renovate the flat?",
        "Must the neighbour tell us before he renovates the flat?",
    ),
    (
        "Who decides when I want to stay but my coach wants to go?",
        "Who decides when my coach wants to stay but I want to go?",
    ),
    ("Can I cancel the lesson after the teacher confirms it?", "Can the teacher cancel the lesson after I confirm it?"),
    (
        "Can the plan be ended by me even if my manager objects?",
        "Can the plan be ended by my manager even if I object?",
    ),
    (
        "Can I be moved to another room if my roommate complains?",
        "Can my roommate be moved to another room if I complain?",
    ),
    (
        "May I keep the key while the caretaker uses the cellar?",
        "May the caretaker keep the key while I use the cellar?",
    ),
    (
        "Is it allowed that I publish the paper before my professor signs?",
        "Is it allowed that my professor publishes the paper before I sign?",
    ),
    ("Do we lose the deposit if the agency cancels?", "Does the agency lose the deposit if we cancel?"),
    (
        "When the supplier delivers late, can we cancel the order?",
        "When we deliver late, can the supplier cancel the order?",
    ),
    ("Can I sell the bike unless my brother uses it?", "Can my brother sell the bike unless I use it?"),
    ("Can I refuse overtime if a colleague volunteers?", "Can a colleague refuse overtime if I volunteer?"),
    ("How long may I stay after my tenant leaves?", "How long may my tenant stay after I leave?"),
    ("Who pays when I damage the car that my boss rented?", "Who pays when my boss damages the car that I rented?"),
    ("Should I wait until the doctor calls or go?", "Should the doctor wait until I call or go?"),
    ("Can we use the hall if the choir is away?", "Can the choir use the hall if we are away?"),
    (
        "Does it matter whether I sign first or the director signs first?",
        "Does it matter whether the director signs first or I sign first?",
    ),
    (
        "Can I withdraw my consent after my employer accepted it?",
        "Can my employer withdraw consent after I accepted it?",
    ),
    (
        "Can I keep working from home even though my team lead wants to stop it?",
        "Can my team lead keep working from home even though I want to stop it?",
    ),
    ("Could I extend the contract if the publisher declines?", "Could the publisher extend the contract if I decline?"),
    ("Am I liable if the subtenant breaks the door?", "Is the subtenant liable if I break the door?"),
    ("Can I object when my manager ends the agreement?", "Can my manager object when I end the agreement?"),
    ("Does my insurance pay if I injure a guest?", "Does my insurance pay if a guest injures me?"),
    (
        "Can I appeal if the committee decides without hearing the tutor?",
        "Can the tutor appeal if the committee decides without hearing me?",
    ),
    ("Can I move in before the previous tenant moves out?", "Can the previous tenant move in before I move out?"),
    ("May we enter the lab while the technician is testing?", "May the technician enter the lab while we are testing?"),
    ("If a student reports me, may I stay in the course?", "If I report a student, may he stay in the course?"),
    ("Can I swap shifts if my colleague is sick?", "Can my colleague swap shifts if I am sick?"),
    ("Do I need to pay if my landlord ends the lease?", "Does my landlord need to pay if I end the lease?"),
    ("Am I allowed to leave if the trainer is late?", "Is the trainer allowed to leave if I am late?"),
    ("Are we required to answer when the auditor asks?", "Is the auditor required to answer when we ask?"),
    ("Can I terminate the loan if the bank changes the rate?", "Can the bank terminate the loan if I change the rate?"),
    ("Can you end the mentoring even if the mentee objects?", "Can the mentee end the mentoring even if you object?"),
    ("Can I paint the wall even if my flatmate complains?", "Can my flatmate paint the wall even if I complain?"),
    ("What if I object and my manager insists?", "What if my manager objects and I insist?"),
    (
        "Is it possible for me to stop the tutoring when the student complains?",
        "Is it possible for the student to stop the tutoring when I complain?",
    ),
    ("As long as I agree, can the owner sell the flat?", "As long as the owner agrees, can I sell the flat?"),
    (
        "Suppose I break the lamp and the host refuses to pay: what then?",
        "Suppose the host breaks the lamp and I refuse to pay: what then?",
    ),
    (
        "Can the lab close if we report the professor who complained?",
        "Can the lab close if the professor reports us who complained?",
    ),
    ("Can the agent read what I wrote?", "Can I read what the agent wrote?"),
    (
        "Who pays for the taxi I booked because my boss was late?",
        "Who pays for the taxi my boss booked because I was late?",
    ),
    ("Do I sign before or after the notary signs?", "Does the notary sign before or after I sign?"),
    ("If the coach quits, must we train alone?", "If we quit, must the coach train alone?"),
    ("My tutor resigned; can I finish the thesis?", "I resigned; can my tutor finish the thesis?"),
    (
        "Can I still graduate when my supervisor leaves the university?",
        "Can my supervisor still graduate when I leave the university?",
    ),
    ("Would the insurer pay if I lied?", "Would I pay if the insurer lied?"),
    ("My landlord wants to renovate, may I refuse?", "I want to renovate, may my landlord refuse?"),
    ("What can I do if my neighbour smokes?", "What can my neighbour do if I smoke?"),
    ("What should we do when the bus driver gets lost?", "What should the bus driver do when we get lost?"),
    ("How do I react if a parent shouts?", "How does a parent react if I shout?"),
    ("Can I take leave while my deputy is away?", "Can my deputy take leave while I am away?"),
    ("Can I be fired because my client lied?", "Can my client be fired because I lied?"),
    ("Can my boss publish it without my consent?", "Can I publish it without my boss's consent?"),
    ("Can the tutor use the photo against my will?", "Can I use the photo against the tutor's will?"),
]
EXCHANGED_KO = [
    ("제가 반대해도 교수님이 연구 참여를 끝낼 수 있나요?", "교수님이 반대해도 제가 연구 참여를 끝낼 수 있나요?"),
    ("교수님이 제가 동의하지 않아도 주제를 바꿀 수 있나요?", "제가 교수님이 동의하지 않아도 주제를 바꿀 수 있나요?"),
    ("집주인이 거부해도 제가 계약을 해지할 수 있나요?", "제가 거부해도 집주인이 계약을 해지할 수 있나요?"),
    ("제가 요청하면 팀장이 일정을 바꾸나요?", "팀장이 요청하면 제가 일정을 바꾸나요?"),
    ("저희가 늦으면 강사가 수업을 취소할 수 있나요?", "강사가 늦으면 저희가 수업을 취소할 수 있나요?"),
    ("제가 취소하면 업체가 위약금을 내나요?", "업체가 취소하면 제가 위약금을 내나요?"),
    ("룸메이트가 신고하면 제가 방을 옮겨야 하나요?", "제가 신고하면 룸메이트가 방을 옮겨야 하나요?"),
    ("제가 먼저 서명하고 나서 지도교수가 서명하나요?", "지도교수가 먼저 서명하고 나서 제가 서명하나요?"),
    ("조교가 결석하면 제가 실험을 진행해도 되나요?", "제가 결석하면 조교가 실험을 진행해도 되나요?"),
    ("우리가 동의하면 집주인이 수리하나요?", "집주인이 동의하면 우리가 수리하나요?"),
    ("저는 쉬고 조교가 일하나요?", "조교는 쉬고 제가 일하나요?"),
    ("제가 다치면 동료가 보고하나요?", "동료가 다치면 제가 보고하나요?"),
    ("내가 그만두면 사장이 급여를 돌려줘야 하나요?", "사장이 그만두면 내가 급여를 돌려줘야 하나요?"),
    ("제가 동의한 뒤에 회사가 철회할 수 있나요?", "회사가 동의한 뒤에 제가 철회할 수 있나요?"),
    ("제가 없을 때 관리인이 들어가도 되나요?", "관리인이 없을 때 제가 들어가도 되나요?"),
    ("제가 거절했는데 학과장이 결정할 수 있나요?", "학과장이 거절했는데 제가 결정할 수 있나요?"),
    ("제가 논문을 내기 전에 교수님이 발표해도 되나요?", "교수님이 논문을 내기 전에 제가 발표해도 되나요?"),
    ("멘토가 반대하더라도 저는 활동을 끝낼 수 있나요?", "제가 반대하더라도 멘토는 활동을 끝낼 수 있나요?"),
    ("제가 지각하면 코치가 훈련을 중단하나요?", "코치가 지각하면 제가 훈련을 중단하나요?"),
    ("제가 파손하면 집주인이 책임지나요?", "집주인이 파손하면 제가 책임지나요?"),
    ("교수님이 원하지 않으면 제가 바꿀 수 없나요?", "제가 원하지 않으면 교수님이 바꿀 수 없나요?"),
    ("제가 계약을 끝내려는데 상사가 반대하면 되나요?", "상사가 계약을 끝내려는데 제가 반대하면 되나요?"),
    ("제가 승인하지 않아도 조장이 제출할 수 있나요?", "조장이 승인하지 않아도 제가 제출할 수 있나요?"),
    ("손님이 항의하면 제가 환불해야 하나요?", "제가 항의하면 손님이 환불해야 하나요?"),
    ("제가 빌린 책을 친구가 반납해도 되나요?", "친구가 빌린 책을 제가 반납해도 되나요?"),
    ("제가 쓴 글을 교수님이 발표해도 되나요?", "교수님이 쓴 글을 제가 발표해도 되나요?"),
    ("내가 병가를 쓰면 매니저가 대신 일하나요?", "매니저가 병가를 쓰면 내가 대신 일하나요?"),
    ("제가 고른 주제를 지도교수님이 거절할 수 있나요?", "지도교수님이 고른 주제를 제가 거절할 수 있나요?"),
    ("제가 해고되면 팀장이 보고하나요?", "팀장이 해고되면 제가 보고하나요?"),
    ("저희가 이사하면 세입자가 비용을 부담하나요?", "세입자가 이사하면 저희가 비용을 부담하나요?"),
    ("의뢰인이 취소해도 제가 보수를 받을 수 있나요?", "제가 취소해도 의뢰인이 보수를 받을 수 있나요?"),
    ("제가 신청을 철회하면 위원회가 심사를 끝내나요?", "위원회가 신청을 철회하면 제가 심사를 끝내나요?"),
    ("제가 반대해도 조교가 바꿀 수 있나요?", "조교가 반대해도 바꿀 수 있나요?"),
    ("친구가 빌린 노트북을 제가 써도 되나요?", "제가 빌린 노트북을 친구가 써도 되나요?"),
    ("교수님이 퇴직하시면 저는 어떻게 하나요?", "제가 퇴직하면 교수님은 어떻게 하나요?"),
    ("제가 아프면 선배가 발표하나요?", "선배가 아프면 제가 발표하나요?"),
    ("나는 남고 룸메이트는 나가도 되나요?", "룸메이트는 남고 나는 나가도 되나요?"),
    ("제가 해지를 통보하면 임대인이 보증금을 내나요?", "임대인이 해지를 통보하면 제가 보증금을 내나요?"),
    ("조장이 제가 쓴 부분을 고쳐도 되나요?", "제가 조장이 쓴 부분을 고쳐도 되나요?"),
    ("제가 늦게 와서 손님이 기다리면 어떻게 하나요?", "손님이 늦게 와서 제가 기다리면 어떻게 하나요?"),
    ("제가 부르면 경비가 오나요?", "경비가 부르면 제가 오나요?"),
    ("저희 팀이 지면 상대 팀이 올라가나요?", "상대 팀이 지면 저희 팀이 올라가나요?"),
    ("우리가 잘못 안내해서 손님이 다치면 누가 책임지나요?", "손님이 잘못 안내해서 우리가 다치면 누가 책임지나요?"),
    ("제가 초대한 친구가 기숙사 물건을 부수면 누가 내나요?", "친구가 초대한 제가 기숙사 물건을 부수면 누가 내나요?"),
    ("제 동의 없이 집주인이 들어와도 되나요?", "집주인 동의 없이 제가 들어와도 되나요?"),
    ("제 허락 없이 조교가 발표해도 되나요?", "조교 허락 없이 제가 발표해도 되나요?"),
    ("나의 승인 없이 팀장이 결제해도 되나요?", "팀장의 승인 없이 내가 결제해도 되나요?"),
]
OTHERS_EXCHANGED = [
    ("Can the tutor end it if the student objects?", "Can the student end it if the tutor objects?"),
    ("Does the host pay when the guest cancels?", "Does the guest pay when the host cancels?"),
    ("If the coach is late, may the trainee leave?", "If the trainee is late, may the coach leave?"),
    ("May the flatmate move if the landlord dies?", "May the landlord move if the flatmate dies?"),
    ("집주인이 반대해도 세입자가 나갈 수 있나요?", "세입자가 반대해도 집주인이 나갈 수 있나요?"),
    ("조교가 결석하면 학생이 진행하나요?", "학생이 결석하면 조교가 진행하나요?"),
    ("친구가 빌린 책을 선배가 반납하나요?", "선배가 빌린 책을 친구가 반납하나요?"),
    ("멘토가 원하면 멘티가 바꾸나요?", "멘티가 원하면 멘토가 바꾸나요?"),
]
SAME = [
    ("Can I end the sublet even if the landlord objects?", "Even if the landlord objects, can I end the sublet?"),
    (
        "Can I end the sublet even if the landlord objects?",
        "hi, can i end the sublet even if the landlord objects? thanks",
    ),
    ("If the client complains, can I leave the project?", "Can I leave the project if the client complains?"),
    ("Do I have to pay if the landlord terminates the lease?", "Must I pay if the landlord terminates the lease?"),
    ("Do I need to pay if my landlord ends the lease?", "Must I pay if my landlord ends the lease?"),
    ("Does my landlord need to pay if I end the lease?", "Must my landlord pay if I end the lease?"),
    ("Must I inform my manager before I leave?", "Do I need to inform my manager before I leave?"),
    ("Does my manager have to sign when I work abroad?", "When I work abroad, does my manager have to sign?"),
    ("Can a colleague cover my shift if I am ill?", "If I'm ill can a colleague cover my shift?"),
    ("Am I liable if the subtenant breaks the door?", "If the subtenant breaks the door, am I liable?"),
    ("How long may I stay after my tenant leaves?", "For how long may I stay after my tenant leaves?"),
    ("Can I keep the laptop when the contract ends?", "When the contract ends, can I keep the laptop?"),
    ("Do we lose the deposit if the agency cancels?", "if the agency cancels do we lose the deposit"),
    ("Who pays when I damage the car that my boss rented?", "When I damage the car that my boss rented, who pays?"),
    ("제가 반대해도 교수님이 연구 참여를 끝낼 수 있나요?", "교수님이 제가 반대해도 연구 참여를 끝낼 수 있나요?"),
    ("교수님이 반대해도 제가 연구 참여를 끝낼 수 있나요?", "교수님이 반대해도 연구 참여를 끝낼 수 있나요?"),
    ("교수님이 반대해도 제가 연구 참여를 끝낼 수 있나요?", "저는 교수님이 반대해도 연구 참여를 끝낼 수 있나요?"),
    ("제가 요청하면 팀장이 일정을 바꾸나요?", "팀장이 제가 요청하면 일정을 바꾸나요?"),
    ("제가 요청하면 팀장이 일정을 바꾸나요?", "안녕하세요 제가 요청하면 팀장이 일정을 바꾸는지 궁금합니다"),
    ("제가 취소하면 업체가 위약금을 내나요?", "내가 취소하면 업체가 위약금 내나요?"),
    ("조교가 결석하면 제가 실험을 진행해도 되나요?", "조교가 결석하면 실험을 제가 진행해도 됩니까?"),
    ("제가 다치면 동료가 보고하나요?", "제가 다치면 동료가 보고해요?"),
    ("저는 휴학하면 장학금을 못 받나요?", "휴학하면 저는 장학금을 못 받나요?"),
    ("My tutor resigned; can I finish the thesis?", "Can I finish the thesis if my tutor resigned?"),
    ("What can I do if my neighbour smokes?", "If my neighbour smokes, what can I do?"),
    ("Who pays if I lose my key?", "If I lose my key, who pays?"),
    ("What happens if I am late and my team waits?", "hello, what happens if i am late and my team waits?"),
    ("How do I tell my manager that I am pregnant?", "how do i tell my manager I'm pregnant"),
    ("Can my doctor send the note or do I have to?", "can my doctor send the note, or do I have to?"),
    ("제가 아프면 선배가 발표하나요?", "혹시 제가 아프면 선배가 발표하는 건가요?"),
    ("제가 아프면 선배가 발표하나요?", "내가 아프면 선배가 발표해?"),
    ("교수님이 퇴직하시면 저는 어떻게 하나요?", "저는 교수님이 퇴직하시면 어떻게 하나요?"),
    ("등록금은 제가 직접 내야 하나요?", "제가 등록금을 직접 내야 하나요?"),
    ("저희 팀이 대회에 나가면 지원금이 나오나요?", "우리 팀이 대회에 나가면 지원금 나오나요?"),
    ("제가 빌린 책을 친구가 반납해도 되나요?", "친구가 제가 빌린 책을 반납해도 되나요?"),
]


@pytest.mark.parametrize(("base", "other"), [*EXCHANGED_EN, *EXCHANGED_KO, *OTHERS_EXCHANGED])
def test_an_exchange_between_the_author_and_another_participant_is_not_the_same(base: str, other: str) -> None:
    assert not same_question(base, other).same
    assert not same_question(other, base).same


@pytest.mark.parametrize(("base", "other"), SAME)
def test_clauses_in_another_order_are_the_same(base: str, other: str) -> None:
    assert same_question(base, other).same, same_question(base, other).reason


def test_the_reason_names_the_word_whose_subject_differs() -> None:
    decision = same_question(
        "Can I cancel the course if my coach moves?",
        "Can my coach cancel the course if I move?",
    )
    assert decision.reason == "who does it differs: cancel"
