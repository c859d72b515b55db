"""Two agents argue from the same passages, and a third call weighs what they say: see docs/debate.md."""

from dtrag.core.debate import DebateResult
from dtrag.debate.worth import worth_a_debate
from dtrag.pipeline.debate.agent import Argument, DebateAgent
from dtrag.pipeline.debate.engine import DebateEngine

__all__ = ["Argument", "DebateAgent", "DebateEngine", "DebateResult", "worth_a_debate"]
