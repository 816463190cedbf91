//! What a reader of the page sees and does.

use std::time::Duration;

use serde_json::{Value, json};
use thirtyfour::{By, Key, TypingData, WebDriver, WebElement, WindowHandle};

use super::chromium::{Chromium, Script};
use crate::support::{PATIENCE, Replica, Room, World, eventually};

/// A race with its waits, on a noisy machine.
const RACE: Duration = Duration::from_secs(90);

/// More stops than the page has on the way to anything.
const MOST_STOPS: usize = 80;

/// The cell of a seat, in the page's own order of things.
const CELL: &str = "const cell = [...document.querySelectorAll('#seats table.map tbody td')]
    .find((td) => (td.querySelector('b, button') ?? td).textContent.split(' ')[0] === arguments[0]);";

/// A browser with one or more windows; what is done is done in the window that was opened or chosen last.
pub struct Browser {
    chromium: Chromium,
}

impl Browser {
    pub async fn starts() -> Self {
        let chromium = Chromium::starts(Script::On).await;
        Self { chromium }
    }

    pub async fn starts_without_script() -> Self {
        let chromium = Chromium::starts(Script::Off).await;
        Self { chromium }
    }

    pub fn driver(&self) -> &WebDriver {
        self.chromium.driver()
    }

    /// Goes to an address and waits until it has loaded.
    pub async fn goes_to(&self, address: &str) {
        let gone = self.driver().goto(address).await;
        gone.unwrap_or_else(|error| panic!("{address}: {error}"));
    }

    /// Goes to the page of a room and waits until its script has begun.
    pub async fn opens(&self, world: &World, replica: Replica, room: &Room) {
        self.goes_to(&address(world, replica, room)).await;
        self.is_live().await;
    }

    /// Waits until a link has led to an address that begins so, and the script of its page has begun. The page that
    /// is left is live until then, too.
    pub async fn arrives_at(&self, address: &str) {
        let script = "return location.href.startsWith(arguments[0]) || location.href";
        let what = format!("the page at {address}");
        self.finds_within(&what, PATIENCE, script, vec![json!(address)])
            .await;
        self.is_live().await;
    }

    /// The script of the room's page has begun.
    pub async fn is_live(&self) {
        self.finds(
            "the script has begun",
            "return document.body.classList.contains('at-once')
                && document.querySelector('#seats table.map').getAttribute('role') === 'grid'",
        )
        .await;
    }

    pub async fn reloads(&self) {
        self.driver().refresh().await.expect("it loads again");
    }

    pub async fn goes_back(&self) {
        self.driver().back().await.expect("there is a way back");
    }

    /// Opens one more window and goes on in it.
    pub async fn opens_window(&self) -> WindowHandle {
        let window = self.driver().new_window().await.expect("a window");
        self.turns_to(&window).await;
        window
    }

    /// Opens one more tab and goes on in it.
    pub async fn opens_tab(&self) -> WindowHandle {
        let tab = self.driver().new_tab().await.expect("a tab");
        self.turns_to(&tab).await;
        tab
    }

    pub async fn window(&self) -> WindowHandle {
        self.driver().window().await.expect("a window")
    }

    pub async fn turns_to(&self, window: &WindowHandle) {
        let turned = self.driver().switch_to_window(window.clone()).await;
        turned.expect("it is there");
    }

    /// The element, as soon as it is there.
    pub async fn element(&self, css: &str) -> WebElement {
        let (element, _) = eventually(css, PATIENCE, async || {
            let found = self.driver().find(By::Css(css)).await;
            found.map_err(|error| error.to_string())
        })
        .await;
        element
    }

    /// Clicks with the mouse; what is covered or moves is tried again, for then nothing was clicked.
    pub async fn clicks(&self, css: &str) {
        let what = format!("a click on {css}");
        eventually(&what, PATIENCE, async || {
            let element = self.element(css).await;
            element.click().await.map_err(|error| error.to_string())
        })
        .await;
    }

    pub async fn double_clicks(&self, css: &str) {
        let element = self.element(css).await;
        element.scroll_into_view().await.expect("it is there");
        let twice = self.driver().action_chain().double_click_element(&element);
        twice.perform().await.expect("two clicks");
    }

