//! Whether a difference is one.
//!
//! Sides are compared in pairs, since both met the same schedule in each repetition: the mean of the differences and
//! its 95 % interval by Student's t (W. S. Gosset, "The probable error of a mean", 1908). What holds zero is not
//! significant; one repetition cannot tell.

use serde::Serialize;

/// Two-sided 95 % quantiles of Student's t for 1, 2, 3 … degrees of freedom.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// A little more than the normal distribution's, for more degrees of freedom than the table has.
const T_BEYOND: f64 = 2.042;

/// How a side differs from the first one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    /// The mean difference, in the unit of what is compared.
    pub mean: f64,
    /// The same in percent of the first side's mean; none where that is zero.
    pub percent: Option<f64>,
    /// From where to where the true difference may lie, with 95 % confidence; none after one repetition.
    pub interval: Option<(f64, f64)>,
    /// Whether it is one.
    pub verdict: Significance,
}

/// Whether a difference is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Significance {
    /// The interval leaves out zero.
    Significant,
    /// It does not.
    NotSignificant,
    /// There was one repetition only.
    OneRun,
}

/// Compares a side's values with the first side's, one for each repetition. None without values.
pub fn compare(first: &[f64], other: &[f64]) -> Option<Difference> {
    let differences: Vec<f64> = first.iter().zip(other).map(|(a, b)| b - a).collect();
    if differences.is_empty() {
        return None;
    }
    let mean = average(&differences);
    let base = average(&first[..differences.len()]);
    let interval = spread(&differences).map(|spread| (mean - spread, mean + spread));
    let verdict = match interval {
        None => Significance::OneRun,
        Some((low, high)) if low <= 0.0 && high >= 0.0 => Significance::NotSignificant,
        Some(_) => Significance::Significant,
    };
    Some(Difference {
        mean,
        percent: (base != 0.0).then(|| 100.0 * mean / base),
        interval,
        verdict,
    })
}

fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Half the width of the interval; none where one value cannot tell.
fn spread(values: &[f64]) -> Option<f64> {
    let freedom = values.len().checked_sub(1).filter(|&freedom| freedom > 0)?;
    let mean = average(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / freedom as f64 / values.len() as f64).sqrt();
    Some(T.get(freedom - 1).unwrap_or(&T_BEYOND) * error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_repetition_cannot_tell() {
        let difference = compare(&[100.0], &[150.0]).unwrap();
        assert_eq!(difference.percent, Some(50.0));
        assert_eq!(difference.verdict, Significance::OneRun);
        assert_eq!(compare(&[], &[]), None);
    }

    #[test]
    fn a_difference_that_is_as_large_as_its_noise_is_not_significant() {
        let difference = compare(&[100.0, 110.0, 90.0], &[105.0, 104.0, 101.0]).unwrap();
        assert_eq!(difference.verdict, Significance::NotSignificant);
    }

    #[test]
    fn a_steady_difference_is_significant_even_where_both_swing_together() {
        let difference = compare(&[100.0, 200.0, 50.0], &[90.0, 189.0, 39.5]).unwrap();
        assert_eq!(difference.verdict, Significance::Significant);
        let (low, high) = difference.interval.unwrap();
        assert!(low < -10.5 && high > -10.5 && high < 0.0, "{low} {high}");
    }

    /// Differences 1, 2, 3: mean 2, standard error 0.5774, t(2) = 4.303.
    #[test]
    fn the_interval_is_students() {
        let (low, high) = compare(&[0.0; 3], &[1.0, 2.0, 3.0])
            .unwrap()
            .interval
            .unwrap();
        assert!(
            (low - -0.4843).abs() < 1e-3 && (high - 4.4843).abs() < 1e-3,
            "{low} {high}"
        );
    }
}
