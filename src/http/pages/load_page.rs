//! The page of load runs: a form that starts one against the live replicas, how it stands, and the last report.
//!
//! It needs no script: while a run is under way, the page is shown anew every two seconds, and with script it changes.

use std::str::FromStr;
use std::time::Duration;

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};

use super::fields::Fields;
use super::problem_page::ProblemPage;
use super::{files, page};
use crate::app::App;
use crate::http::Shared;
use crate::http::kind::Kind;
use crate::http::problem::Problem;
use crate::http::replicas::shown_locks;
use crate::invalid::InvalidField;
use crate::load::desk::{Last, UnderWay};
use crate::load::report::milliseconds;
use crate::load::schedule::{Goods, Workload};
use crate::load::settings::{MOST_SIDES, Pace, Settings, Side, Sides, Target};
use crate::load::watch::SideNow;
use crate::peers;

/// Where the page is.
const LOAD: &str = "/load";

/// What a page may ask for: it is meant for a room full of people, not for a benchmark.
const MOST_RATE: u32 = 1000;
const MOST_SECONDS: u32 = 60;
const MOST_THINK_MS: u32 = 1000;

/// What is driven before anything is measured.
const WARM_UP: Duration = Duration::from_secs(1);

/// How long an answer is waited for.
const TIMEOUT: Duration = Duration::from_secs(15);

/// How many requests of a side may be under way at once.
const IN_FLIGHT: usize = 500;

/// The report brings its own style and nothing else.
const REPORT_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";

#[derive(Template)]
#[template(path = "load.html")]
struct LoadTemplate {
    style: String,
    icon: String,
    script: String,
    me: String,
    sides: Vec<Choice>,
    most_sides: usize,
    under_way: Option<Progress>,
    last: Option<Last>,
    most_rate: u32,
    most_seconds: u32,
    most_think_ms: u32,
}

/// A side that can be chosen.
struct Choice {
    side: String,
    about: &'static str,
    is_chosen: bool,
}

/// A run under way, as it is shown.
struct Progress {
    seconds: u64,
    rows: Vec<Row>,
}

struct Row {
    label: String,
    elapsed: u64,
    rate: String,
    p50: String,
    p99: String,
    refused: u64,
    failed: u64,
    twice: u64,
}

/// `GET /load`
pub async fn show(State(app): Shared) -> Response {
    let template = LoadTemplate {
        style: files::address("style.css"),
        icon: files::address("icon.svg"),
        script: files::address("load.js"),
        me: app.me.name.clone(),
        sides: choices(&app),
        most_sides: MOST_SIDES,
        under_way: app.loads.under_way().map(|run| Progress::of(&run)),
        last: app.loads.last(),
        most_rate: MOST_RATE,
        most_seconds: MOST_SECONDS,
        most_think_ms: MOST_THINK_MS,
    };
    page::page(StatusCode::OK, &template)
}

/// `POST /load`: `side` (several), `workload`, `rate`, `seconds`, `think_ms`, `seed`.
pub async fn start(State(app): Shared, form: Result<Fields, Problem>) -> Response {
    match try_to_start(&app, form).await {
        Ok(()) => Redirect::to(LOAD).into_response(),
        Err(problem) => ProblemPage::from(problem).into_response(),
    }
}

/// `POST /load/stop`: ends the run with a report of what there is.
pub async fn stop(State(app): Shared) -> Redirect {
    app.loads.stop();
    Redirect::to(LOAD)
}

/// `GET /load/report`: the last one.
pub async fn report(State(app): Shared) -> Response {
    let Some(Last::Reported { page, .. }) = app.loads.last() else {
        let problem = Problem::not_found("this replica has made no report of a load run yet");
        return ProblemPage::from(problem).into_response();
    };
    let about: [(HeaderName, &str); 1] = [(header::CONTENT_SECURITY_POLICY, REPORT_POLICY)];
    (about, Html(page.to_string())).into_response()
}

/// Locking off, and each lock system that is there; at first, locking off and the default are compared.
fn choices(app: &App) -> Vec<Choice> {
    let default = app.locks.default_lock();
    let off = Choice {
        side: "locking=off".to_owned(),
        about: "The control: without locks the races happen.",
        is_chosen: true,
    };
    let locks = shown_locks(app).into_iter().filter(|shown| shown.available);
    let locks = locks.map(|shown| Choice {
        side: format!("lock={}", shown.lock),
        about: shown.guarantees.promise,
        is_chosen: shown.lock == default,
    });
    std::iter::once(off).chain(locks).collect()
}