    /// Presses a key, or types, where the focus is.
    pub async fn presses(&self, keys: impl Into<TypingData>) {
        let typing = self.driver().action_chain().send_keys(keys);
        typing.perform().await.expect("keys");
    }

    /// Walks with the tab key until the focus is on what this selector means.
    pub async fn walks_to(&self, css: &str) {
        for _ in 0..MOST_STOPS {
            if self.has_focus(css).await {
                return;
            }
            self.presses(Key::Tab).await;
        }
        panic!("the tab key does not reach {css}");
    }

    pub async fn has_focus(&self, css: &str) -> bool {
        let focus = "return document.activeElement.matches(arguments[0])";
        self.asks(focus, vec![json!(css)]).await == true
    }

    /// Replaces what stands in the field that has the focus, by keyboard.
    pub async fn types_anew(&self, text: &str) {
        let all = self.driver().action_chain().key_down(Key::Control);
        let all = all.send_keys("a").key_up(Key::Control);
        all.perform().await.expect("all is selected");
        self.presses(text).await;
    }

    /// Replaces what stands in a field.
    pub async fn fills(&self, css: &str, text: &str) {
        let field = self.element(css).await;
        field.clear().await.expect("a field");
        field.send_keys(text).await.expect("a field");
    }

    /// What a script in the page gives.
    pub async fn asks(&self, script: &str, arguments: Vec<Value>) -> Value {
        let answer = self.tries_to_ask(script, arguments).await;
        answer.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    async fn tries_to_ask(&self, script: &str, arguments: Vec<Value>) -> Result<Value, String> {
        let answer = self.driver().execute(script, arguments).await;
        answer
            .map(|answer| answer.json().clone())
            .map_err(|error| error.to_string())
    }

    /// Waits until a script in the page gives `true`.
    pub async fn finds(&self, what: &str, script: &str) -> Duration {
        self.finds_within(what, PATIENCE, script, Vec::new()).await
    }

    async fn finds_within(
        &self,
        what: &str,
        limit: Duration,
        script: &str,
        arguments: Vec<Value>,
    ) -> Duration {
        let ((), took) = eventually(what, limit, async || {
            match self.tries_to_ask(script, arguments.clone()).await? {
                Value::Bool(true) => Ok(()),
                other => Err(other.to_string()),
            }
        })
        .await;
        took
    }

    /// The text of an element as it is seen, without the marks that fence names in.
    pub async fn text(&self, css: &str) -> String {
        let script = "return document.querySelector(arguments[0])?.innerText ?? null";
        let text = self.asks(script, vec![json!(css)]).await;
        plain(text.as_str().unwrap_or_default())
    }

    /// Waits until the text of an element holds this one.
    pub async fn reads(&self, css: &str, wanted: &str) {
        self.reads_within(css, wanted, PATIENCE).await;
    }

    async fn reads_within(&self, css: &str, wanted: &str, limit: Duration) {
        let what = format!("{css} says {wanted:?}");
        eventually(&what, limit, async || {
            let text = self.text(css).await;
            if text.contains(wanted) {
                Ok(())
            } else {
                Err(text)
            }
        })
        .await;
    }

    /// How many elements there are of a kind.
    pub async fn count(&self, css: &str) -> u64 {
        let script = "return document.querySelectorAll(arguments[0]).length";
        let count = self.asks(script, vec![json!(css)]).await;
        count.as_u64().expect("a count")
    }

    /// Waits until a switch of the room has this value: the page shows a choice before it was sent.
    pub async fn has_set(&self, room: &Room, name: &str, value: &Value) {
        eventually(name, PATIENCE, async || {
            let switches = room.looks().await["switches"].clone();
            if switches[name] == *value {
                Ok(())
            } else {
                Err(switches.to_string())
            }
        })
        .await;
    }

    /// Whose a seat is, as the page shows it, in the order of names.
    pub async fn buyers(&self, seat: &str) -> Vec<String> {
        let script = format!(
            "{CELL} return [...cell.querySelectorAll('bdi')].map((name) => name.textContent)"
        );
        let names = self.asks(&script, vec![json!(seat)]).await;
        let mut names: Vec<String> = serde_json::from_value(names).expect("names");
        names.sort();
        names
    }

    /// Waits until the page shows these buyers, and that the seat was sold more than once where there are several.
    pub async fn shows(&self, seat: &str, buyers: &[&str]) -> Duration {
        let what = format!("seat {seat} is shown as sold to {buyers:?}");
        let class = ["", "sold", "sold often"][buyers.len().min(2)];
        let script = format!("{CELL} return cell.className");
        let (_, took) = eventually(&what, PATIENCE, async || {
            let now = self.buyers(seat).await;
            let looks = self.tries_to_ask(&script, vec![json!(seat)]).await?;
            if now == buyers && looks == class {
                Ok(())
            } else {
                Err(format!("{now:?}, class {looks}"))
            }
        })
        .await;
        took
    }

    /// Presses the button of a race and waits until its end is told and drawn.
    pub async fn races(&self, race: &str) {
        self.clicks(&format!("#races button[value={race}]")).await;
        self.has_raced(race).await;
    }

    /// Waits until the end of a race is told and drawn.
    pub async fn has_raced(&self, race: &str) {
        let drawn = "const told = document.querySelector('#race .cause')?.textContent ?? '';
            const named = document.querySelector('#race h2')?.textContent ?? '';
            return !document.body.classList.contains('running')
                && document.querySelector('#race [aria-busy]') === null
                && document.querySelector('#races [aria-busy]') === null
                && document.querySelector(`#races button.last[value=${arguments[0]}]`) !== null
                && document.querySelectorAll('#diagram svg .item').length > 0
                && !told.startsWith('The race is running')
                || `${named}: ${told}`";
        let what = format!("the race {race} is told and drawn");
        self.finds_within(&what, RACE, drawn, vec![json!(race)])
            .await;
    }

    /// Waits until the last race is drawn, on a page that was opened after it.
    pub async fn has_drawn_the_race(&self) {
        let drawn = "return document.querySelectorAll('#diagram svg .item').length > 0";
        self.finds("the race is drawn", drawn).await;
    }

    /// Waits until the browser has saved a file, and gives its text.
    pub async fn has_saved(&self, name: &str) -> String {
        let file = self.chromium.downloads().join(name);
        let (text, _) = eventually(name, PATIENCE, async || {
            std::fs::read_to_string(&file).map_err(|error| error.to_string())
        })
        .await;
        text
    }

    /// What is marked in the diagram, by class, as a screen reader hears it.
    pub async fn marks(&self, class: &str) -> Vec<String> {
        let script = "return [...document.querySelectorAll(`#diagram .item${arguments[0]}`)]
            .map((item) => item.getAttribute('aria-label'))";
        let marks = self.asks(script, vec![json!(class)]).await;
        let marks: Vec<String> = serde_json::from_value(marks).expect("texts");
        marks.iter().map(|mark| plain(mark)).collect()
    }

    /// Fails when a script has failed, anything could not be loaded, or another host was asked.
    pub async fn was_well_behaved(&self) {
        self.was_well_behaved_but(&[]).await;
    }

    /// The same, where the console may complain about what holds one of these texts.
    pub async fn was_well_behaved_but(&self, expected: &[&str]) {
        let log = self.driver().browser_log().await.expect("a log");
        let severe: Vec<_> = log
            .iter()
            .filter(|entry| entry.level == "SEVERE")
            .filter(|entry| !expected.iter().any(|text| entry.message.contains(text)))
            .collect();
        assert!(severe.is_empty(), "{severe:#?}");
        let elsewhere = "return ['resource', 'navigation']
            .flatMap((kind) => performance.getEntriesByType(kind))
            .map((entry) => entry.name)
            .filter((name) => !name.startsWith(`${location.origin}/`))";
        assert_eq!(self.asks(elsewhere, Vec::new()).await, json!([]));
    }
}

/// Where the page of a room is.
pub fn address(world: &World, replica: Replica, room: &Room) -> String {
    format!("{}/rooms/{}", world.url(replica), room.name)
}

/// Without the marks that keep the direction of a name to itself.
fn plain(text: &str) -> String {
    text.replace(['\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}'], "")
}
