//! What must hold at the end of a run.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::length;

/// `p99 < 200ms`, or of one side only: `lock=redis: violations = 0`.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// The label of the side that it is about; all of them without.
    pub side: Option<String>,
    /// What is looked at.
    pub metric: Metric,
    /// How it is compared.
    pub comparison: Comparison,
    /// With what: milliseconds, or a number.
    pub bound: f64,
    /// As it was typed.
    pub text: String,
}

/// What a threshold can be about. Response times count from the intended start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is described in docs/load.md by its name")]
pub enum Metric {
    P50,
    P90,
    P99,
    P999,
    Max,
    ServiceP50,
    ServiceP99,
    Throughput,
    Goodput,
    Violations,
    Refused,
    Failures,
    Late,
    Unsent,
}

/// In what something is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Milliseconds,
    /// How often a second.
    PerSecond,
    /// How many.
    Count,
}

/// How a measured value is compared with the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say it")]
pub enum Comparison {
    Below,
    AtMost,
    Above,
    AtLeast,
    Equal,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::P50,
        Self::P90,
        Self::P99,
        Self::P999,
        Self::Max,
        Self::ServiceP50,
        Self::ServiceP99,
        Self::Throughput,
        Self::Goodput,
        Self::Violations,
        Self::Refused,
        Self::Failures,
        Self::Late,
        Self::Unsent,
    ];

    /// As thresholds name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Max => "max",
            Self::ServiceP50 => "service_p50",
            Self::ServiceP99 => "service_p99",
            Self::Throughput => "throughput",
            Self::Goodput => "goodput",
            Self::Violations => "violations",
            Self::Refused => "refused",
            Self::Failures => "failures",
            Self::Late => "late",
            Self::Unsent => "unsent",
        }
    }

    /// In what it is measured.
    pub fn unit(self) -> Unit {
        match self {
            Self::P50 | Self::P90 | Self::P99 | Self::P999 | Self::Max => Unit::Milliseconds,
            Self::ServiceP50 | Self::ServiceP99 => Unit::Milliseconds,
            Self::Throughput | Self::Goodput => Unit::PerSecond,
            _ => Unit::Count,
        }
    }
}

impl Threshold {
    /// Whether a measured value holds.
    pub fn holds(&self, value: f64) -> bool {
        match self.comparison {
            Comparison::Below => value < self.bound,
            Comparison::AtMost => value <= self.bound,
            Comparison::Above => value > self.bound,
            Comparison::AtLeast => value >= self.bound,
            // Counts are whole, and what is measured is never meant to be hit exactly.
            Comparison::Equal => (value - self.bound).abs() < 1e-9,
        }
    }

    /// Whether a value holds of which only the least is known; none when that does not tell.
    pub fn holds_from(&self, least: f64) -> Option<bool> {
        match self.comparison {
            Comparison::Below | Comparison::AtMost => (!self.holds(least)).then_some(false),
            Comparison::Above | Comparison::AtLeast => self.holds(least).then_some(true),
            Comparison::Equal => (least > self.bound && !self.holds(least)).then_some(false),
        }
    }
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "must be like 'p99 < 200ms', 'violations = 0' or 'lock=redis: goodput > 100'".to_owned()
        };
        // The bound comes last, so a side's own signs and colons stand before the last colon.
        let (side, rule) = match text.rsplit_once(": ") {
            Some((side, rule)) => (Some(side.trim().to_owned()), rule),
            None => (None, text),
        };
        let sign_at = rule.find(['<', '>', '=']).ok_or_else(wrong)?;
        let (name, rest) = rule.split_at(sign_at);
        let sign_ends = rest
            .find(|c| !matches!(c, '<' | '>' | '='))
            .ok_or_else(wrong)?;
        let (sign, bound) = rest.split_at(sign_ends);
        let metric = metric(name.trim())?;
        let comparison = match sign {
            "<" => Comparison::Below,
            "<=" => Comparison::AtMost,
            ">" => Comparison::Above,
            ">=" => Comparison::AtLeast,
            "=" | "==" => Comparison::Equal,
            _ => return Err(wrong()),
        };
        Ok(Self {
            side,
            metric,
            comparison,
            bound: self::bound(metric, bound.trim())?,
            text: text.trim().to_owned(),
        })
    }
}

fn metric(name: &str) -> Result<Metric, String> {
    let known = Metric::ALL.into_iter().find(|metric| metric.name() == name);
    known.ok_or_else(|| {
        let names: Vec<_> = Metric::ALL.into_iter().map(Metric::name).collect();
        format!(
            "must be about one of {}, which {name:?} is not",
            names.join(", ")
        )
    })
}

fn bound(metric: Metric, text: &str) -> Result<f64, String> {
    if metric.unit() == Unit::Milliseconds {
        let bound = length(text).map_err(|error| format!("{} {error}", metric.name()))?;
        return Ok(bound.as_secs_f64() * 1000.0);
    }
    let number = text.strip_suffix("/s").unwrap_or(text).trim();
    let bound: f64 = number.parse().unwrap_or(f64::NAN);
    if bound.is_finite() && bound >= 0.0 {
        Ok(bound)
    } else {
        Err(format!("{} must be compared with a number", metric.name()))
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::{Comparison, Metric, Threshold};

    fn parse(text: &str) -> Threshold {
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn thresholds_are_read_as_they_are_said() {
        let threshold = parse("p99 < 200ms");
        assert_eq!(
            (threshold.metric, threshold.comparison),
            (Metric::P99, Comparison::Below)
        );
        assert!(threshold.holds(199.0) && !threshold.holds(200.0));
        assert!(parse("violations=0").holds(0.0) && !parse("violations = 0").holds(1.0));
        assert!(parse("goodput >= 100/s").holds(100.0));
        let one = parse("lock=redis target=http://a:1: p50 <= 1s");
        assert_eq!(one.side.as_deref(), Some("lock=redis target=http://a:1"));
        assert!(one.holds(1000.0));
    }

    #[test]
    fn of_a_value_that_is_only_the_least_some_rules_are_open() {
        let holds = |rule: &str| parse(rule).holds_from(5.0);
        assert_eq!(holds("violations = 0"), Some(false));
        assert_eq!(holds("violations < 5"), Some(false));
        assert_eq!(holds("violations < 10"), None);
        assert_eq!(holds("violations = 5"), None);
        assert_eq!(holds("violations >= 5"), Some(true));
        assert_eq!(holds("violations > 5"), None);
    }

    #[test]
    fn every_metric_can_be_named() {
        for metric in Metric::ALL {
            let bound = if metric.unit() == super::Unit::Milliseconds {
                "1s"
            } else {
                "1"
            };
            assert_eq!(
                parse(&format!("{} > {bound}", metric.name())).metric,
                metric
            );
        }
    }

    #[test]
    fn what_is_no_threshold_is_told() {
        for (wrong, told) in [
            ("", "must be like"),
            ("p99", "must be like"),
            ("p99 <", "must be like"),
            ("p99 <> 1s", "must be like"),
            ("p98 < 1s", "one of p50"),
            ("p99 < 200", "length of time"),
            ("violations = none", "a number"),
            ("violations = -1", "a number"),
        ] {
            let error = wrong.parse::<Threshold>().unwrap_err();
            assert!(error.contains(told), "{wrong}: {error}");
        }
    }
}
