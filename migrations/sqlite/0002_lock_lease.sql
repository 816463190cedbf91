-- The leases of the lock system `table`. See `src/lock/systems/table` for how they are taken; a test holds this text
-- against the one there.
CREATE TABLE lock_lease (
    -- What is locked. The key makes the upsert meet one row.
    lock_key TEXT PRIMARY KEY,
    -- The acquisition that holds it, or held it last; null after a release.
    owner TEXT,
    -- Grows with each grant. The row is never deleted, or it would begin anew.
    token INTEGER NOT NULL,
    -- When the lease is over, in ms since 1970, by the clock of the host.
    expires_at INTEGER NOT NULL
);
