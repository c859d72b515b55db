"""Two agents argue from the same passages, and a third call weighs what they say: see docs/debate.md."""

from dtrag.debate.agent import Argument, DebateAgent
from dtrag.debate.engine import DebateEngine
from dtrag.debate.result import DebateResult
from dtrag.debate.worth import worth_a_debate

__all__ = ["Argument", "DebateAgent", "DebateEngine", "DebateResult", "worth_a_debate"]
