"""AC-ORCH-004, 005 and 008 in process by their ids: the snippets nearly as they are, on both stores.

`add_case` gets the id that the snippets look up (D3). D2 says what `cosine` means, D32 to D34 the rest; over HTTP:
tests/acceptance/test_spec_cases_http.py. Times are measured in bench/cases.py.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtrag import (
    CBRQualityUpdateRequest,
    CBRSystem,
    CBRUpdateRequest,
    FeedbackRequest,
    FeedbackType,
    SimilarityMethod,
    SuggestionRequest,
)
from dtrag.core.cases.index import MEANING_SHARE
from dtrag.core.cases.votes import bounded
from dtrag.errors import Conflict, InvalidInput, NotFound, NotOpened
from dtrag.settings import Settings
from dtrag.testing import HashEmbedder
from tests.store import Databases

CATEGORIES = ["AI", "Database", "Network", "Security"]
TOPICS = ["backup", "index", "query", "model", "training", "router", "packet", "key", "firewall", "schema"]


@pytest.fixture(params=["sqlite", "postgres"])
def cbr_system(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CBRSystem]:
    """`CBRSystem` on a file, and on a database."""
    if request.param == "postgres":
        databases: Databases = request.getfixturevalue("databases")
        in_settings(databases.settings(), monkeypatch)
    with CBRSystem(data_dir=tmp_path / "cbr" if request.param == "sqlite" else None) as system:
        yield system


def in_settings(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let programs without arguments use this database."""
    monkeypatch.delenv("CBR_DATA_DIR", raising=False)
    monkeypatch.setenv("DTRAG_DATA_DIR", str(settings.data_dir))
    monkeypatch.setenv("DTRAG_DATABASE_NAME", settings.database_name)
    monkeypatch.setenv("DTRAG_EMBEDDER", "none")


def seed(cbr_system: CBRSystem) -> None:
    """100 cases in four categories with an average quality of .6."""
    random_source = random.Random(5)
    for number in range(100):
        words = random_source.sample(TOPICS, 3)
        cbr_system.add_case(
            {
                "query": f"How does the {words[0]} of a {words[1]} change its {words[2]}?",
                "category_path": [CATEGORIES[number % 4]],
                "content": f"Manual, section {number}",
                "quality_score": 0.5 + 0.1 * (number % 3),
            },
            case_id=f"seed-{number:03}",
        )


def test_orch_004_suggestions(cbr_system: CBRSystem) -> None:
    cbr_system.add_case({
        "query": "machine learning algorithms",
        "category_path": ["AI", "ML"],
        "content": "ML algorithms include...",
        "quality_score": 0.8
    })  # fmt: skip

    request = SuggestionRequest(
        query="deep learning neural networks",
        category_path=["AI", "ML"],
        k=5,
        similarity_method=SimilarityMethod.COSINE,
        min_quality_score=0.5,
    )

    suggestions, execution_time = cbr_system.suggest_cases(request)

    assert len(suggestions) <= 5
    assert all(s.similarity_score >= 0.0 for s in suggestions)
    assert all(s.quality_score >= 0.5 for s in suggestions)
    assert suggestions[0].similarity_score >= suggestions[-1].similarity_score
    assert execution_time >= 0  # at most 200 ms: bench/cases.py
    assert [s.similarity_score for s in suggestions] == [1 / 6]
    assert suggestions[0].dict()["category_path"] == ["AI", "ML"]


def test_orch_004_cosine_and_jaccard(cbr_system: CBRSystem) -> None:
    query1 = "machine learning algorithms"
    query2 = "deep learning neural networks"

    similarity = cbr_system._calculate_similarity(query1, query2, SimilarityMethod.COSINE)

    words1 = set(query1.lower().split())
    words2 = set(query2.lower().split())
    expected = len(words1 & words2) / len(words1 | words2)

    assert abs(similarity - expected) < 0.01

    similarity = cbr_system._calculate_similarity("test query one", "test query two", SimilarityMethod.JACCARD)

    assert 0.0 <= similarity <= 1.0
    assert similarity == 0.5
    assert cbr_system._calculate_similarity("a b", "a b", SimilarityMethod.EUCLIDEAN) == 1.0
    with pytest.raises(InvalidInput, match="embedder"):
        cbr_system._calculate_similarity(query1, query2, SimilarityMethod.SEMANTIC)


def test_orch_004_category_filtering(cbr_system: CBRSystem) -> None:
    seed(cbr_system)
    request = SuggestionRequest(query="test", category_path=["Database"], k=10)

    suggestions, _ = cbr_system.suggest_cases(request)

    for suggestion in suggestions:
        assert suggestion.category_path == ["Database"]
    assert len(suggestions) == 10
    assert all(0.0 <= suggestion.similarity_score <= 1.0 for suggestion in suggestions)


