//! Money with two decimals. It is parsed strictly and never rounded.

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;

use rust_decimal::Decimal;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

/// An amount of money, exact, with two decimals. May be negative where it is a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ToSchema)]
#[schema(value_type = String, pattern = r"^-?\d{1,9}\.\d{2}$", examples("80.00"))]
pub struct Money(Decimal);

/// Not an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a text like \"80.00\": digits, at most two decimals, at most 999999999.99")]
pub struct NotMoney;

impl Money {
    /// Nothing.
    pub const ZERO: Self = Self(Decimal::ZERO);

    /// The amount as a decimal number.
    pub fn decimal(self) -> Decimal {
        self.0
    }

    /// Whether it is below zero.
    pub fn is_negative(self) -> bool {
        self < Self::ZERO
    }

    /// Without its sign.
    pub fn abs(self) -> Self {
        Self(self.0.abs())
    }
}

impl From<Decimal> for Money {
    fn from(amount: Decimal) -> Self {
        Self(amount)
    }
}

impl FromStr for Money {
    type Err = NotMoney;

    /// One to nine digits, then at most a point and one or two digits. No sign, no exponent, no spaces.
    fn from_str(text: &str) -> Result<Self, NotMoney> {
        let (whole, cents) = match text.split_once('.') {
            Some((whole, cents)) if (1..=2).contains(&cents.len()) => (whole, cents),
            Some(_) => return Err(NotMoney),
            None => (text, ""),
        };
        let all_digits = whole
            .bytes()
            .chain(cents.bytes())
            .all(|byte| byte.is_ascii_digit());
        if !all_digits || !(1..=9).contains(&whole.len()) {
            return Err(NotMoney);
        }
        let amount: Decimal = text.parse().map_err(|_| NotMoney)?;
        Ok(Self(amount))
    }
}

impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Money {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}", self.0)
    }
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_keep_two_decimals() {
        for (text, shown) in [
            ("80.00", "80.00"),
            ("5", "5.00"),
            ("0.1", "0.10"),
            ("999999999.99", "999999999.99"),
        ] {
            assert_eq!(text.parse::<Money>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn whatever_is_not_plainly_an_amount_is_refused() {
        for text in [
            "",
            "-1",
            "0.001",
            "1e3",
            "1E-29",
            "NaN",
            "Infinity",
            " 5",
            "5 ",
            "+5",
            "1,50",
            ".5",
            "5.",
            "1_000",
            "0x10",
            "٥",
            "1000000000",
            "9.999",
            "-0",
            "1.2.3",
            "１",
        ] {
            assert_eq!(text.parse::<Money>(), Err(NotMoney), "{text:?}");
        }
        assert_eq!("9".repeat(40).parse::<Money>(), Err(NotMoney));
    }
}
