-- The business tables. Two rules hold for all of them:
--
-- 1. There is NO unique constraint on "one booking per seat" and NO check on balances, on purpose. They would
--    hide every failure of a lock, and to make such failures visible is what doublebook is for. The switch
--    `compare` plays their part and can be switched on.
-- 2. There are no foreign keys from bookings, transfers, seats and wallets to their room: a key check takes a
--    share lock on the room's row, and a reset, which holds that row, would deadlock with the attempts it waits for.

-- Numbers that only grow, also when a room is deleted and made again.
CREATE TABLE counter (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
);
INSERT INTO counter (name, value) VALUES ('epoch', 0);

CREATE TABLE room (
    room_id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL CONSTRAINT room_name_is_unique UNIQUE,
    epoch INTEGER NOT NULL,
    seat_rows INTEGER NOT NULL,
    seat_columns INTEGER NOT NULL,
    -- All switches as one JSON object: a new switch needs no migration.
    switches TEXT NOT NULL,
    -- A copy of the switch `lock`, so that loading a room can join the server that the lock lives on.
    lock_system TEXT NOT NULL
);

-- `version` counts writes; (`fence_epoch`, `fence`) is the highest stamp that a write or a claim has left.
CREATE TABLE seat (
    room_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    row_number INTEGER NOT NULL,
    column_number INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'free',
    buyer TEXT,
    version INTEGER NOT NULL DEFAULT 0,
    fence_epoch INTEGER NOT NULL DEFAULT 0,
    fence INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (room_id, name)
);

-- Money is whole cents: SQLite has no decimal type, and a float would lose some.
CREATE TABLE wallet (
    room_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    position INTEGER NOT NULL,
    opening INTEGER NOT NULL,
    balance INTEGER NOT NULL,
    version INTEGER NOT NULL DEFAULT 0,
    fence_epoch INTEGER NOT NULL DEFAULT 0,
    fence INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (room_id, name)
);

-- `seq` is drawn after the seat's row was updated, so it follows the order of the commits of one seat and can be
-- held against the order of the tokens. Two bookings that read the same version are a double booking.
CREATE TABLE booking (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    booking_id TEXT NOT NULL,
    room_id INTEGER NOT NULL,
    attempt TEXT NOT NULL,
    replica TEXT NOT NULL,
    lock_system TEXT,
    epoch INTEGER NOT NULL,
    seat TEXT NOT NULL,
    buyer TEXT NOT NULL,
    token INTEGER,
    version_read INTEGER NOT NULL,
    version_written INTEGER NOT NULL
);
-- The audit asks per room, grouped by seat.
CREATE INDEX booking_by_seat ON booking (room_id, seat, seq);

CREATE TABLE transfer (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    transfer_id TEXT NOT NULL,
    room_id INTEGER NOT NULL,
    attempt TEXT NOT NULL,
    replica TEXT NOT NULL,
    lock_system TEXT,
    epoch INTEGER NOT NULL,
    amount INTEGER NOT NULL,
    from_wallet TEXT NOT NULL,
    from_token INTEGER,
    from_version_read INTEGER NOT NULL,
    from_version_written INTEGER NOT NULL,
    to_wallet TEXT NOT NULL,
    to_token INTEGER,
    to_version_read INTEGER NOT NULL,
    to_version_written INTEGER NOT NULL
);
-- The audit adds up what each wallet gave and got.
CREATE INDEX transfer_by_giver ON transfer (room_id, from_wallet);
CREATE INDEX transfer_by_taker ON transfer (room_id, to_wallet);

-- The last race of each room, as it was answered.
CREATE TABLE race (
    room_id INTEGER PRIMARY KEY,
    result TEXT NOT NULL
);

-- Where the replicas of this database can be reached. Who is alive is asked over HTTP, never read here.
CREATE TABLE replica (
    name TEXT PRIMARY KEY,
    url TEXT NOT NULL,
    pid INTEGER NOT NULL
);

-- The random id that each lock server holds: two replicas whose servers differ do not share a lock.
CREATE TABLE lock_server (
    lock_system TEXT PRIMARY KEY,
    server_id TEXT NOT NULL,
    address TEXT NOT NULL
);
