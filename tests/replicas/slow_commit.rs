//! A commit takes long, and the next buyer waits for the lock meanwhile.

use serde_json::json;
use sqlx::PgConnection;

use crate::support::{A, B, Database, PATIENCE, Replica, World, eventually};

/// What the commit of Ana's booking waits for. Her transaction has written by then, and nobody else sees that.
const COMMITS_SLOWLY: &str = "
    CREATE FUNCTION wait_at_commit() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock(36);
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER wait_at_commit
    AFTER INSERT ON booking DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.buyer = 'Ana') EXECUTE FUNCTION wait_at_commit();
";

/// Bug 36: the lock is given back when the commit has succeeded, so Ben reads what it left. Nothing but the lock is there
/// to keep him out.
#[tokio::test]
async fn is_over_before_the_next_holder_reads_on_postgres() {
    let world = World::own(Database::Postgres).with("etcd").start().await;
    let mut somebody = world.postgresql().await;
    run(&mut somebody, COMMITS_SLOWLY).await;
    for lock in [
        "redis",
        "redlock",
        "dynamodb",
        "table",
        "row",
        "zookeeper",
        "etcd",
    ] {
        let switches = json!({"lock": lock, "fencing": "off", "ttl_ms": 20_000, "wait_ms": 30_000});
        let room = world.room_with("slow-commit", switches).await;
        run(&mut somebody, "SELECT pg_advisory_lock(36)").await;

        let ana = room.books("Ana", "A1").on(A).starts();
        world.somebody_waits_for_a_row().await;
        let ben = room.books("Ben", "A1").on(B).starts();
        one_waits(&world, B, lock).await;
        ana.is_not_answered();
        run(&mut somebody, "SELECT pg_advisory_unlock(36)").await;

        ana.answer().await.is("booked");
        let ben = ben.answer().await;
        assert_eq!(ben.outcome(), "seat-taken", "under {lock}: {ben:?}");
        room.audit().await.is_clean_after(1);
    }
}

/// Waits until an attempt on this replica waits for the lock; under `row`, the database knows.
async fn one_waits(world: &World, replica: Replica, lock: &str) {
    let waiting = format!(r#"doublebook_lock_waiters{{lock="{lock}"}} 1"#);
    eventually("somebody who waits for the lock", PATIENCE, async || {
        let waits = match lock {
            "row" => rows_waited_for(world).await == 2,
            _ => world.get(replica, "/metrics").await.text.contains(&waiting),
        };
        waits
            .then_some(())
            .ok_or_else(|| format!("nobody, under {lock}"))
    })
    .await;
}

/// The commit, and whoever waits for a row.
async fn rows_waited_for(world: &World) -> i64 {
    let query = "SELECT count(*) FROM pg_stat_activity \
                 WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let mut looking = world.postgresql().await;
    let waiting = sqlx::query_scalar(query).fetch_one(&mut looking).await;
    waiting.expect("PostgreSQL answers")
}

async fn run(connection: &mut PgConnection, statements: &'static str) {
    let done = sqlx::raw_sql(statements).execute(connection).await;
    done.expect("it is done");
}
