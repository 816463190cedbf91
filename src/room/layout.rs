//! How a room is laid out when it is made: rows, columns, and wallets with their opening balances.

use std::collections::HashSet;

use serde::Deserialize;
use utoipa::ToSchema;

use crate::invalid::{InvalidField, Wrapped, given};
use crate::name::Name;
use crate::wallet::Money;

const MOST_ROWS: u32 = 100;
const MOST_COLUMNS: u32 = 1000;
const MOST_WALLETS: usize = 1000;
const LETTERS: u32 = 26;

/// A layout that can be made.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Rows of seats, named A … Z, AA ….
    pub rows: u32,
    /// Seats in each row, numbered from 1.
    pub columns: u32,
    /// The wallets, in the order in which they are shown.
    pub wallets: Vec<OpeningWallet>,
}

/// A wallet and what is in it at first.
#[derive(Debug, Clone)]
pub struct OpeningWallet {
    /// Whose it is.
    pub name: Name,
    /// What it holds at first.
    pub balance: Money,
}

/// A layout as it is asked for: everything may be left out.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LayoutWish {
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, minimum = 1, maximum = 100)]
    rows: Option<u32>,
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, minimum = 1, maximum = 1000)]
    columns: Option<u32>,
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, max_items = 1000, value_type = Vec<WalletWish>)]
    wallets: Option<Vec<Wrapped<WalletWish>>>,
}

#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WalletWish {
    name: String,
    balance: String,
}

impl Default for Layout {
    fn default() -> Self {
        let wallets = ["alice", "bob", "carol", "dave"]
            .into_iter()
            .filter_map(|name| {
                Some(OpeningWallet {
                    name: name.parse().ok()?,
                    balance: "100.00".parse().ok()?,
                })
            })
            .collect();
        Self {
            rows: 5,
            columns: 8,
            wallets,
        }
    }
}

impl TryFrom<LayoutWish> for Layout {
    type Error = InvalidField;

    fn try_from(wish: LayoutWish) -> Result<Self, InvalidField> {
        let standard = Self::default();
        let layout = Self {
            rows: wish.rows.unwrap_or(standard.rows),
            columns: wish.columns.unwrap_or(standard.columns),
            wallets: wish.wallets.map_or(Ok(standard.wallets), parse_wallets)?,
        };
        if !(1..=MOST_ROWS).contains(&layout.rows) {
            return Err(InvalidField::new(
                "rows",
                format!("must be 1 to {MOST_ROWS}"),
            ));
        }
        if !(1..=MOST_COLUMNS).contains(&layout.columns) {
            return Err(InvalidField::new(
                "columns",
                format!("must be 1 to {MOST_COLUMNS}"),
            ));
        }
        Ok(layout)
    }
}

fn parse_wallets(wishes: Vec<Wrapped<WalletWish>>) -> Result<Vec<OpeningWallet>, InvalidField> {
    if wishes.len() > MOST_WALLETS {
        return Err(InvalidField::new(
            "wallets",
            format!("must be at most {MOST_WALLETS}"),
        ));
    }
    let mut seen = HashSet::new();
    let mut wallets = Vec::with_capacity(wishes.len());
    for (index, Wrapped(wish)) in wishes.into_iter().enumerate() {
        let name: Name = wish.name.parse().map_err(|error: crate::name::NotAName| {
            InvalidField::new(format!("wallets[{index}].name"), error.to_string())
        })?;
        let balance: Money = wish
            .balance
            .parse()
            .map_err(|error: crate::wallet::NotMoney| {
                InvalidField::new(format!("wallets[{index}].balance"), error.to_string())
            })?;
        if !seen.insert(name.clone()) {
            return Err(InvalidField::new(
                format!("wallets[{index}].name"),
                format!("{name} is there twice"),
            ));
        }
        wallets.push(OpeningWallet { name, balance });
    }
    Ok(wallets)
}

/// The label of a row, counted from 0: A … Z, AA, AB ….
pub(super) fn row_label(row: u32) -> String {
    let letter = |n: u32| {
        char::from_digit(10 + n, 36)
            .unwrap_or('?')
            .to_ascii_uppercase()
    };
    match row.checked_sub(LETTERS) {
        None => letter(row).to_string(),
        Some(beyond) => format!("{}{}", letter(beyond / LETTERS), letter(beyond % LETTERS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_labelled_as_in_a_theatre() {
        let labels: Vec<_> = [0, 25, 26, 27, 51, 52, 99]
            .into_iter()
            .map(row_label)
            .collect();
        assert_eq!(labels, ["A", "Z", "AA", "AB", "AZ", "BA", "CV"]);
    }

    #[test]
    fn a_layout_names_the_field_that_does_not_fit() {
        let of = |json: &str| {
            Layout::try_from(serde_json::from_str::<LayoutWish>(json).unwrap())
                .unwrap_err()
                .to_string()
        };
        assert!(of(r#"{"rows": 0}"#).starts_with("rows must be"));
        assert!(of(r#"{"columns": 1001}"#).starts_with("columns must be"));
        assert!(
            of(r#"{"wallets": [{"name": "a", "balance": "-1"}]}"#)
                .starts_with("wallets[0].balance must be")
        );
        assert!(
            of(r#"{"wallets": [{"name": "a", "balance": "0.00"}, {"name": "a", "balance": "1"}]}"#)
                .starts_with("wallets[1].name a is there twice")
        );
    }

    #[test]
    fn everything_may_be_left_out() {
        let layout = Layout::try_from(LayoutWish::default()).unwrap();
        assert_eq!(
            (layout.rows, layout.columns, layout.wallets.len()),
            (5, 8, 4)
        );
    }
}
