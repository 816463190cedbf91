//! The seat map: rows and columns, who has which seat, and which seat was sold more than once.

use std::collections::HashMap;

use super::words;
use crate::audit::SoldTwice;
use crate::room::ShownSeat;

/// How many buyers of one seat are named on the map; the audit names all.
const MOST_NAMED: usize = 3;

/// The seat map.
#[derive(Debug)]
pub struct SeatMap {
    /// How many are sold, and how many of them more than once.
    pub summary: String,
    /// Whether any was sold more than once.
    pub oversold: bool,
    /// The numbers of the columns.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<SeatRow>,
}

/// A row of seats.
#[derive(Debug)]
pub struct SeatRow {
    /// Its letters.
    pub letters: String,
    /// Its seats.
    pub seats: Vec<SeatView>,
}

/// A seat.
#[derive(Debug)]
pub struct SeatView {
    /// Its name.
    pub name: String,
    /// Who has it.
    pub sold: Sold,
}

/// Who has a seat.
#[derive(Debug, PartialEq, Eq)]
pub enum Sold {
    /// Nobody.
    Free,
    /// One buyer.
    Once(String),
    /// Several.
    Often {
        /// How often it was sold.
        times: usize,
        /// The first buyers.
        buyers: Vec<String>,
        /// How many buyers are not named.
        more: usize,
    },
}

impl SeatMap {
    /// Of all seats, row by row, and of those that the audit found sold more than once.
    pub fn new(seats: Vec<ShownSeat>, sold_twice: &[SoldTwice]) -> Self {
        let sold = seats.iter().filter(|seat| is_sold(seat)).count();
        let often: HashMap<&str, &SoldTwice> = sold_twice
            .iter()
            .map(|sold| (sold.seat.as_str(), sold))
            .collect();
        let mut map = Self {
            summary: summary(seats.len(), sold, sold_twice.len()),
            oversold: !sold_twice.is_empty(),
            columns: Vec::new(),
            rows: Vec::new(),
        };
        let mut row_number = None;
        for seat in seats {
            let (letters, column) = split(&seat.seat);
            if row_number != Some(seat.row) {
                row_number = Some(seat.row);
                map.rows.push(SeatRow {
                    letters: letters.to_owned(),
                    seats: Vec::new(),
                });
            }
            if map.rows.len() == 1 {
                map.columns.push(column.to_owned());
            }
            let view = seat_view(seat, &often);
            if let Some(row) = map.rows.last_mut() {
                row.seats.push(view);
            }
        }
        map
    }
}

fn is_sold(seat: &ShownSeat) -> bool {
    seat.state != "free"
}

fn summary(all: usize, sold: usize, often: usize) -> String {
    let more_than_once = match often {
        0 => String::new(),
        n => format!(", {n} of them more than once"),
    };
    format!(
        "{sold} of {} sold{more_than_once}",
        words::count(all, "seat")
    )
}

/// `AB12` is column `12` of row `AB`.
fn split(name: &str) -> (&str, &str) {
    let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (letters, &name[letters.len()..])
}

fn seat_view(seat: ShownSeat, often: &HashMap<&str, &SoldTwice>) -> SeatView {
    let sold = match often.get(seat.seat.as_str()) {
        Some(sold) => Sold::Often {
            times: sold.bookings.len(),
            buyers: sold
                .bookings
                .iter()
                .take(MOST_NAMED)
                .map(|sale| sale.buyer.clone())
                .collect(),
            more: sold.bookings.len().saturating_sub(MOST_NAMED),
        },
        None if is_sold(&seat) => Sold::Once(seat.buyer.unwrap_or(seat.state)),
        None => Sold::Free,
    };
    SeatView {
        name: seat.seat,
        sold,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Sale;

    fn seat(name: &str, row: i64, buyer: Option<&str>) -> ShownSeat {
        ShownSeat {
            seat: name.to_owned(),
            state: if buyer.is_some() { "sold" } else { "free" }.to_owned(),
            buyer: buyer.map(str::to_owned),
            row,
        }
    }

    fn sold_to(buyers: &[&str]) -> SoldTwice {
        let sale = |buyer: &&str| Sale {
            buyer: (*buyer).to_owned(),
            replica: "A".to_owned(),
            token: None,
        };
        SoldTwice {
            seat: "A1".to_owned(),
            bookings: buyers.iter().map(sale).collect(),
        }
    }

    #[test]
    fn a_seat_sold_twice_names_both_buyers() {
        let seats = vec![
            seat("A1", 0, Some("Ben")),
            seat("A2", 0, Some("Ana")),
            seat("B1", 1, None),
            seat("B2", 1, None),
        ];
        let map = SeatMap::new(seats, &[sold_to(&["Ana", "Ben"])]);
        assert_eq!(map.summary, "2 of 4 seats sold, 1 of them more than once");
        assert_eq!(map.columns, ["1", "2"]);
        let letters: Vec<_> = map.rows.iter().map(|row| row.letters.as_str()).collect();
        assert_eq!(letters, ["A", "B"]);
        let of = |row: usize, column: usize| &map.rows[row].seats[column].sold;
        let both = Sold::Often {
            times: 2,
            buyers: vec!["Ana".to_owned(), "Ben".to_owned()],
            more: 0,
        };
        assert_eq!(of(0, 0), &both);
        assert_eq!(of(0, 1), &Sold::Once("Ana".to_owned()));
        assert_eq!(of(1, 0), &Sold::Free);
    }

    #[test]
    fn a_crowd_on_one_seat_is_counted_and_the_first_are_named() {
        let crowd = sold_to(&["a", "b", "c", "d", "e"]);
        let map = SeatMap::new(vec![seat("A1", 0, Some("e"))], &[crowd]);
        let Sold::Often {
            times,
            buyers,
            more,
        } = &map.rows[0].seats[0].sold
        else {
            panic!("sold often");
        };
        assert_eq!((*times, buyers.len(), *more), (5, 3, 2));
    }

    #[test]
    fn a_name_is_split_into_letters_and_number() {
        assert_eq!(split("A1"), ("A", "1"));
        assert_eq!(split("CV1000"), ("CV", "1000"));
    }
}
