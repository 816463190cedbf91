//! The page of a room by keyboard alone, in one long sitting.

use serde_json::json;
use thirtyfour::Key;

use crate::browser::{Browser, address};
use crate::support::{A, Database, PATIENCE, Room, World, eventually};

on_both_databases!(all_of_the_page_works_by_keyboard_alone);

async fn all_of_the_page_works_by_keyboard_alone(database: Database) {
    let world = World::shared(database).await;
    let room = world.room_with("sitting", json!({"think_ms": 50})).await;
    let browser = Browser::starts().await;
    let page = address(&world, A, &room);
    // Without the other replica there is nothing to choose from.
    eventually("a choice of replicas", PATIENCE, async || {
        browser.opens(&world, A, &room).await;
        match browser.count("#via").await {
            1 => Ok(()),
            _ => Err("the other replica did not answer in time".to_owned()),
        }
    })
    .await;
    toggles(&browser, &room).await;
    sets_each_switch(&browser, &room).await;
    books(&browser, &room).await;
    transfers(&browser, &room).await;
    starts_each_race(&browser, &room).await;
    walks_through_the_diagram(&browser, &room, &page).await;
    opens_what_is_folded(&browser).await;
    resets(&browser, &room).await;
    goes_to_a_room_of_its_own(&browser, &page).await;
    browser.was_well_behaved().await;
}

async fn toggles(browser: &Browser, room: &Room) {
    browser.walks_to("#toggle .flip").await;
    browser.presses(" ").await;
    browser.reads("#toggle", "Locking is off").await;
    browser.presses(Key::Enter).await;
    browser.reads("#toggle", "Locking is on").await;
    assert!(browser.has_focus("#toggle .flip").await);
    assert_eq!(room.looks().await["switches"]["locking"], true);
}

async fn sets_each_switch(browser: &Browser, room: &Room) {
    let chosen_by_arrows = [
        ("fencing", json!("on_write")),
        ("compare", json!(true)),
        ("order", json!("as_given")),
        ("release", json!("blind")),
        ("waiting", json!("backoff")),
        ("renew", json!(false)),
    ];
    for (name, value) in chosen_by_arrows {
        browser
            .walks_to(&format!("#switches [name={name}]:checked"))
            .await;
        browser.presses(Key::Right).await;
        browser.has_set(room, name, &value).await;
        assert!(browser.has_focus(&format!("#switches [name={name}]")).await);
    }
    browser.walks_to("#switches [name=lock]").await;
    browser.presses("ta").await;
    browser.has_set(room, "lock", &json!("table")).await;
    for (name, value) in [("ttl_ms", 3000), ("wait_ms", 20_000), ("think_ms", 60)] {
        browser.walks_to(&format!("#switches [name={name}]")).await;
        browser.types_anew(&value.to_string()).await;
        browser.presses(Key::Enter).await;
        browser.has_set(room, name, &json!(value)).await;
    }
}

async fn books(browser: &Browser, room: &Room) {
    // What was tried out above would end leases on a slow machine.
    room.switches(json!({"renew": true})).await;
    browser.walks_to("#buyer").await;
    browser.types_anew("Kim").await;
    browser.presses(Key::Tab).await;
    assert!(browser.has_focus("#via").await);
    browser.presses("b").await;
    browser.walks_to("#seats [role=grid] td *").await;
    for (key, seat) in [
        (Key::Right, "A2"),
        (Key::Down, "B2"),
        (Key::End, "B8"),
        (Key::Left, "B7"),
        (Key::Up, "A7"),
        (Key::Home, "A1"),
    ] {
        browser.presses(key).await;
        assert!(browser.has_focus(&format!("button[value={seat}]")).await);
    }
    browser.presses(Key::Enter).await;
    browser.shows("A1", &["Kim"]).await;
    browser.reads("#attempt", "replica B").await;
    browser.presses(Key::Right).await;
    browser.presses(" ").await;
    browser.shows("A2", &["Kim"]).await;
    assert_eq!(room.audit().await.attempts, 2);
    // What was sold and cannot be pressed is read all the same.
    browser.presses(Key::Left).await;
    assert!(browser.has_focus("#seats td.sold").await);

    // Past the map, without a walk through it.
    browser.walks_to("#seats .skip").await;
    browser.presses(Key::Enter).await;
    browser.presses(Key::Tab).await;
    assert!(browser.has_focus("#wallets *").await);
}

async fn transfers(browser: &Browser, room: &Room) {
    browser.walks_to("#from").await;
    browser.presses("bob").await;
    browser.walks_to("#to").await;
    browser.presses("carol").await;
    browser.walks_to("#amount").await;
    browser.types_anew("12.50").await;
    browser.presses(Key::Enter).await;
    browser.reads("#wallets", "112.50").await;
    assert_eq!(room.balance("bob").await, "87.50");
}

