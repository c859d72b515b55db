"""The rules that keep the schema ready for a cluster, read from the catalog and from the texts of the statements."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest

from dtrag.adapters.postgres.cluster import DISTRIBUTED as TABLES
from dtrag.adapters.postgres.cluster import REFERRING
from dtrag.adapters.postgres.database import migration_texts, scope_statement, split_statements
from dtrag.adapters.postgres.queries import queries
from dtrag.core.access.scope import Scope
from dtrag.core.document_listing import SORTS
from tests.cases import each
from tests.store import Databases, Store

DISTRIBUTED = list(TABLES)
SUBJECTS = (
    "agents",
    "approvals",
    "audit",
    "cases",
    "content",
    "editions",
    "evaluations",
    "folders",
    "imagined",
    "learning",
    "regulations",
    "conversations",
    "keys",
    "taxonomy_moves",
    "review",
    "search",
    "sessions",
    "taxonomy",
    "traces",
    "vectors",
    "writing",
)
STATEMENTS = {f"{subject}.{name}": text for subject in SUBJECTS for name, text in queries(subject).items()}
OURS = "c.relnamespace = 'dtrag'::regnamespace"

READ, WRITE = {"SELECT"}, {"SELECT", "INSERT", "UPDATE", "DELETE"}
GRANTS = {
    "taxonomy_versions": (READ, READ),
    "taxonomy_nodes": (READ, READ),
    "taxonomy_tree": (READ, READ),
    "index_settings": (READ, READ),
    "lexical_segments": (READ, set()),
    "lexical_corrections": (READ, set()),
    "lexical_index": (READ, set()),
    "embeddings": (READ, set()),
    "vector_spaces": (READ, READ),
    "waiting_documents": (READ, set()),
    "sentence_vectors": (set(), READ),
    "originals": (set(), READ),
    "passage_validity": (READ, READ),
    "evaluations": (set(), set()),
    "experiences": (set(), set()),
    "exploration": (set(), set()),
    "documents": (set(), READ),
    "chunks": (set(), READ),
    "imagined_questions": (set(), READ),
    "sources": (set(), set()),
    "edition_sources": (set(), set()),
    "migrations": (set(), set()),
    "taxonomy_activations": (READ, READ),
    "taxonomy_moves": (READ, READ),
    "agents": (READ, set()),
    "agent_manifests": (set(), set()),
    "agent_spending": (set(), set()),
    "public_spending": (set(), set()),
    "api_keys": (set(), set()),
    "sessions": (set(), set()),
    "people": (set(), set()),
    "review_queue": (set(), READ),
    "classification_signals": (set(), set()),
    "classification_placements": (set(), set()),
    "audit_log": (set(), set()),
    "approved_tools": (set(), set()),
    "rate_limits": (set(), set()),
    "source_items": (set(), set()),
    "source_nodes": (READ, set()),
    "source_groups": (READ, set()),
    "jobs": (set(), set()),
    "job_files": (set(), set()),
    "job_workers": (set(), set()),
    "job_locks": (set(), set()),
    "traces": (set(), set()),
    "answer_feedback": (set(), set()),
    "conversation_turns": (set(), set()),
    "conversations": (set(), set()),
    "cbr_cases": (set(), READ),
    "cbr_logs": (set(), READ),
    "cbr_votes": (set(), set()),
    "cbr_decisions": (set(), set()),
    "cbr_changes": (set(), set()),
    "cbr_revision": (set(), READ),
}
"""Table -> what the search role and what the reader may do with it; the owner writes all of them."""


LOCAL_LIMITS = {
    "audit.head": "number",
    "audit.page": "number",
    "audit.newest": "number",
    "review.waiting": "item_id",
    "review.surest_answer": "item_id",
    "review.answered": "item_id",
    "conversations.conversations": "c.conversation_id",
    "traces.newest": "trace_id",
    "traces.outcomes": "trace_id",
    "evaluations.newest": "run_id",
    "cases.changes": "h.revision",
    "cases.page": "case_id",
    "cases.without_vector": "case_id",
    "cases.nearest": "w.place",
    "cases.logs": "log_id",
    "cases.log_page": "log_id",
    "cases.most_used": "case_id",
    "cases.largest_categories": "node_id",
    "learning.trim": "experience_id",
    "vectors.waiting_questions": "number",
}
"""Statements with a limit over tables of their own, and their keys."""


@pytest.fixture(scope="module")
def store(databases_of_module: Databases) -> Store:
    """One database for all tests here: they only read its catalog."""
    return databases_of_module.store(databases_of_module.settings())


def test_every_table_is_listed_here(store: Store) -> None:
    tables = store.rows(f"select relname::text from pg_class c where {OURS} and relkind in ('r', 'p')")
    assert {name for (name,) in tables} == set(GRANTS)


@each("table", DISTRIBUTED)
def test_the_key_starts_with_the_document(store: Store, table: str) -> None:
    columns = store.value(
        "select array_agg(a.attname::text order by k.place) from pg_constraint n,"
        " unnest(n.conkey) with ordinality k (number, place), pg_attribute a"
        " where n.conrelid = %s::regclass and n.contype = 'p' and a.attrelid = n.conrelid and a.attnum = k.number",
        table,
    )
    keys = {
        "documents": [],
        "waiting_documents": [],
        "originals": [],
        "passage_validity": ["first"],
        "imagined_questions": ["text_hash", "number"],
    }
    second = keys.get(table, ["ordinal"])
    assert columns == ["document_id", *second]


def test_every_unique_index_holds_the_document(store: Store) -> None:
    without = store.rows(
        "select i.indexrelid::regclass::text from pg_index i where i.indrelid = any (%s::regclass[]) and i.indisunique"
        " and not exists (select from pg_attribute a where a.attrelid = i.indrelid and a.attnum = any (i.indkey)"
        " and a.attname = 'document_id')",
        DISTRIBUTED,
    )
    assert without == []


def test_the_document_is_a_uuid_from_outside(store: Store) -> None:
    types = store.rows(
        "select distinct format_type(atttypid, atttypmod), atthasdef from pg_attribute"
        " where attrelid = any (%s::regclass[]) and attname = 'document_id'",
        DISTRIBUTED,
    )
    assert types == [("uuid", False)]


def test_there_are_no_sequences(store: Store) -> None:
    assert store.rows(f"select relname from pg_class c where {OURS} and relkind = 'S'") == []
    identity = "select attname from pg_attribute a join pg_class c on c.oid = attrelid where {} and attidentity <> ''"
    assert store.rows(identity.format(OURS)) == []


def test_no_default_is_volatile(store: Store) -> None:
    defaults = store.rows(
        "select c.relname, pg_get_expr(d.adbin, d.adrelid) from pg_attrdef d join pg_class c on c.oid = d.adrelid"
        f" where {OURS} and pg_get_expr(d.adbin, d.adrelid) ~ '\\('"
    )
    assert defaults == []


def test_there_are_no_triggers_of_ours(store: Store) -> None:
    assert (
        store.rows(
            f"select tgname from pg_trigger t join pg_class c on c.oid = t.tgrelid where {OURS} and not tgisinternal"
        )
        == []
    )
    assert (
        store.rows(
            f"select rulename from pg_rewrite r join pg_class c on c.oid = r.ev_class where {OURS} and c.relkind = 'r'"
        )
        == []
    )


def test_no_other_table_refers_to_a_distributed_one(store: Store) -> None:
    """A foreign key from a local table to a distributed one is accepted by a cluster, and then not kept."""
    keys = store.rows(
        "select conrelid::regclass::text, confrelid::regclass::text,"
        " (select attname::text from pg_attribute where attrelid = conrelid and attnum = conkey[1])"
        " from pg_constraint where contype = 'f' and confrelid = any (%s::regclass[])",
        DISTRIBUTED,
    )
    assert sorted(keys) == [(table, "documents", "document_id") for table in sorted(REFERRING)]


def test_no_distributed_table_refers_to_another_one_than_documents(store: Store) -> None:
    keys = (
        "select distinct confrelid::regclass::text from pg_constraint"
        " where contype = 'f' and conrelid = any (%s::regclass[])"
    )
    assert store.rows(keys, DISTRIBUTED) == [("documents",)]


def test_row_security_is_forced_on_content(store: Store) -> None:
    secured = store.rows(
        f"select relname::text, relrowsecurity, relforcerowsecurity from pg_class c where {OURS} and relkind = 'r'"
        " and (relrowsecurity or relforcerowsecurity) order by 1"
    )
    assert secured == [
        (table, True, True)
        for table in (
            "cbr_cases",
            "cbr_logs",
            "chunks",
            "documents",
            "imagined_questions",
            "originals",
            "sentence_vectors",
        )
    ]


def test_the_policies_are_these(store: Store) -> None:
    policies = store.rows(
        "select tablename::text, roles::text, cmd, permissive, qual from pg_policies where schemaname = 'dtrag'"
    )
    assert sorted((table, roles, cmd) for table, roles, cmd, _, _ in policies) == [
        ("cbr_cases", "{dtrag_owner}", "ALL"),
        ("cbr_cases", "{dtrag_reader}", "SELECT"),
        ("cbr_logs", "{dtrag_owner}", "ALL"),
        ("cbr_logs", "{dtrag_reader}", "SELECT"),
        ("chunks", "{dtrag_owner}", "ALL"),
        ("chunks", "{dtrag_reader}", "SELECT"),
        ("documents", "{dtrag_owner}", "ALL"),
        ("documents", "{dtrag_reader}", "SELECT"),
        ("documents", "{dtrag_search}", "SELECT"),
        ("imagined_questions", "{dtrag_owner}", "ALL"),
        ("imagined_questions", "{dtrag_reader}", "SELECT"),
        ("imagined_questions", "{dtrag_search}", "SELECT"),
        ("originals", "{dtrag_owner}", "ALL"),
        ("originals", "{dtrag_reader}", "SELECT"),
        ("sentence_vectors", "{dtrag_owner}", "ALL"),
        ("sentence_vectors", "{dtrag_reader}", "SELECT"),
    ]
    for table, roles, _, _, text in policies:
        if roles == "{dtrag_reader}":
            once = "" if table == "originals" else "SELECT.*"  # rows of it are read one by one
            for setting in ("dtrag.scope", "dtrag.full_scope"):
                assert re.search(rf"{once}NULLIF\(current_setting\('{setting}'::text, true\), ''::text\)", text)


@each("role, place", [("dtrag_search", 0), ("dtrag_reader", 1)])
def test_each_role_may_do_just_this(store: Store, role: str, place: int) -> None:
    found: dict[str, set[str]] = {table: set() for table in GRANTS}
    for table, privilege in store.rows(
        "select c.relname::text, p from pg_class c,"
        " unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE',"
        f" 'REFERENCES', 'TRIGGER', 'MAINTAIN']) p where {OURS} and relkind = 'r'"
        " and has_table_privilege(%s, c.oid, p)",
        role,
    ):
        found[table].add(privilege)
    assert found == {table: grants[place] for table, grants in GRANTS.items()}


def test_the_search_role_sees_only_facts_of_documents(store: Store) -> None:
    columns = store.rows(
        "select attname::text from pg_attribute where attrelid = 'documents'::regclass and attnum > 0"
        " and has_column_privilege('dtrag_search', attrelid, attnum, 'SELECT') order by 1"
    )
    facts = ["content_type", "document_id", "language", "node_id", "processed_at", "segment_id"]
    assert [name for (name,) in columns] == facts
    assert not store.value(
        "select has_column_privilege('dtrag_search', 'imagined_questions'::regclass, 'question', 'SELECT')"
    )
    writable = store.rows(
        "select attname, attrelid::regclass from pg_attribute a join pg_class c on c.oid = attrelid"
        f" where {OURS} and relkind = 'r' and attnum > 0 and (has_column_privilege('dtrag_search', attrelid, attnum,"
        " 'INSERT, UPDATE') or has_column_privilege('dtrag_reader', attrelid, attnum, 'INSERT, UPDATE'))"
    )
    assert writable == []


def test_the_owner_owns_everything_and_other_roles_create_nothing(store: Store) -> None:
    assert store.rows(f"select distinct relowner::regrole::text from pg_class c where {OURS}") == [("dtrag_owner",)]
    for role in ("dtrag_search", "dtrag_reader", "public"):
        assert not store.value("select has_schema_privilege(%s, 'dtrag', 'CREATE')", role), role


def test_functions_of_the_owner(store: Store) -> None:
    functions = store.rows(
        "select proname::text, prosecdef, lanname::text, proconfig::text,"
        " has_function_privilege('dtrag_search', p.oid, 'EXECUTE'),"
        " has_function_privilege('dtrag_reader', p.oid, 'EXECUTE'), has_function_privilege('public', p.oid, 'EXECUTE')"
        " from pg_proc p join pg_language l on l.oid = prolang where pronamespace = 'dtrag'::regnamespace"
    )
    path = '{"search_path=dtrag, public, pg_temp"}'
    of_caller = (
        ("check_job", False, "plpgsql", None, False, False, False),  # of the owner
        ("document_text", False, "sql", None, False, True, False),
        ("passages_in_scope", False, "plpgsql", None, False, True, False),
    )
    assert sorted(functions) == sorted(
        [
            *of_caller,  # the policies decide
            *(
                (name, True, "plpgsql", path, True, False, False)
                for name in ("documents_having", "strict_among", "strict_candidates")
            ),
        ]
    )


@each("name", STATEMENTS)
def test_statements_keep_the_rules(name: str) -> None:
    text = " ".join(STATEMENTS[name].lower().split())
    assert not re.search(r"\bset_config\b|\bmerge\b|\blateral\b", text)
    assert not re.search(r"\b(?:now|clock_timestamp|random|gen_random_uuid|uuidv7)\s*\(|\bcurrent_timestamp\b", text)
    assert ";" not in text
    if "on conflict" in text and "do nothing" not in text:
        changes = text.partition("do update set")[2].partition(" returning ")[0].partition(" where ")[0]
        assert changes
        for change in changes.split(","):
            assert re.fullmatch(r"\s*(\w+) = (?:\w+\.\1 \+ )?excluded\.\1\s*", change), change
    assert not re.search(
        r"update (?:documents|chunks|lexical_index|embeddings|sentence_vectors|originals) set document_id", text
    )
    if re.match(r"set\b", text):
        assert re.fullmatch(r"set local [\w.]+ = \S+", text)


def _blocks(text: str) -> list[tuple[str, str]]:
    """The selects of a statement: each with what is in parentheses left out, and all that is in the ones around it."""
    blocks, open_blocks = [], [[""]]
    for piece in re.split(r"([()])", text):
        if piece == "(":
            open_blocks.append([""])
        elif piece == ")" and len(open_blocks) > 1:
            own = open_blocks.pop()[0]
            blocks.append((own, " ".join(outer[0] for outer in open_blocks)))
            open_blocks[-1][0] += f"({own})" if not re.match(r"\s*(?:select|with)\b", own) else "()"
        else:
            open_blocks[-1][0] += piece
    return [*blocks, (open_blocks[0][0], "")]


def _sources(block: str) -> dict[str, str]:
    """Alias -> table, of a select."""
    found = re.findall(
        r"(?:\bfrom|\bjoin|\bupdate|\binto|,) (\w+)(?: (?:as )?(?!on\b|where\b|set\b|left\b|join\b)(\w+))?", block
    )
    return {alias or table: table for table, alias in found if table in GRANTS}


@each("name", STATEMENTS)
def test_statements_run_on_a_cluster(name: str) -> None:
    """What Citus refuses, or answers differently: seen on a cluster (docs/how-to/citus.md)."""
    text = " ".join(STATEMENTS[name].lower().split())
    assert not re.search(r"select from", text), "a select without columns is an empty result there"
    if "{filters}" in text:
        [table] = set(re.findall(r"(?:from|join) (\w+) i\b", text))
        assert table in DISTRIBUTED, "no conditions on the rows of a function"
    for own, around in _blocks(text):
        here = set(_sources(own).values())
        if here & set(DISTRIBUTED):
            for function in (
                "document_text",
                "documents_having",
                "strict_candidates",
                "strict_among",
                "passages_in_scope",
            ):
                assert f"{function}(" not in own, "no server runs a function that reads tables"
        elsewhere = _sources(around) | dict.fromkeys(re.findall(r"\bas (\w+) \(", around), "function")
        for alias, table in elsewhere.items():
            if here and (table in DISTRIBUTED) is not bool(here & set(DISTRIBUTED)):
                assert not re.search(rf"\b{alias}\.", own), f"a sub-select refers to {table}, which is elsewhere"


def test_the_conversion_shows_what_the_policies_show(store: Store) -> None:
    """Its policies are those of the migrations without sub-selects, and without a join of cases with documents."""
    confined = queries("cluster")
    [plain] = re.findall(r"using \((.*)\)", " ".join(confined["confine_documents"].split()))
    policies = (
        "select tablename::text, qual from pg_policies"
        " where schemaname = 'dtrag' and roles = array['dtrag_reader']::name[]"
    )
    for table, flat in store.rows(policies):
        if table in DISTRIBUTED:
            assert _bare(flat) == _bare(plain)
        else:
            name = "confine_cases" if table == "cbr_cases" else "confine_logs"
            assert _bare(flat).startswith(_bare(confined[name].partition("using (")[2].partition("and dtrag.sees")[0]))
    assert "select" not in plain


def _bare(condition: str) -> str:
    return re.sub(r"::\w+|\bselect\b|as \"nullif\"|\s|[()\[\]]", "", condition.lower())


def test_later_migrations_run_on_a_converted_database() -> None:
    """Those after the first that was made for a cluster: they meet distributed tables."""
    for name, text in migration_texts().items():
        for statement in split_statements(text) if name > "0031_ready" else ():
            flat = " ".join(statement.lower().split())
            assert not re.match(r"create (?:or replace )?(?:trigger|rule)|do\b", flat), name
            tables = set(re.findall(r"\b\w+\b", flat)) & set(DISTRIBUTED)
            if re.match(r"(?:create|alter) policy", flat):
                on = re.findall(r" on (?:dtrag\.)?(\w+)", flat)[0]
                assert on not in DISTRIBUTED or "select" not in flat.partition(" using ")[2], name
                assert on in DISTRIBUTED or "documents" not in tables, name
            if match := re.match(r"create table (?:if not exists )?(\w+)", flat):
                assert "references documents" not in flat or match[1] in REFERRING, name


def test_every_limit_has_a_total_order() -> None:
    """Ties would fall otherwise on another machine; the order ends in the key."""
    limited = {
        name: " ".join(text.lower().split()) for name, text in STATEMENTS.items() if re.search(r"\blimit [%\d]", text)
    }
    assert set(limited) == {
        *(f"content.documents_{sort}" for sort in SORTS),
        "content.passage_spans",
        "content.sample",
        "folders.read_documents_of",
        "search.strict",
        "search.strict_among",
        "search.vector_nearest",
        "search.vector_exact",
        "search.vector_count",
        "search.vectors_after",
        "search.imagined_nearest",
        "search.imagined_exact",
        "search.imagined_count",
        "search.imagined_by_words",
        "imagined.all",
        "imagined.with",
        "imagined.without",
        "writing.documents_of_source",
        "writing.read_documents",
        *LOCAL_LIMITS,
        "taxonomy.examples",
        "vectors.waiting_documents",
        "vectors.waiting_passages",
        "vectors.waiting_sentence_documents",
        "vectors.waiting_sentence_passages",
    }
    for name, text in limited.items():
        if name in {"search.vector_count", "search.imagined_count"}:
            assert "order by" not in text  # counts up to the limit: any rows will do
            continue
        last = text.rpartition("order by")[2].partition(" limit")[0]
        if name in LOCAL_LIMITS:
            assert re.search(rf"(?:^|, |q\.){LOCAL_LIMITS[name]}(?: desc)?$", last.strip()), name
            continue
        key = (
            r"(?:\w\.)?document_id(?: desc)?$"
            if "documents" in name or name == "taxonomy.examples"
            else r"\w\.document_id, \w\.ordinal$"
        )
        assert re.search(key, last), name


def test_settings_of_a_transaction_are_statements_of_their_own() -> None:
    for scope in (Scope.everything(), Scope(frozenset()), Scope(frozenset({3, 1}))):
        text = scope_statement(scope.nodes).decode()
        assert re.fullmatch(r"set local dtrag\.(?:full_scope = 'on'|scope = '\{[0-9,]*\}')", text)
    code = resources.files("dtrag.adapters.postgres")
    for entry in code.iterdir():
        if entry.name.endswith(".py"):
            text = entry.read_text("utf-8")
            assert "set_config" not in text
            for setting in re.findall(r'"(set local [^"]*)"', text, re.I):
                assert ";" not in setting
                assert setting.count("set local") == 1


def test_statements_are_in_sql_files_only() -> None:
    package = Path(str(resources.files("dtrag")))
    inline = re.compile(r"\b(?:execute|SQL)\(\s*f?[\"']")
    assert [str(file) for file in package.rglob("*.py") if inline.search(file.read_text("utf-8"))] == []
