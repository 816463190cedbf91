//! The runs that are started at a page: one at a time on each replica, and the last report.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use askama::Template;
use tokio_util::sync::CancellationToken;

use super::report::Page;
use super::settings::Settings;
use super::watch::Watch;
use super::{Ran, run};

/// Where runs are started and looked at.
#[derive(Debug, Default)]
pub struct Desk {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    under_way: Option<UnderWay>,
    last: Option<Last>,
}

/// A run under way.
#[derive(Debug, Clone)]
pub struct UnderWay {
    /// What was asked for.
    pub settings: Arc<Settings>,
    /// How it stands.
    pub watch: Arc<Watch>,
    stop: CancellationToken,
}

/// How the last run ended.
#[derive(Debug, Clone)]
pub enum Last {
    /// With a report.
    Reported {
        /// All of it in one sentence.
        headline: String,
        /// The page.
        page: Arc<str>,
    },
    /// Without one, for this reason.
    Failed(String),
}

/// A run is under way already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a load run is under way on this replica")]
pub struct Busy;

impl Desk {
    /// Starts a run in a task of its own. `stop` ends it early, as with the replica.
    ///
    /// # Errors
    /// [`Busy`].
    pub fn start(
        self: &Arc<Self>,
        settings: Settings,
        stop: CancellationToken,
    ) -> Result<(), Busy> {
        let under_way = UnderWay {
            settings: Arc::new(settings),
            watch: Arc::default(),
            stop,
        };
        let mut state = self.state();
        if state.under_way.is_some() {
            return Err(Busy);
        }
        state.under_way = Some(under_way.clone());
        drop(state);
        let desk = Arc::clone(self);
        tokio::spawn(async move {
            // A task of its own: if it breaks, the desk is free again.
            let last = tokio::spawn(runs(under_way)).await;
            let last = last.unwrap_or_else(|error| Last::Failed(error.to_string()));
            let mut state = desk.state();
            *state = State {
                under_way: None,
                last: Some(last),
            };
        });
        Ok(())
    }

    /// Ends the run that is under way with a report of what there is.
    pub fn stop(&self) {
        if let Some(under_way) = &self.state().under_way {
            under_way.stop.cancel();
        }
    }

    /// The run that is under way.
    pub fn under_way(&self) -> Option<UnderWay> {
        self.state().under_way.clone()
    }

    /// How the last one ended.
    pub fn last(&self) -> Option<Last> {
        self.state().last.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn runs(under_way: UnderWay) -> Last {
    let UnderWay {
        settings,
        watch,
        stop,
    } = under_way;
    let report = match run(&settings, &watch, &stop).await {
        Ok(Ran { report, .. }) => report,
        Err(error) => return Last::Failed(error.to_string()),
    };
    let page = Page::new(&report);
    match page.render() {
        Ok(html) => Last::Reported {
            headline: page.headline().to_owned(),
            page: html.into(),
        },
        Err(error) => Last::Failed(error.to_string()),
    }
}
