//! Charts as SVG, drawn here: where ticks, lines and bars stand. Templates write them down.

/// How wide and high the part of a chart is in which lines are drawn.
pub(super) const WIDTH: f64 = 640.0;
/// See [`WIDTH`].
pub(super) const HEIGHT: f64 = 220.0;

/// About how many ticks an axis gets.
const TICKS: f64 = 4.0;

/// How many dots a dash has at least between labels at the end of lines.
const LABEL_GAP: f64 = 15.0;

/// Lines over one x and one y.
#[derive(Debug, Default)]
pub(super) struct Chart {
    pub(super) x_ticks: Vec<Tick>,
    pub(super) y_ticks: Vec<Tick>,
    pub(super) lines: Vec<Line>,
    pub(super) labels: Vec<Label>,
}

/// A place on an axis.
#[derive(Debug)]
pub(super) struct Tick {
    pub(super) at: String,
    pub(super) label: String,
}

/// A line of a side.
#[derive(Debug)]
pub(super) struct Line {
    /// Which side, from 1: its colour and dashes.
    pub(super) side: usize,
    /// How it looks besides: the name of a class.
    pub(super) look: &'static str,
    /// The path, as SVG writes it.
    pub(super) path: String,
}

/// A label at the end of a line.
#[derive(Debug)]
pub(super) struct Label {
    pub(super) side: usize,
    pub(super) at: String,
    pub(super) text: String,
}

/// What is drawn of a side; a gap where nothing is known.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) side: usize,
    pub(super) look: &'static str,
    /// Told at its end, if anything is.
    pub(super) label: Option<String>,
    pub(super) points: Vec<(f64, Option<f64>)>,
}

/// From values to places.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scale {
    /// Even steps, from zero.
    Linear { most: f64 },
    /// Each step as many times the one before.
    Log { least: f64, most: f64 },
}

impl Chart {
    /// Draws series on these scales.
    pub(super) fn draw(
        x: Scale,
        x_ticks: &[(f64, String)],
        y: Scale,
        y_tick: fn(f64) -> String,
        series: &[Series],
    ) -> Self {
        let place_x = |value| x.share(value) * WIDTH;
        let place_y = |value| (1.0 - y.share(value)) * HEIGHT;
        let x_ticks = x_ticks.iter().map(|(value, label)| Tick {
            at: coordinate(place_x(*value)),
            label: label.clone(),
        });
        let y_ticks = y.ticks().into_iter().map(|value| Tick {
            at: coordinate(place_y(value)),
            label: y_tick(value),
        });
        let lines = series.iter().map(|series| Line {
            side: series.side,
            look: series.look,
            path: path(
                series
                    .points
                    .iter()
                    .map(|(x, y)| (place_x(*x), y.map(place_y))),
            ),
        });
        let ends = series.iter().filter_map(|series| {
            let label = series.label.clone()?;
            let end = series.points.iter().rev().find_map(|(_, y)| *y)?;
            Some((series.side, place_y(end), label))
        });
        Self {
            x_ticks: x_ticks.collect(),
            y_ticks: y_ticks.collect(),
            lines: lines.collect(),
            labels: apart(ends.collect()),
        }
    }
}

impl Scale {
    /// A linear scale on which all of these can stand.
    pub(super) fn linear(values: impl Iterator<Item = f64>) -> Self {
        let most = values.fold(0.0, f64::max);
        let step = step(most);
        let most = if step > 0.0 {
            (most / step).ceil() * step
        } else {
            1.0
        };
        Self::Linear { most }
    }

    /// A logarithmic scale on which all of these can stand, in whole decades.
    pub(super) fn log(values: impl Iterator<Item = f64> + Clone) -> Self {
        let positive = values.filter(|value| *value > 0.0);
        let least = positive.clone().fold(f64::INFINITY, f64::min);
        let most = positive.fold(0.0, f64::max);
        if !least.is_finite() {
            return Self::Log {
                least: 1.0,
                most: 10.0,
            };
        }
        let least = 10f64.powf(least.log10().floor());
        let most = 10f64.powf(most.log10().ceil()).max(least * 10.0);
        Self::Log { least, most }
    }

    /// Where a value stands: 0 at the beginning, 1 at the end.
    fn share(self, value: f64) -> f64 {
        let share = match self {
            Self::Linear { most } => value / most,
            Self::Log { least, most } => (value.max(least) / least).ln() / (most / least).ln(),
        };
        share.clamp(0.0, 1.0)
    }