async fn try_to_start(app: &App, form: Result<Fields, Problem>) -> Result<(), Problem> {
    let form = form?;
    let mut targets = Vec::new();
    for replica in peers::replicas(app)
        .await?
        .into_iter()
        .filter(|replica| replica.alive)
    {
        let target: Result<Target, String> = replica.url.parse();
        targets.extend(target);
    }
    if targets.is_empty() {
        return Err(Problem::new(
            Kind::RACE_NEEDS,
            "a load run needs a replica that answers",
        ));
    }
    let settings = settings(&form, targets)?;
    // A replica that stops does not go on asking the others.
    app.loads
        .start(settings, app.shutdown.soft_token())
        .map_err(|busy| Problem::new(Kind::LOAD_UNDER_WAY, busy.to_string()))
}

fn settings(form: &Fields, targets: Vec<Target>) -> Result<Settings, Problem> {
    let known = ["side", "workload", "rate", "seconds", "think_ms", "seed"];
    if let Some(unknown) = form.names().find(|name| !known.contains(name)) {
        return Err(InvalidField::new(unknown, "is no field of this form").into());
    }
    let sides: Result<Vec<Side>, _> = form.all("side").map(str::parse).collect();
    let sides = sides.map_err(|error: String| InvalidField::new("side", error))?;
    if sides.iter().any(|side| !side.targets.is_empty()) {
        // Whoever can open a page must not send a replica to wherever they like.
        return Err(InvalidField::new("side", "must be made of switches, without a target").into());
    }
    if !(1..=MOST_SIDES).contains(&sides.len()) {
        return Err(
            InvalidField::new("side", format!("must be chosen 1 to {MOST_SIDES} times")).into(),
        );
    }
    let goods = match form.first("workload") {
        Some("seats") => Goods::Seats,
        Some("wallets") => Goods::Wallets,
        None | Some("mixed") => Goods::Mixed,
        Some(_) => {
            return Err(InvalidField::new("workload", "must be seats, wallets or mixed").into());
        }
    };
    let rate = number(form, "rate", 50, 1, MOST_RATE)?;
    let seconds = number(form, "seconds", 10, 1, MOST_SECONDS)?;
    let think = number(form, "think_ms", 20, 0, MOST_THINK_MS)?;
    Ok(Settings {
        targets,
        sides: Sides::Given(sides),
        workload: Workload {
            goods,
            hot: 4,
            wallets: 20,
        },
        pace: Pace::Open {
            rate: f64::from(rate),
        },
        warm_up: WARM_UP,
        duration: Duration::from_secs(seconds.into()),
        seed: number(form, "seed", 1, 0, u64::MAX)?,
        interleave: None,
        repeat: 1,
        think: Some(Duration::from_millis(think.into())),
        timeout: TIMEOUT,
        in_flight: IN_FLIGHT,
        thresholds: Vec::new(),
        report: None,
        json: None,
        history: None,
    })
}

/// A whole number in its range.
fn number<N>(form: &Fields, field: &str, usual: N, least: N, most: N) -> Result<N, InvalidField>
where
    N: FromStr + PartialOrd + std::fmt::Display,
{
    let Some(text) = form.first(field) else {
        return Ok(usual);
    };
    let number = text.trim().parse().ok();
    number
        .filter(|number| *number >= least && *number <= most)
        .ok_or_else(|| {
            InvalidField::new(
                field,
                format!("must be a whole number from {least} to {most}"),
            )
        })
}

impl Progress {
    fn of(run: &UnderWay) -> Self {
        let moment = run.watch.now();
        let sides = moment.map(|moment| moment.sides).unwrap_or_default();
        Self {
            seconds: run.settings.driven().as_secs(),
            rows: sides
                .iter()
                .map(|side| Row::of(side, run.settings.warm_up))
                .collect(),
        }
    }
}

impl Row {
    fn of(side: &SideNow, warm_up: Duration) -> Self {
        let measured = side.elapsed.saturating_sub(warm_up).as_secs_f64();
        let latency = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), milliseconds);
        Self {
            label: side.label.clone(),
            elapsed: side.elapsed.as_secs(),
            rate: if measured > 0.0 {
                format!("{:.0}/s", side.done as f64 / measured)
            } else {
                "–".to_owned()
            },
            p50: latency(side.p50),
            p99: latency(side.p99),
            refused: side.refused,
            failed: side.failed,
            twice: side.twice,
        }
    }
}
