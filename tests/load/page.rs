//! The page of a run is one file that asks for nothing.

use crate::generator::{CROWD, Load};
use crate::support::{Database, World};

#[tokio::test]
async fn the_report_is_one_file_without_script_that_asks_for_nothing() {
    let world = World::own(Database::Sqlite).start().await;
    let flags = [
        "--side",
        "locking=off",
        "--side",
        "lock=table",
        "--side",
        "compare=on locking=off",
    ];
    let ran = Load::on(&world, &[&CROWD[..], &flags].concat())
        .ends()
        .await;
    ran.exits_with(0);
    let page = &ran.page;
    for forbidden in ["<script", " src=", " href=", "@import", "url(http"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    for shown in [
        "<svg",
        "locking=off",
        "lock=table",
        "goodput",
        "seats acknowledged twice",
        "none seen",
        "seed 1",
    ] {
        assert!(page.contains(shown), "{shown}");
    }
    let seed_and_side = ["seed 1", "locking=off"];
    assert!(
        seed_and_side.iter().all(|text| ran.table.contains(text)),
        "{}",
        ran.table
    );
}
