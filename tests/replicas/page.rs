//! The page without script, as far as it can be read as text.

use serde_json::json;

use crate::support::{A, B, Database, World};

on_both_databases!(
    the_page_of_main_and_of_each_room_is_html,
    the_page_names_seats_wallets_and_what_is_wrong,
    markup_in_names_is_shown_as_text,
    an_unknown_room_has_a_page_that_says_so,
    the_page_asks_nothing_of_other_machines,
);

async fn the_page_of_main_and_of_each_room_is_html(database: Database) {
    let world = World::shared(database).await;
    let room = world.room("page").await;
    for replica in [A, B] {
        for path in [
            "/".to_owned(),
            "/rooms/main".to_owned(),
            format!("/rooms/{}", room.name),
        ] {
            let page = world.get(replica, &path).await;
            assert_eq!(page.status, 200, "{path}: {page:?}");
            assert!(
                page.header("content-type").starts_with("text/html"),
                "{path}: {page:?}"
            );
            assert!(page.text.contains("</html>"), "{path}");
        }
    }
    let main = world.get(A, "/").await.text;
    assert!(main.contains("main"), "{main}");
}

async fn the_page_names_seats_wallets_and_what_is_wrong(database: Database) {
    let world = World::shared(database).await;
    let room = world.room_with("page", json!({"locking": false})).await;
    let ana = room
        .books("Ana", "A1")
        .on(A)
        .pausing_at("after_read")
        .at_gate("g")
        .starts();
    let ben = room
        .books("Ben", "A1")
        .on(B)
        .pausing_at("after_read")
        .at_gate("g")
        .starts();
    room.both_wait_at_gate("g", "after_read").await;
    room.opens("g").await;
    ana.answer().await.is("booked");
    ben.answer().await.is("booked");

    let sentence = room.audit().await.sentence;
    let page = world.get(A, &format!("/rooms/{}", room.name)).await.text;
    for shown in [
        sentence.as_str(),
        "A1",
        "E8",
        "alice",
        "dave",
        "100.00",
        "Ana",
        "Ben",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
}

async fn markup_in_names_is_shown_as_text(database: Database) {
    let world = World::shared(database).await;
    let names = [
        "</script><script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "' onmouseover='alert(1)",
        "{{7*7}}<b>bold</b>",
    ];
    let wallets: Vec<_> = names
        .iter()
        .map(|name| json!({"name": name, "balance": "1.00"}))
        .collect();
    let room = world.room_of("markup", json!({"wallets": wallets})).await;
    for (number, name) in names.into_iter().enumerate() {
        room.books(name, &format!("A{}", number + 1))
            .await
            .is("booked");
    }
    let page = world.get(A, &format!("/rooms/{}", room.name)).await.text;
    for markup in [
        "<script>alert(1)",
        "<img src=x",
        "' onmouseover='",
        "<b>bold",
        "49&lt;b",
    ] {
        let as_markup = page.match_indices(markup).count();
        // 49 is what a template would make of 7*7.
        assert_eq!(as_markup, 0, "{markup}: {page}");
    }
    for text in ["alert(1)", "onmouseover", "{{7*7}}"] {
        assert!(page.contains(text), "{text} is shown: {page}");
    }

    // Nor in what is said about an unknown one.
    let answer = world
        .get(A, "/rooms/%3Cscript%3Ealert(1)%3C%2Fscript%3E")
        .await;
    assert!((400..500).contains(&answer.status), "{answer:?}");
    assert!(!answer.text.contains("<script>alert(1)"), "{answer:?}");
}

async fn an_unknown_room_has_a_page_that_says_so(database: Database) {
    let world = World::shared(database).await;
    let page = world.get(A, "/rooms/no-such-room").await;
    assert_eq!(page.status, 404, "{page:?}");
    assert!(
        page.header("content-type").starts_with("text/html"),
        "{page:?}"
    );
    assert!(page.text.contains("no-such-room"), "{page:?}");
}

async fn the_page_asks_nothing_of_other_machines(database: Database) {
    let world = World::shared(database).await;
    let page = world.get(A, "/").await.text;
    for attribute in [
        "src=\"http",
        "src=\"//",
        "href=\"//",
        "url(http",
        "url(//",
        "@import",
    ] {
        assert!(!page.contains(attribute), "{attribute}: {page}");
    }
    // Links lead to the replicas only; all else that is loaded is of this replica.
    for (place, _) in page.match_indices("href=\"http") {
        let link = &page[place + 6..];
        assert!(
            link.starts_with("http://127.0.0.1:"),
            "{}",
            &link[..60.min(link.len())]
        );
    }
}
