//! Alice gives 10 to bob while bob gives 10 to alice, on two replicas.

use serde_json::json;
use sqlx::{AssertSqlSafe, PgConnection};

use crate::support::{A, Answer, Attempt, B, Database, Room, World, soak};

under_each_lock!(ends_in_a_timeout_as_given_under: redis, redlock, dynamodb, table, zookeeper, etcd);

under_each_lock!(a_wait_in_vain_for_the_second_lock_is_no_hold_under: redis, table);

#[tokio::test]
async fn a_wait_in_vain_for_the_second_row_is_no_hold_on_postgres() {
    a_wait_in_vain_for_the_second_lock_is_no_hold_under(Database::Postgres, "row").await;
}

under_each_lock!(succeeds_sorted_under: redis, redlock, dynamodb, table, row, zookeeper, etcd);

/// Each has its first lock and asks for the other one's: nobody can get both, five times of five.
async fn ends_in_a_timeout_as_given_under(database: Database, lock: &str) {
    let world = World::for_lock(database, lock).await;
    let switches = json!({"lock": lock, "order": "as_given", "wait_ms": 2000, "ttl_ms": 20_000});
    let room = world.room_with("as-given", switches).await;

    for _ in 0..5 {
        let [there, back] = both_at_their_first_lock(&room).await;
        let outcomes = [there.outcome(), back.outcome()];
        let late = outcomes.iter().filter(|one| *one == "lock-timeout").count();
        assert!(late >= 1, "{outcomes:?}");
        let done = outcomes.iter().filter(|one| *one == "transferred").count();
        assert_eq!(late + done, 2, "{outcomes:?}");
    }
    let audit = room.audit().await;
    assert!(audit.clean, "a refused transfer leaves nothing: {audit:?}");
}

/// It is held from the grant of all locks: who waited for the second one in vain has held nothing.
async fn a_wait_in_vain_for_the_second_lock_is_no_hold_under(database: Database, lock: &str) {
    let world = World::for_lock(database, lock).await;
    let switches = json!({"lock": lock, "order": "as_given", "wait_ms": 600, "ttl_ms": 20_000});
    let room = world.room_with("no-hold", switches).await;
    let carol = room.transfers("bob", "carol", "1.00").on(B);
    let carol = carol.pausing_at("after_read").at_gate("g").starts();
    room.one_waits_at_gate("g", B, "after_read").await;
    let answer = room.transfers("alice", "bob", "1.00").on(A).await;
    answer.is("lock-timeout");
    assert_eq!(answer.timing("hold"), 0.0, "{answer:?}");
    assert!(answer.timing("wait") >= 500.0, "{answer:?}");
    room.opens("g").await;
    let answer = carol.answer().await;
    answer.is("transferred");
    assert!(answer.timing("hold") > 0.0, "{answer:?}");
}

/// The rows are the locks, and PostgreSQL ends one of the two.
#[tokio::test]
async fn ends_in_a_deadlock_as_given_under_row_on_postgres() {
    let world = World::shared(Database::Postgres).await;
    // The server looks for deadlocks after one second, well before this is over.
    let switches = json!({"lock": "row", "order": "as_given", "wait_ms": 20_000});
    let room = world.room_with("deadlock", switches).await;

    let answers = both_at_their_first_lock(&room).await;
    let mut outcomes = answers.map(|answer| answer.outcome());
    outcomes.sort();
    assert_eq!(outcomes, ["deadlock", "transferred"]);
    room.audit().await.is_clean_after(1);
}

