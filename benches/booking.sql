-- A booking as a replica makes it under lock=redis with the fence on: the same statements in the same transactions and
-- round trips, for pgbench. A test compares them with what the server logs.
--
-- Variables: room, room_id, epoch and i with -D. Each client books seats of its own, over and over; what its claims ask
-- for holds every time, since its token rises from i: give each run an i above all that was reached before.
\set i :i + 1
\set token :i + 1
\set seat :client_id * 5000 + 1 + :i % 5000

SELECT room.room_id, room.epoch, room.switches, lock_server.server_id, lock_server.address,
       EXISTS (SELECT 1 FROM seat WHERE seat.room_id = room.room_id AND seat.name = :seat)
         AS row_0
FROM room
LEFT JOIN lock_server ON lock_server.lock_system = room.lock_system
WHERE room.name = :room;

-- The lock is granted here, and the epoch is read again.
SELECT epoch
FROM room
WHERE room_id = :room_id;

UPDATE seat
SET fence_epoch = :epoch, fence = :token
WHERE room_id = :room_id
  AND name = :seat
  AND (fence_epoch, fence) < (:epoch, :token)
  AND (SELECT set_config('synchronous_commit', 'off', TRUE)) = 'off'
  AND (SELECT set_config('lock_timeout', :limit, TRUE)) IS NOT NULL
RETURNING version, fence_epoch, fence, state, buyer;

\startpipeline
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL statement_timeout = 6000;
\endpipeline
WITH written AS (
    UPDATE seat
    SET state = 'sold', buyer = :buyer, version = version + 1, fence_epoch = :epoch, fence = :token
    WHERE room_id = :room_id
      AND name = :seat
      AND (fence_epoch, fence) = (:epoch, :token)
      AND :compared = 0
    RETURNING version
)
INSERT INTO booking (
    booking_id, room_id, attempt, replica, lock_system, epoch,
    seat, buyer, token, version_read, version_written
)
SELECT :uuid, :room_id, :uuid, :replica, :lock, :epoch, :seat, :buyer, :token, :version, version
FROM written;
COMMIT;