    /// Ticks in seconds.
    pub(super) fn ticks_of_time(self) -> Vec<(f64, String)> {
        let label = |seconds: f64| (seconds, format!("{} s", short(seconds)));
        let Self::Linear { most } = self else {
            return Vec::new();
        };
        self.ticks()
            .into_iter()
            .filter(|seconds| *seconds <= most)
            .map(label)
            .collect()
    }

    fn ticks(self) -> Vec<f64> {
        match self {
            Self::Linear { most } => {
                let step = step(most);
                let count = if step > 0.0 {
                    (most / step).round() as u32
                } else {
                    0
                };
                (0..=count).map(|n| f64::from(n) * step).collect()
            }
            Self::Log { least, most } => {
                let decades = (most / least).log10().round() as i32;
                (0..=decades).map(|n| least * 10f64.powi(n)).collect()
            }
        }
    }
}

/// A round step of which about four reach this far.
fn step(most: f64) -> f64 {
    if most <= 0.0 {
        return 0.0;
    }
    let rough = most / TICKS;
    let decade = 10f64.powf(rough.log10().floor());
    let round = [1.0, 2.0, 5.0, 10.0].into_iter().map(|by| by * decade);
    round
        .into_iter()
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(rough)
}

/// Moves labels up or down until none covers another one.
fn apart(mut ends: Vec<(usize, f64, String)>) -> Vec<Label> {
    ends.sort_by(|a, b| a.1.total_cmp(&b.1));
    let most = HEIGHT - LABEL_GAP * (ends.len().max(1) - 1) as f64;
    let mut free = 0.0;
    let labels = ends.into_iter().zip(0..).map(|((side, at, text), number)| {
        let at = at.min(most + LABEL_GAP * f64::from(number)).max(free);
        free = at + LABEL_GAP;
        Label {
            side,
            at: coordinate(at),
            text,
        }
    });
    labels.collect()
}

/// Straight from point to point; a gap begins anew.
fn path(points: impl Iterator<Item = (f64, Option<f64>)>) -> String {
    let mut path = String::new();
    let mut is_drawing = false;
    for (x, y) in points {
        let Some(y) = y else {
            is_drawing = false;
            continue;
        };
        path.push(if is_drawing { 'L' } else { 'M' });
        path.push_str(&coordinate(x));
        path.push(' ');
        path.push_str(&coordinate(y));
        is_drawing = true;
    }
    path
}

/// To a tenth of a dot.
pub(super) fn coordinate(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// As few digits as tell it.
pub(super) fn short(value: f64) -> String {
    let text = if value >= 10.0 || value == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.3}")
    };
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_as_far_as_the_values() {
        let ticks = |most: f64| Scale::linear([most].into_iter()).ticks();
        assert_eq!(ticks(300.0), [0.0, 100.0, 200.0, 300.0]);
        assert_eq!(ticks(7.0), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(Scale::log([0.7, 130.0].into_iter()).ticks().len(), 5);
    }

    #[test]
    fn nothing_is_drawn_of_nothing_and_nothing_breaks() {
        for scale in [
            Scale::linear(std::iter::empty()),
            Scale::log(std::iter::empty()),
        ] {
            let series = Series {
                side: 1,
                look: "",
                label: Some("x".to_owned()),
                points: vec![(0.0, None)],
            };
            let chart = Chart::draw(scale, &[], scale, short, &[series]);
            assert_eq!(chart.lines[0].path, "");
            assert!(chart.labels.is_empty());
        }
    }

    #[test]
    fn labels_do_not_cover_each_other() {
        let labels = apart((1..=5).map(|side| (side, 219.0, String::new())).collect());
        let places: Vec<f64> = labels
            .iter()
            .map(|label| label.at.parse().unwrap())
            .collect();
        assert!(
            places.windows(2).all(|two| two[1] - two[0] >= LABEL_GAP),
            "{places:?}"
        );
        assert!(
            places.iter().all(|at| (0.0..=HEIGHT).contains(at)),
            "{places:?}"
        );
    }

    #[test]
    fn a_line_has_gaps_where_nothing_is_known() {
        let points = [
            (0.0, Some(1.0)),
            (1.0, None),
            (2.0, Some(2.5)),
            (3.0, Some(3.0)),
        ];
        assert_eq!(path(points.into_iter()), "M0 1M2 2.5L3 3");
    }
}
