-- How a release of the lock system `table` knows whether to tell anybody. See `src/lock/systems/table`; a test holds
-- this text against the one there. SQLite cannot tell, so there is nothing to mark there.
ALTER TABLE lock_lease
    -- Whether somebody was refused since the last grant, and waits for a release to be told.
    ADD COLUMN waited_for BOOLEAN NOT NULL DEFAULT FALSE;