/// A stranger takes the rows the other way round, and the database ends the transfer's transaction for it. Sorted, the
/// transfer tries again within its `wait_ms`, and succeeds when the stranger is gone.
#[tokio::test]
async fn with_a_stranger_is_tried_again_under_row_on_postgres() {
    let world = World::own(Database::Postgres).start().await;
    let switches = json!({"lock": "row", "wait_ms": 30_000});
    let room = world.room_with("stranger", switches).await;

    // Whose deadlock is found first is ended; each looks once, a second after it began to wait.
    for _ in 0..10 {
        let mut stranger = world.postgresql().await;
        run(&mut stranger, "BEGIN").await.expect("it begins");
        run(&mut stranger, &touch(&room, "bob"))
            .await
            .expect("bob is free");
        let transfer = room.transfers("alice", "bob", "1.00");
        let transfer = transfer.starts();
        world.somebody_waits_for_a_row().await;
        let stranger_was_ended = run(&mut stranger, &touch(&room, "alice")).await.is_err();
        run(&mut stranger, "ROLLBACK").await.expect("it ends");
        let answer = transfer.answer().await;
        answer.is("transferred");
        if !stranger_was_ended {
            let steps = world
                .get(
                    A,
                    &format!(
                        "/peer/attempts/{}",
                        answer.json()["attempt"].as_str().expect("its attempt")
                    ),
                )
                .await;
            assert!(steps.text.contains(r#""kind":"anew""#), "{}", steps.text);
            return;
        }
    }
    panic!("the stranger was ended each time");
}

/// The database ends transactions for other reasons, too: a conflict between snapshots, or a standby. A trigger does it
/// here, to the write of the row and then to the commit. Sorted, the transfer begins anew within its `wait_ms`.
#[tokio::test]
async fn with_a_serialization_failure_is_tried_again_under_row_on_postgres() {
    let world = World::own(Database::Postgres).start().await;
    let room = world
        .room_with("conflict", json!({"lock": "row", "wait_ms": 30_000}))
        .await;
    let mut somebody = world.postgresql().await;
    for when in [
        "BEFORE UPDATE ON wallet",
        "AFTER INSERT ON transfer DEFERRABLE INITIALLY DEFERRED",
    ] {
        run(&mut somebody, &fails_three_times(when))
            .await
            .expect("a trigger");
        let answer = room
            .transfers("alice", "bob", "1.00")
            .starts()
            .answer()
            .await;
        answer.is("transferred");
        let attempt = answer.json()["attempt"]
            .as_str()
            .expect("its attempt")
            .to_owned();
        let steps = world.get(A, &format!("/peer/attempts/{attempt}")).await;
        let anew = steps.text.matches(r#""kind":"anew""#).count();
        assert_eq!(anew, 3, "{when}: {}", steps.text);
    }
    // As given, whoever asks is told.
    room.switches(json!({"order": "as_given"})).await;
    run(&mut somebody, &fails_three_times("BEFORE UPDATE ON wallet"))
        .await
        .expect("a trigger");
    let answer = room
        .transfers("alice", "bob", "1.00")
        .starts()
        .answer()
        .await;
    answer.is("deadlock");
    room.audit().await.is_clean_after(2);
}

/// A trigger that lets nothing through three times. A sequence counts, since no rollback takes its numbers back.
fn fails_three_times(when: &str) -> String {
    let constraint = if when.contains("DEFERRABLE") {
        "CONSTRAINT "
    } else {
        ""
    };
    format!(
        "DROP FUNCTION IF EXISTS conflict CASCADE;
         DROP SEQUENCE IF EXISTS conflicts;
         CREATE SEQUENCE conflicts;
         CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             IF nextval('conflicts') <= 3 THEN
                 RAISE EXCEPTION 'a conflict' USING ERRCODE = 'serialization_failure';
             END IF;
             RETURN NEW;
         END $$;
         CREATE {constraint}TRIGGER conflict {when} FOR EACH ROW EXECUTE FUNCTION conflict();"
    )
}

fn touch(room: &Room, wallet: &str) -> String {
    format!(
        "UPDATE wallet SET position = position WHERE name = '{wallet}' \
         AND room_id = (SELECT room_id FROM room WHERE name = '{}')",
        room.name
    )
}

async fn run(connection: &mut PgConnection, statement: &str) -> sqlx::Result<()> {
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))
        .execute(connection)
        .await
        .map(drop)
}

/// There is one lock for the whole file, so nobody can have half of what he needs. The page says so.
#[tokio::test]
async fn succeeds_as_given_under_row_on_sqlite() {
    let world = World::own(Database::Sqlite).start().await;
    let switches = json!({"lock": "row", "order": "as_given", "think_ms": 20});
    let room = world.room_with("one-lock", switches).await;

    for _ in 0..10 {
        for answer in both_at_once(&room).await {
            answer.is("transferred");
        }
    }
    room.audit().await.is_clean_after(20);

    let page = world.get(A, &format!("/rooms/{}", room.name)).await;
    assert!(page.text.contains("whole file"), "{}", page.text);
}

/// Both ask for alice first: one of them waits, and both get their turn, 100 times.
async fn succeeds_sorted_under(database: Database, lock: &str) {
    let world = World::for_lock(database, lock).await;
    let switches = json!({"lock": lock, "think_ms": 5, "ttl_ms": 20_000, "wait_ms": 30_000});
    let room = world.room_with("sorted", switches).await;

    let runs = 100 * soak();
    for run in 0..runs {
        for answer in both_at_once(&room).await {
            assert_eq!(answer.outcome(), "transferred", "run {run}: {answer:?}");
        }
    }
    assert_eq!(room.balance("alice").await, "100.00");
    assert_eq!(room.balance("bob").await, "100.00");
    room.audit().await.is_clean_after(2 * runs as u64);
}

async fn both_at_once(room: &Room) -> [Answer; 2] {
    let there = room.transfers("alice", "bob", "10.00").on(A).starts();
    let back = room.transfers("bob", "alice", "10.00").on(B).starts();
    [there.answer().await, back.answer().await]
}

/// Lets both go when each holds the lock of its giver and not yet that of its taker.
async fn both_at_their_first_lock(room: &Room) -> [Answer; 2] {
    let gated = |attempt: Attempt| attempt.pausing_at("after_grant").at_gate("both").starts();
    let there = gated(room.transfers("alice", "bob", "10.00").on(A));
    let back = gated(room.transfers("bob", "alice", "10.00").on(B));
    room.both_wait_at_gate("both", "after_grant").await;
    room.opens("both").await;
    [there.answer().await, back.answer().await]
}
