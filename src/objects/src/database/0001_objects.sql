-- `spec` holds every field but `metadata` and `status`; for our kinds that is `{"spec": …}`.
CREATE TABLE objects (
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    uid TEXT NOT NULL,
    rv INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    metadata TEXT NOT NULL,
    spec TEXT NOT NULL,
    status TEXT,
    PRIMARY KEY (kind, namespace, name)
);
CREATE INDEX objects_namespace ON objects (namespace, kind, name);
CREATE UNIQUE INDEX objects_uid ON objects (uid);
CREATE UNIQUE INDEX objects_rv ON objects (rv);

-- The feed. `before_rv` is the change that made the state before this one; 0 for a new object. A change stays as long as a
-- newer one in the feed follows it or it is the state of an object, so that any moment of the feed can be listed.
CREATE TABLE changes (
    rv INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    uid TEXT NOT NULL,
    verb TEXT NOT NULL,
    before_rv INTEGER NOT NULL,
    object TEXT NOT NULL
);
CREATE INDEX changes_kind ON changes (kind, rv);
CREATE INDEX changes_before ON changes (before_rv);
CREATE INDEX changes_at ON changes (at);

CREATE TABLE tombstones (
    uid TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX tombstones_at ON tombstones (at);

-- Whom an object's owner references name.
CREATE TABLE owners (
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    owner TEXT NOT NULL,
    PRIMARY KEY (kind, namespace, name, owner)
) WITHOUT ROWID;
CREATE INDEX owners_owner ON owners (owner);

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- Who owns which fields; kept in the objects themselves.
CREATE VIEW applied AS
SELECT
    objects.kind AS kind,
    objects.namespace || '/' || objects.name AS key,
    json_extract(entry.value, '$.manager') AS manager,
    json_extract(entry.value, '$.operation') AS operation,
    json_extract(entry.value, '$.subresource') AS subresource,
    json_extract(entry.value, '$.fieldsV1') AS fields
FROM objects, json_each(objects.metadata, '$.managedFields') AS entry;
