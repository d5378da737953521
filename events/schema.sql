-- The ledger's layout. A ledger holds exactly these objects, byte for byte; `PRAGMA application_id` and `user_version` are set beside them.
-- Tables and triggers call no JSON function: older SQLite counts those as unsafe, and a careful reader opens with trusted_schema = OFF.
-- The triggers are a guard rail for honest mistakes; the evidence is the hash chain and a head kept elsewhere.

CREATE TABLE events(
  seq INTEGER PRIMARY KEY CHECK (seq > 0),
  stream TEXT NOT NULL CHECK (stream <> '' AND stream NOT GLOB '*[^ -~]*' AND length(stream) = length(CAST(stream AS BLOB))),
  version INTEGER NOT NULL CHECK (version > 0),
  type TEXT NOT NULL CHECK (type <> '' AND type NOT GLOB '*[^ -~]*' AND length(type) = length(CAST(type AS BLOB))),
  recorded_at TEXT NOT NULL CHECK (recorded_at <> '' AND recorded_at NOT GLOB '*[^ -~]*' AND length(recorded_at) = length(CAST(recorded_at AS BLOB))),
  payload TEXT NOT NULL,
  prev_hash TEXT NOT NULL,
  hash TEXT NOT NULL CHECK (length(hash) = 64)
) STRICT;

-- Not unique: a second UNIQUE column would let INSERT OR REPLACE delete an older row before the triggers below could object.
CREATE INDEX events_by_stream ON events(stream, version);

-- No rowid: the digest is the only key, so that no INSERT OR REPLACE can name an older row by another one.
CREATE TABLE artifacts(
  digest TEXT NOT NULL PRIMARY KEY CHECK (length(digest) = 64 AND digest NOT GLOB '*[^0-9a-f]*'),
  media_type TEXT NOT NULL,
  size INTEGER NOT NULL CHECK (size >= 0),
  codec TEXT NOT NULL CHECK (codec IN ('zlib', 'raw')),
  content BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER events_append BEFORE INSERT ON events BEGIN
  SELECT CASE
    WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM events)
      THEN RAISE(ABORT, 'events is append-only: seq must be the last seq + 1')
    WHEN NEW.version IS NOT (SELECT coalesce(max(version), 0) + 1 FROM events WHERE stream = NEW.stream)
      THEN RAISE(ABORT, 'events is append-only: version must be the last version of the stream + 1')
    WHEN NEW.prev_hash IS NOT coalesce((SELECT hash FROM events WHERE seq = NEW.seq - 1), '0000000000000000000000000000000000000000000000000000000000000000')
      THEN RAISE(ABORT, 'events is append-only: prev_hash must be the hash of the last row')
  END;
END;

CREATE TRIGGER events_no_update BEFORE UPDATE ON events BEGIN
  SELECT RAISE(ABORT, 'events is append-only: UPDATE refused');
END;

CREATE TRIGGER events_no_delete BEFORE DELETE ON events BEGIN
  SELECT RAISE(ABORT, 'events is append-only: DELETE refused');
END;

CREATE TRIGGER artifacts_append BEFORE INSERT ON artifacts BEGIN
  SELECT RAISE(ABORT, 'artifacts is append-only: the digest is stored already')
    WHERE EXISTS (SELECT 1 FROM artifacts WHERE digest = NEW.digest);
END;

CREATE TRIGGER artifacts_no_update BEFORE UPDATE ON artifacts BEGIN
  SELECT RAISE(ABORT, 'artifacts is append-only: UPDATE refused');
END;

CREATE TRIGGER artifacts_no_delete BEFORE DELETE ON artifacts BEGIN
  SELECT RAISE(ABORT, 'artifacts is append-only: DELETE refused');
END;

CREATE VIEW rounds AS
  SELECT
    seq,
    stream,
    json_extract(payload, '$.cell.problem') AS problem,
    json_extract(payload, '$.cell.contract') AS contract,
    json_extract(payload, '$.cell.pool') AS pool,
    json_extract(payload, '$.cell.arm') AS arm,
    json_extract(payload, '$.cell.repetition') AS repetition,
    json_extract(payload, '$.round') AS round,
    json_extract(payload, '$.rule') AS rule,
    json_extract(payload, '$.verdict') AS verdict,
    json_extract(payload, '$.reason') AS reason,
    json_extract(payload, '$.inert') AS inert,
    json_extract(payload, '$.interval.median') AS ratio,
    json_extract(payload, '$.interval.lower') AS lower,
    json_extract(payload, '$.interval.upper') AS upper,
    json_extract(payload, '$.credit') AS credit
  FROM events
  WHERE type = 'RoundJudged'
  ORDER BY seq;

CREATE VIEW rules AS
  SELECT
    stream,
    json_extract(payload, '$.rule') AS rule,
    json_extract(payload, '$.rule_version') AS rule_version,
    sum(type = 'RuleFired') AS fired,
    sum(type = 'RoundJudged' AND json_extract(payload, '$.credit') = 'success') AS success,
    sum(type = 'RoundJudged' AND json_extract(payload, '$.credit') = 'failure') AS failure,
    sum(type = 'RoundJudged' AND json_extract(payload, '$.credit') = 'neutral') AS neutral,
    sum(type = 'RuleRetired') AS retired,
    sum(type = 'RulePromoted') AS promoted
  FROM events
  WHERE type IN ('RuleFired', 'RoundJudged', 'RuleRetired', 'RulePromoted')
  GROUP BY stream, rule, rule_version
  ORDER BY min(seq);

CREATE VIEW claims AS
  SELECT
    stated.seq,
    stated.stream,
    json_extract(stated.payload, '$.claim') AS claim,
    json_extract(registered.value, '$.text') AS text,
    json_extract(registered.value, '$.problem') AS problem,
    json_extract(registered.value, '$.comparison') AS comparison,
    json_extract(registered.value, '$.at_least') AS at_least,
    json_extract(stated.payload, '$.answer') AS answer,
    json_extract(stated.payload, '$.medians') AS medians,
    json_extract(stated.payload, '$.lowers') AS lowers
  FROM events AS stated
  LEFT JOIN events AS registration ON registration.stream = stated.stream AND registration.version = 1 AND registration.type = 'RunRegistered'
  LEFT JOIN json_each(registration.payload, '$.claims') AS registered
    ON json_extract(registered.value, '$.claim') = json_extract(stated.payload, '$.claim')
  WHERE stated.type = 'ClaimStated'
  ORDER BY stated.seq;