def test_orch_005_a_thumbs_up(cbr_system: CBRSystem) -> None:
    case_id = "case-001"
    initial_quality = 0.6

    cbr_system.add_case({
        "query": "test query",
        "category_path": ["AI"],
        "content": "test content",
        "quality_score": initial_quality
    }, case_id=case_id)  # fmt: skip

    feedback_request = FeedbackRequest(
        log_id="log-001", case_id=case_id, feedback_type=FeedbackType.THUMBS_UP, success=True
    )

    cbr_system.update_case_feedback(feedback_request)

    updated_case = cbr_system.get_case_by_id(case_id)

    expected_quality = min(initial_quality + 0.1, 1.0)
    assert updated_case is not None
    assert updated_case.quality_score == expected_quality
    assert updated_case.usage_count == 1


def test_orch_005_b_thumbs_down(cbr_system: CBRSystem) -> None:
    case_id = "case-002"
    initial_quality = 0.7

    cbr_system.add_case({
        "query": "test query",
        "category_path": ["AI"],
        "content": "test content",
        "quality_score": initial_quality
    }, case_id=case_id)  # fmt: skip

    feedback_request = FeedbackRequest(
        log_id="log-002", case_id=case_id, feedback_type=FeedbackType.THUMBS_DOWN, success=False
    )

    cbr_system.update_case_feedback(feedback_request)

    updated_case = cbr_system.get_case_by_id(case_id)

    expected_quality = bounded(max(initial_quality - 0.1, 0.0))  # .7 - .1 is .6 here, without the noise of floats (D33)
    assert updated_case is not None
    assert updated_case.quality_score == expected_quality
    assert updated_case.usage_count == 1


def test_orch_005_c_selected(cbr_system: CBRSystem) -> None:
    feedback_request = FeedbackRequest(
        log_id="log-003", case_id="case-003", feedback_type=FeedbackType.SELECTED, success=True
    )
    with pytest.raises(NotFound, match="case-003"):  # D32
        cbr_system.update_case_feedback(feedback_request)
    cbr_system.add_case({"query": "test", "category_path": ["AI"], "content": "c", "case_id": "case-003"})

    cbr_system.update_case_feedback(feedback_request)

    updated_case = cbr_system.get_case_by_id("case-003")
    assert updated_case is not None
    assert updated_case.quality_score <= 1.0
    assert updated_case.usage_count > 0
    assert (updated_case.quality_score, updated_case.usage_count) == (0.6, 1)
    logs = cbr_system.get_logs(limit=10)

    assert len(logs) > 0
    assert all("log_id" in log for log in logs)
    assert all("suggested_case_ids" in log for log in logs)
    assert all("feedback" in log for log in logs)


@pytest.mark.parametrize("cbr_system", ["sqlite"], indirect=True)
def test_orch_005_readiness_at_a_thousand_interactions(cbr_system: CBRSystem) -> None:
    seed(cbr_system)
    stats = cbr_system.get_stats()

    assert stats["total_interactions"] >= 0
    assert 0.0 <= stats["success_rate"] <= 1.0
    assert "neural_selector_ready" in stats
    assert (stats["total_cases"], len(stats["category_distribution"])) == (100, 4)
    assert stats["average_quality_score"] == pytest.approx(0.6, abs=0.01)

    for number in range(1_000):
        success = number % 4 != 0
        cbr_system.update_case_feedback(
            FeedbackRequest(
                log_id=f"log-{number:04}",
                case_id=f"seed-{number % 100:03}",
                feedback_type=FeedbackType.SELECTED if success else FeedbackType.IGNORED,
                success=success,
            )
        )
        if number == 998:
            assert cbr_system.get_stats()["neural_selector_ready"] is False

    stats = cbr_system.get_stats()
    neural_readiness = stats["total_interactions"] >= 1000 and stats["success_rate"] >= 0.7
    assert (stats["total_interactions"], stats["success_rate"]) == (1_000, 0.75)
    assert stats["neural_selector_ready"] is neural_readiness is True
    assert stats["average_quality_score"] >= 0.5
    exported = cbr_system.export()
    assert exported["ready_for_neural_selector"] is True
    assert len(exported["training_data"]["cases"]) == 100
    assert len(exported["training_data"]["interactions"]) == 1_000


def test_orch_008_reading_and_changing_cases(cbr_system: CBRSystem) -> None:
    case_id = "test-case-001"
    cbr_system.add_case({
        "query": "test query",
        "category_path": ["AI"],
        "content": "test content",
        "quality_score": 0.7
    }, case_id=case_id)  # fmt: skip
    with pytest.raises(Conflict, match="another case_id"):
        cbr_system.add_case({"query": "q", "category_path": ["AI"], "content": "c"}, case_id=case_id)

    update_request = CBRUpdateRequest(
        query="updated query",
        category_path=["AI", "ML"],
        content="updated content",
        quality_score=0.8,
        metadata={"version": "2.0"},
    )
    cbr_system.update_case(case_id, update_request)
    updated_case = cbr_system.get_case_by_id(case_id)
    assert updated_case is not None
    assert updated_case.query == "updated query"
    assert updated_case.quality_score == 0.8
    assert updated_case.dict()["metadata"] == {"version": "2.0"}
    assert updated_case.category_path == ["AI", "ML"]

    cbr_system.update_case(case_id, CBRQualityUpdateRequest(quality_score=0.9))
    updated_case = cbr_system.get_case_by_id(case_id)
    assert updated_case is not None
    assert updated_case.quality_score == 0.9
    with pytest.raises(InvalidInput, match="nothing to change"):
        cbr_system.update_case(case_id, CBRUpdateRequest())
    with pytest.raises(NotFound, match="unknown"):
        cbr_system.update_case("unknown", update_request)

    suggestions, _ = cbr_system.suggest_cases(SuggestionRequest(query="updated"))
    assert [suggestion.case_id for suggestion in suggestions] == [case_id]
    assert len(cbr_system.get_logs()) == 1
    assert cbr_system.delete_case(case_id)
    assert cbr_system.get_case_by_id(case_id) is None
    assert not cbr_system.delete_case(case_id)
    assert cbr_system.get_logs() == []


