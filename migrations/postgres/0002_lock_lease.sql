-- The leases of the lock system `table`. See `src/lock/systems/table` for how they are taken; a test holds this text
-- against the one there.
CREATE TABLE lock_lease (
    -- What is locked. The key makes the upsert meet one row.
    lock_key TEXT PRIMARY KEY,
    -- The acquisition that holds it, or held it last; null after a release.
    owner TEXT,
    -- Grows with each grant. The row is never deleted, or it would begin anew.
    token BIGINT NOT NULL,
    -- When the lease is over, by the clock of the database.
    expires_at TIMESTAMPTZ NOT NULL
);
