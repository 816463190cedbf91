//! The page that starts a run: without script, as a form; its run is shown, stopped, and reported.

use reqwest::Method;
use serde_json::Value;

use crate::support::{A, Answer, B, Database, PATIENCE, World, eventually};

const FORM: &str = "application/x-www-form-urlencoded";

#[tokio::test]
async fn a_run_is_started_shown_and_reported() {
    let world = World::own(Database::Sqlite).start().await;
    assert!(
        world.get(A, "/").await.text.contains("href=\"/load\""),
        "a link leads to it"
    );
    assert_eq!(
        world.get(A, "/load/report").await.status,
        404,
        "nothing was run yet"
    );
    let form =
        "side=locking%3Doff&side=lock%3Dtable&workload=seats&rate=40&seconds=10&think_ms=20&seed=7";
    let answer = posts(&world, "/load", form).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, "/load"),
        "{answer:?}"
    );
    let again = posts(&world, "/load", form).await;
    assert_eq!(again.status, 409, "one at a time: {}", again.text);

    eventually("the sides under way", PATIENCE, async || {
        let page = world.get(A, "/load").await.text;
        let shows = [
            "A run is under way",
            "locking=off",
            "lock=table",
            "<progress",
        ];
        if shows.iter().all(|text| page.contains(text)) {
            Ok(())
        } else {
            Err(page)
        }
    })
    .await;
    is_over(&world).await;
    let report = world.get(A, "/load/report").await;
    assert_eq!(report.status, 200);
    for shown in [
        "locking=off",
        "lock=table",
        "seed 7",
        "seats acknowledged twice",
    ] {
        assert!(report.text.contains(shown), "{shown}");
    }
    assert!(
        report
            .header("content-security-policy")
            .starts_with("default-src 'none'")
    );
    // It asked both replicas.
    for replica in [A, B] {
        assert!(
            report.text.contains(&world.url(replica)),
            "{}",
            world.url(replica)
        );
    }
    let rooms = world.get(A, "/rooms").await.text;
    assert!(!rooms.contains("/rooms/load-"), "{rooms}");
}

#[tokio::test]
async fn a_run_is_stopped_with_a_report() {
    let world = World::own(Database::Sqlite).start().await;
    posts(&world, "/load", "side=lock%3Dtable&rate=20&seconds=60").await;
    eventually("attempts of the run", PATIENCE, async || {
        let page = world.get(A, "/load").await.text;
        if page.contains("ms</td>") {
            Ok(())
        } else {
            Err(page)
        }
    })
    .await;
    assert_eq!(posts(&world, "/load/stop", "").await.status, 303);
    is_over(&world).await;
    assert!(
        world
            .get(A, "/load/report")
            .await
            .text
            .contains("stopped before its end")
    );
}

#[tokio::test]
async fn what_the_form_cannot_take_is_told_and_nothing_is_started() {
    let world = World::shared(Database::Sqlite).await;
    for (form, field) in [
        ("rate=40", "side"),
        ("side=redis", "side"),
        ("side=lock%3Dtable&rate=0", "rate"),
        ("side=lock%3Dtable&rate=1001", "rate"),
        ("side=lock%3Dtable&seconds=61", "seconds"),
        ("side=lock%3Dtable&think_ms=x", "think_ms"),
        ("side=lock%3Dtable&seed=-1", "seed"),
        ("side=lock%3Dtable&workload=cars", "workload"),
        ("side=lock%3Dtable&speed=1", "speed"),
    ] {
        let answer = posts(&world, "/load", form).await;
        assert_eq!(answer.status, 422, "{form}: {answer:?}");
        assert!(answer.text.contains(field), "{form}: {}", answer.text);
    }
    assert!(
        !world
            .get(A, "/load")
            .await
            .text
            .contains("A run is under way")
    );
}

async fn posts(world: &World, path: &str, form: &'static str) -> Answer {
    let request = world
        .request(A, Method::POST, path)
        .header("content-type", FORM)
        .body(form);
    Answer::to(request).await.expect("an answer")
}

async fn is_over(world: &World) {
    eventually("the end of the run", PATIENCE, async || {
        let page = world.get(A, "/load").await.text;
        if page.contains("The last run") {
            Ok(())
        } else {
            Err(Value::from(page).to_string())
        }
    })
    .await;
}

/// Whoever can open the page must not send requests to wherever they like.
#[tokio::test]
async fn a_run_from_the_page_asks_these_replicas_only() {
    let world = World::shared(Database::Sqlite).await;
    let form = "side=target%3Dhttp%3A%2F%2F127.0.0.1%3A1&rate=20&seconds=1";
    let answer = posts(&world, "/load", form).await;
    assert_eq!(answer.status, 422, "{answer:?}");
    assert!(answer.text.contains("without a target"), "{answer:?}");
}
