//! What the log of a replica says of an attempt.

use serde_json::{Value, json};

use crate::support::{
    A, Database, PATIENCE, Process, Scratch, World, client, eventually, free_ports,
};

const SOLD: &str = "11111111-1111-4111-8111-111111111111";
const REFUSED: &str = "22222222-2222-4222-8222-222222222222";

#[tokio::test]
async fn each_attempt_is_one_line_that_names_it_and_its_replica() {
    let log = log_of_two_bookings("info").await;
    for (attempt, outcome) in [(SOLD, "booked"), (REFUSED, "seat-taken")] {
        let lines: Vec<_> = log.iter().filter(|line| names(line, attempt)).collect();
        let [line] = lines[..] else {
            panic!("one line for {attempt}, not these: {lines:?}");
        };
        let fields = &line["fields"];
        assert_eq!(line["span"]["replica"], "Rosa", "{line}");
        assert_eq!(fields["room"], "main", "{line}");
        assert_eq!(fields["outcome"], outcome, "{line}");
    }
}

#[tokio::test]
async fn at_debug_each_step_names_its_attempt_and_once_its_replica() {
    let log = log_of_two_bookings("doublebook=debug").await;
    let steps: Vec<_> = log
        .iter()
        .filter(|line| line["fields"]["step"].is_string())
        .collect();
    assert!(steps.len() > 4, "{steps:?}");
    for step in steps {
        assert!(names(step, SOLD) || names(step, REFUSED), "{step}");
        let replicas = step.to_string().matches("Rosa").count();
        assert_eq!(replicas, 1, "{step}");
    }
}

/// Two lines: what went wrong, and how the attempt ended.
#[tokio::test]
async fn what_goes_wrong_in_an_attempt_names_it_and_its_replica() {
    let scratch = Scratch::new("log-wrong");
    let nobody = format!("redis://127.0.0.1:{}", free_ports(1));
    let (replica, listen) = replica(&scratch, &[("REDIS_URL", &nobody)]);
    books(&replica, &listen, REFUSED, 503).await;
    let lines = lines_after(&replica, 1).await;
    let wrong: Vec<_> = lines
        .iter()
        .filter(|line| line["fields"]["message"] == "the lock system is not available")
        .collect();
    let [line] = wrong[..] else {
        panic!("one line, not these: {wrong:?}");
    };
    assert_eq!(line["level"], "WARN", "{line}");
    assert!(names(line, REFUSED), "{line}");
    assert!(line.to_string().contains("Rosa"), "{line}");
}

/// Whichever task writes it: sessions, connections and renewals have their own.
#[tokio::test]
async fn every_line_of_a_replica_names_it() {
    for threads in ["1", "2"] {
        let world = World::own(Database::Sqlite)
            .with("zookeeper")
            .serving(&["--log", "json", "--threads", threads])
            .start()
            .await;
        for lock in ["redis", "redlock", "dynamodb", "table", "zookeeper", "etcd"] {
            let room = world.room_with("log", json!({"lock": lock})).await;
            room.books("Ana", "A1").await.is("booked");
        }
        let lines = lines_of(world.process(A));
        let of_zookeeper = |line: &&Value| line.to_string().contains("ZooKeeper session");
        assert!(lines.iter().any(|line| of_zookeeper(&line)), "{lines:?}");
        for line in lines {
            assert_eq!(line["spans"][0]["replica"], "A", "{line}");
        }
    }
}

/// One of them is refused.
async fn log_of_two_bookings(level: &str) -> Vec<Value> {
    let scratch = Scratch::new("log");
    let (replica, listen) = replica(&scratch, &[("RUST_LOG", level)]);
    for (attempt, status) in [(SOLD, 201), (REFUSED, 409)] {
        books(&replica, &listen, attempt, status).await;
    }
    lines_after(&replica, 2).await
}

/// A replica that logs in JSON, and where it listens.
fn replica(scratch: &Scratch, environment: &[(&str, &str)]) -> (Process, String) {
    let url = format!("sqlite:{}", scratch.join("doublebook.db").display());
    let listen = format!("127.0.0.1:{}", free_ports(1));
    let arguments = [
        "serve", "--name", "Rosa", "--listen", &listen, "--log", "json",
    ];
    let environment = [environment, &[("DATABASE_URL", url.as_str())]].concat();
    let replica = Process::new(&arguments, &environment, &scratch.join("replica.log"));
    scratch.ends(replica.start());
    (replica, listen)
}

/// What was logged when so many attempts have ended.
async fn lines_after(replica: &Process, attempts: usize) -> Vec<Value> {
    let (lines, _) = eventually("the end of the attempts", PATIENCE, async || {
        let lines = lines_of(replica);
        let ended = lines
            .iter()
            .filter(|line| line["fields"]["message"] == "the attempt ended");
        if ended.count() < attempts {
            return Err(format!("{lines:?}"));
        }
        Ok(lines)
    })
    .await;
    lines
}

async fn books(replica: &Process, listen: &str, attempt: &str, status: u16) {
    let client = client();
    eventually("an answer", PATIENCE, async || {
        replica.assert_alive();
        let booking = client
            .post(format!("http://{listen}/api/rooms/main/bookings"))
            .json(&json!({"seat": "A1", "buyer": "Ana", "attempt": attempt}));
        match booking.send().await {
            Ok(answer) if answer.status() == status => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

fn lines_of(replica: &Process) -> Vec<Value> {
    replica
        .output()
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

fn names(line: &Value, attempt: &str) -> bool {
    line.to_string().contains(attempt)
}