async fn starts_each_race(browser: &Browser, room: &Room) {
    // With two who touch wallets in their own order the crossing would only wait for its end.
    room.switches(json!({"order": "sorted", "think_ms": 50}))
        .await;
    for race in [
        "one-seat",
        "lost-update",
        "crossing",
        "crowd",
        "paused-holder",
    ] {
        let button = format!("#races button[value={race}]");
        browser.walks_to(&button).await;
        browser.presses(Key::Enter).await;
        browser.has_raced(race).await;
        assert!(browser.has_focus(&button).await, "{race}");
    }
}

async fn walks_through_the_diagram(browser: &Browser, room: &Room, page: &str) {
    browser.walks_to("#diagram .chart-scroll").await;
    browser.presses(Key::Right).await;
    let first = browser.text("#diagram .detail").await;
    let mut told = vec![first];
    for _ in 0..5 {
        browser.presses(Key::Right).await;
        assert!(browser.has_focus("#diagram .item").await);
        let stroke = browser.asks(
            "const [shape] = document.activeElement.querySelectorAll('.bar, .reach');
             return parseFloat(getComputedStyle(shape).strokeWidth)",
            Vec::new(),
        );
        assert!(stroke.await.as_f64() >= Some(2.0), "the step is ringed");
        told.push(browser.text("#diagram .detail").await);
    }
    told.dedup();
    assert_eq!(told.len(), 6, "{told:?}");
    assert!(
        told.iter()
            .all(|detail| detail.contains("ms") || detail.contains(" s"))
    );

    let width = "return document.querySelector('#diagram .chart').getBoundingClientRect().width";
    let fitting = browser.asks(width, Vec::new()).await.as_f64();
    for (key, wider) in [("+", true), ("-", false)] {
        browser.presses(key).await;
        let now = browser.asks(width, Vec::new()).await.as_f64();
        assert_eq!(now > fitting, wider, "{key}");
        assert!(browser.has_focus("#diagram .item").await);
    }
    for (tool, wider) in [
        ("Zoom in", true),
        ("Zoom out", false),
        ("Zoom in", true),
        ("Fit the whole race in", false),
    ] {
        let tool = format!("#diagram button[aria-label='{tool}']");
        browser.walks_to(&tool).await;
        browser.presses(Key::Enter).await;
        let now = browser.asks(width, Vec::new()).await.as_f64();
        assert_eq!(now > fitting, wider, "{tool}");
    }
    for (tool, kind, begins) in [
        ("Save as SVG", "svg", "<svg "),
        ("Save as Mermaid", "mmd", "sequenceDiagram"),
    ] {
        browser
            .walks_to(&format!("#diagram button[aria-label='{tool}']"))
            .await;
        browser.presses(Key::Enter).await;
        let file = format!("doublebook-{}-paused-holder.{kind}", room.name);
        let saved = browser.has_saved(&file).await;
        assert!(saved.starts_with(begins), "{saved}");
        assert!(saved.contains("Ben"), "{saved}");
    }
    browser.walks_to("#diagram a").await;
    browser.presses(Key::Enter).await;
    browser.arrives_at(&format!("{page}?race=")).await;
    browser.has_drawn_the_race().await;
}

async fn opens_what_is_folded(browser: &Browser) {
    for fold in ["#race details", "details.as-list"] {
        browser.walks_to(&format!("{fold} > summary")).await;
        browser.presses(Key::Enter).await;
        assert_eq!(browser.count(&format!("{fold}[open]")).await, 1);
    }
}

async fn resets(browser: &Browser, room: &Room) {
    browser.walks_to("#reset button").await;
    browser.presses(" ").await;
    browser.reads("#seats h2", "0 of 40 seats sold").await;
    assert_eq!(room.audit().await.attempts, 0);
}

async fn goes_to_a_room_of_its_own(browser: &Browser, page: &str) {
    browser.walks_to(".views [href$='view=projector']").await;
    browser.presses(Key::Enter).await;
    let projector = format!("{page}?view=projector");
    browser.arrives_at(&projector).await;
    assert_eq!(browser.count("html.projector").await, 1);
    browser.walks_to(".views a[href^='/rooms/']").await;
    browser.presses(Key::Enter).await;
    let all_controls = "return !document.documentElement.classList.contains('projector')";
    browser.finds("all controls are back", all_controls).await;
    browser.is_live().await;

    browser.walks_to(".views [href='/rooms']").await;
    browser.presses(Key::Enter).await;
    browser.reads("main", "A room of your own").await;
    browser.walks_to("#room").await;
    let name = browser.element("#room").await.prop("value").await;
    let name = name.expect("a field").expect("a name");
    browser.presses(Key::Enter).await;
    browser.is_live().await;
    browser.reads(".top", &format!("room {name}")).await;
    // As in `main`: without work between read and write a race rarely happens.
    browser.reads("#toggle", "think 100 ms").await;
}