@pytest.mark.parametrize("cbr_system", ["sqlite"], indirect=True)
def test_orch_008_transactions(cbr_system: CBRSystem) -> None:
    case_id = cbr_system.add_case(
        {"query": "a question", "category_path": ["AI"], "content": "c", "quality_score": 0.9}
    )
    conn = cbr_system._get_connection()
    cursor = conn.cursor()

    cursor.execute("BEGIN TRANSACTION")
    cursor.execute("UPDATE cbr_cases SET quality_score = 0.5 WHERE case_id = ?", (case_id,))
    cursor.execute("ROLLBACK")

    case = cbr_system.get_case_by_id(case_id)
    assert case is not None
    assert case.quality_score != 0.5
    assert conn.isolation_level is None
    assert cursor.execute("pragma journal_mode").fetchone()[0] == "wal"

    cursor.execute("UPDATE cbr_cases SET query = 'other words' WHERE case_id = ?", (case_id,))
    suggestions, _ = cbr_system.suggest_cases(SuggestionRequest(query="other words"))
    assert [(each.case_id, each.similarity_score) for each in suggestions] == [(case_id, 1.0)]


def test_a_file_of_another_program_is_read(tmp_path: Path) -> None:
    """One with the columns of the acceptance texts alone."""
    connection = sqlite3.connect(tmp_path / "cbr_system.db")
    connection.execute(
        "CREATE TABLE cbr_cases (case_id TEXT PRIMARY KEY, query TEXT, category_path TEXT, content TEXT, "
        "quality_score REAL DEFAULT 0.0, usage_count INTEGER DEFAULT 0, success_rate REAL DEFAULT 0.0, "
        "metadata TEXT DEFAULT '{}', created_at TEXT, updated_at TEXT)"
    )
    row = ("old", "annual leave", '["HR"]', "26 days", "2025-01-01T00:00:00", "2025-01-01T00:00:00")
    connection.execute(
        "INSERT INTO cbr_cases (case_id, query, category_path, content, created_at, updated_at) VALUES (?,?,?,?,?,?)",
        row,
    )
    connection.commit()
    connection.close()
    with CBRSystem(tmp_path) as system:
        suggestions, _ = system.suggest_cases(SuggestionRequest(query="leave", category_path=["HR"]))
        assert [(each.case_id, each.similarity_score) for each in suggestions] == [("old", 0.5)]


def test_which_store_it_is(tmp_path: Path, databases: Databases, monkeypatch: pytest.MonkeyPatch) -> None:
    """D43: an explicit folder, the folder of the environment, the database."""
    in_settings(databases.settings(), monkeypatch)
    case = {"query": "q", "category_path": ["AI"], "content": "c"}
    with CBRSystem() as database:
        database.add_case(case, case_id="in-database")
        with pytest.raises(InvalidInput, match="data_dir"):
            database._get_connection()
    monkeypatch.setenv("CBR_DATA_DIR", str(tmp_path / "environment"))
    with CBRSystem() as environment, CBRSystem(tmp_path / "given") as given:
        environment.add_case(case, case_id="in-environment")
        assert given.get_case_by_id("in-environment") is None
        assert environment.get_case_by_id("in-database") is None
    assert (tmp_path / "environment" / "cbr_system.db").exists()
    with pytest.raises(NotOpened, match="Make another one"):
        given.get_stats()


def test_meanings_are_combined_with_words(tmp_path: Path) -> None:
    with CBRSystem(tmp_path, embedder=HashEmbedder()) as system:
        system.add_case({"query": "annual leave", "category_path": ["HR"], "content": "c"}, case_id="one")
        meaning = system._calculate_similarity("annual leave days", "annual leave", SimilarityMethod.SEMANTIC)
        request = SuggestionRequest(query="annual leave days", similarity_method=SimilarityMethod.SEMANTIC)
        (suggestion,), _ = system.suggest_cases(request)
        assert suggestion.similarity_method is SimilarityMethod.SEMANTIC
        assert suggestion.similarity_score == pytest.approx(
            MEANING_SHARE * meaning + (1 - MEANING_SHARE) * 2 / 3, abs=1e-5
        )
    with CBRSystem(tmp_path) as without:
        (suggestion,), _ = without.suggest_cases(request)
        assert (suggestion.similarity_method, suggestion.similarity_score) == (SimilarityMethod.COSINE, 2 / 3)
