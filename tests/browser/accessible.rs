//! What axe-core finds, on every page, light and dark.

use std::path::Path;

use serde_json::{Value, json};

use crate::browser::{Browser, address};
use crate::support::{A, Database, World};

on_both_databases!(no_page_has_a_violation);

/// Where the test command puts it.
const AXE: &str = "target/axe/node_modules/axe-core/axe.min.js";

async fn no_page_has_a_violation(database: Database) {
    let axe = axe();
    let world = World::shared(database).await;
    let switches = json!({"locking": false, "think_ms": 1000});
    let raced = world.room_with("accessible", switches).await;
    let fresh = world.room("accessible").await;
    let browser = Browser::starts().await;
    browser.opens(&world, A, &raced).await;
    browser.races("one-seat").await;
    browser.clicks("#seats button[value=A2]").await;
    browser.reads("#attempt", "A2").await;

    for scheme in ["light", "dark"] {
        browser.prefers(scheme).await;
        browser
            .has_no_violation(&axe, "the page after a race")
            .await;
        let projector = format!("{}?view=projector", address(&world, A, &raced));
        let fresh = address(&world, A, &fresh);
        let paths = ["/", "/rooms", "/api", "/load", "/rooms/that-nobody-made"];
        let pages = paths.map(|path| format!("{}{path}", world.url(A)));
        for page in pages.iter().chain([&projector, &fresh]) {
            browser.goes_to(page).await;
            browser.prefers(scheme).await;
            browser.has_no_violation(&axe, page).await;
        }
        browser.opens(&world, A, &raced).await;
        browser.has_drawn_the_race().await;
    }
    browser
        .was_well_behaved_but(&["/that-nobody-made - Failed to load resource"])
        .await;
}

/// The script of axe-core.
pub fn axe() -> String {
    let axe = Path::new(env!("CARGO_MANIFEST_DIR")).join(AXE);
    std::fs::read_to_string(axe)
        .expect("axe-core is there (npm install --prefix target/axe axe-core@4)")
}

impl Browser {
    /// Sets what the reader prefers; nothing moves, so that no colour is half-way to another one.
    async fn prefers(&self, scheme: &str) {
        let features = json!({"features": [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]});
        let devtools = self.driver().cdp();
        let set = devtools.send_raw("Emulation.setEmulatedMedia", features);
        set.await.expect("the browser pretends");
        let matches = format!("return matchMedia('(prefers-color-scheme: {scheme})').matches");
        self.finds("the scheme is seen", &matches).await;
    }

    /// Fails with what axe-core finds wrong in the page.
    pub async fn has_no_violation(&self, axe: &str, what: &str) {
        self.asks(axe, Vec::new()).await;
        let run = "const done = arguments[arguments.length - 1];
            axe.run(document).then(
                ({ violations, passes }) => done({
                    passes: passes.length,
                    violations: violations.map(({ id, help, nodes }) => ({
                        id, help, nodes: nodes.map(({ target, failureSummary }) => [String(target), failureSummary]),
                    })),
                }),
                (error) => done(String(error)),
            )";
        let result = self.driver().execute_async(run, Vec::<Value>::new()).await;
        let result = result.expect("axe-core runs");
        let result = result.json();
        assert!(result["passes"].as_u64() > Some(5), "{what}: {result:#}");
        assert_eq!(result["violations"], json!([]), "{what}: {result:#}");
    }
}
