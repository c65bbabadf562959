CREATE TABLE relay_counter (
    id BIGINT PRIMARY KEY,
    value BIGINT NOT NULL
);
INSERT INTO relay_counter (id, value) VALUES (1, 0);

CREATE TABLE relay_decisions (
    tenant TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    created BIGINT NOT NULL,
    conversation TEXT COLLATE "C",
    kind TEXT NOT NULL,
    tier TEXT NOT NULL,
    source TEXT NOT NULL,
    profile TEXT COLLATE "C" NOT NULL,
    explored BIGINT NOT NULL,
    cost DOUBLE PRECISION,
    savings DOUBLE PRECISION,
    born_score DOUBLE PRECISION NOT NULL,
    corrected BIGINT NOT NULL,
    records BIGINT NOT NULL,
    client TEXT,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
);
-- Without `id`: a server that has not counted its rows yet takes an index with `tenant` and `id` for as good as the
-- primary key, and walks over all decisions of a tenant to find one.
CREATE INDEX relay_decisions_created ON relay_decisions (tenant, created);
CREATE INDEX relay_decisions_conversation ON relay_decisions (tenant, conversation, created)
    WHERE conversation IS NOT NULL;

CREATE TABLE relay_outcomes (
    tenant TEXT COLLATE "C" NOT NULL,
    decision TEXT COLLATE "C" NOT NULL,
    attempt BIGINT NOT NULL,
    recorded BIGINT NOT NULL,
    final BIGINT NOT NULL,
    counts BIGINT NOT NULL,
    corrected BIGINT NOT NULL,
    cost DOUBLE PRECISION,
    input_tokens BIGINT NOT NULL,
    cached_input_tokens BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    report TEXT NOT NULL,
    answer TEXT,
    PRIMARY KEY (tenant, decision, attempt),
    FOREIGN KEY (tenant, decision) REFERENCES relay_decisions (tenant, id) ON DELETE CASCADE
);

CREATE TABLE relay_escalations (
    tenant TEXT COLLATE "C" NOT NULL,
    decision TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    score DOUBLE PRECISION NOT NULL,
    recorded BIGINT NOT NULL,
    answer TEXT NOT NULL,
    PRIMARY KEY (tenant, decision, key)
);
CREATE INDEX relay_escalations_recorded ON relay_escalations (recorded);

CREATE TABLE relay_faults (
    tenant TEXT COLLATE "C" NOT NULL,
    decision TEXT COLLATE "C" NOT NULL,
    class TEXT NOT NULL,
    in_row BIGINT NOT NULL,
    recorded BIGINT NOT NULL,
    PRIMARY KEY (tenant, decision)
);
CREATE INDEX relay_faults_recorded ON relay_faults (recorded);

CREATE TABLE relay_quota (
    tenant TEXT COLLATE "C" NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    change BIGINT NOT NULL,
    recorded BIGINT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (tenant, provider)
);
CREATE INDEX relay_quota_change ON relay_quota (change);
CREATE INDEX relay_quota_recorded ON relay_quota (recorded);

CREATE TABLE relay_changes (
    change BIGINT PRIMARY KEY,
    recorded BIGINT NOT NULL,
    tenant TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX relay_changes_recorded ON relay_changes (recorded);

CREATE TABLE relay_imports (
    tenant TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    seen BIGINT NOT NULL,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX relay_imports_seen ON relay_imports (seen);

CREATE TABLE relay_datasets (
    tenant TEXT COLLATE "C" PRIMARY KEY,
    revision BIGINT NOT NULL,
    highest_session BIGINT NOT NULL,
    next_place BIGINT NOT NULL,
    change BIGINT NOT NULL
);
CREATE INDEX relay_datasets_change ON relay_datasets (change);

CREATE TABLE relay_rows (
    tenant TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    place BIGINT NOT NULL,
    line TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX relay_rows_place ON relay_rows (tenant, place);

CREATE TABLE relay_row_versions (
    tenant TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    revision BIGINT NOT NULL,
    line TEXT NOT NULL,
    PRIMARY KEY (tenant, id, revision)
);

CREATE TABLE relay_snapshots (
    tenant TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    read BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant, digest)
);
CREATE INDEX relay_snapshots_read ON relay_snapshots (read);
