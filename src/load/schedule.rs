//! Who comes when and wants what.
//!
//! A schedule is a pure function of workload, rate, length and seed: the same seed gives the same schedule, for
//! every side and every run of this version. Arrivals are a Poisson process, as of people who know nothing of each other; those of one
//! wave come at the same moment, as when a sale opens.

use std::fmt;
use std::time::Duration;

use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

/// How many buyers of a wave want each of its seats.
pub const BUYERS_FOR_A_SEAT: u32 = 4;

/// What a transfer moves, in cents.
const AMOUNTS: std::ops::RangeInclusive<u32> = 100..=2000;

/// Times and wishes are drawn apart, so that the wishes are the same at every rate.
const TIMES: u64 = 1;

/// What is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// Seats, money, or both.
    pub goods: Goods,
    /// How many seats each wave of buyers crowds on; 0 gives each buyer a seat of their own, which never sells out.
    pub hot: u32,
    /// How many wallets there are; the first is used most, as Zipf saw it in words.
    pub wallets: u32,
}

/// What is bought or moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goods {
    /// Seats are booked.
    Seats,
    /// Money is moved.
    Wallets,
    /// As many bookings as transfers, in the long run.
    Mixed,
}

/// One wish. Seats and wallets are numbered; the room gives them their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// To book a seat.
    Book {
        /// Which one.
        seat: u32,
        /// Who wants it.
        buyer: u32,
    },
    /// To move money.
    Transfer {
        /// From which wallet.
        from: u32,
        /// To which other one.
        to: u32,
        /// How much.
        cents: u32,
    },
}

/// A wish and its moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When it comes, from the start of the schedule.
    pub at: Duration,
    /// What it wants.
    pub action: Action,
}

/// The wishes of a workload, without end and without times.
#[derive(Debug)]
pub struct Wishes {
    workload: Workload,
    rng: ChaCha8Rng,
    heat: Option<WeightedIndex<f64>>,
    next_seat: u32,
    next_buyer: u32,
}

impl Wishes {
    /// The wishes of this seed.
    pub fn new(workload: Workload, seed: u64) -> Self {
        let heat = (1..=workload.wallets).map(|rank| 1.0 / f64::from(rank));
        Self {
            workload,
            rng: ChaCha8Rng::seed_from_u64(seed),
            heat: WeightedIndex::new(heat).ok(),
            next_seat: 0,
            next_buyer: 0,
        }
    }

    /// The next ones that come at the same moment.
    pub fn together(&mut self) -> Vec<Action> {
        if self.is_for_seats() {
            self.wave()
        } else {
            vec![self.transfer()]
        }
    }

    fn is_for_seats(&mut self) -> bool {
        match self.workload.goods {
            Goods::Seats => true,
            Goods::Wallets => false,
            // A wave is many bookings at once, so waves are as much rarer.
            Goods::Mixed => self.rng.random_ratio(1, 1 + self.workload.wave()),
        }
    }

    fn wave(&mut self) -> Vec<Action> {
        let seats = self.workload.hot.max(1);
        let first = self.next_seat;
        self.next_seat += seats;
        let mut wave: Vec<Action> = (0..self.workload.wave())
            .map(|number| Action::Book {
                seat: first + number % seats,
                buyer: self.next_buyer + number,
            })
            .collect();
        self.next_buyer += self.workload.wave();
        wave.shuffle(&mut self.rng);
        wave
    }

    fn transfer(&mut self) -> Action {
        let from = self.wallet();
        let other = self.wallet();
        // The next one, where both would be the same.
        let to = if other == from {
            (other + 1) % self.workload.wallets.max(2)
        } else {
            other
        };
        let cents = self.rng.random_range(AMOUNTS);
        Action::Transfer { from, to, cents }
    }

    fn wallet(&mut self) -> u32 {
        let heat = self.heat.as_ref();
        let index = heat.map_or(0, |heat| heat.sample(&mut self.rng));
        u32::try_from(index).unwrap_or(0)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seats = match self.hot {
            0 => "cold seats, each wanted once".to_owned(),
            hot => format!("hot seats, waves of {} buyers on {hot}", self.wave()),
        };
        let wallets = format!("transfers among {} wallets", self.wallets);
        match self.goods {
            Goods::Seats => f.write_str(&seats),
            Goods::Wallets => f.write_str(&wallets),
            Goods::Mixed => write!(f, "{seats}, and {wallets}"),
        }
    }
}

impl Workload {
    /// How many buyers come at once.
    fn wave(self) -> u32 {
        if self.hot == 0 {
            1
        } else {
            self.hot * BUYERS_FOR_A_SEAT
        }
    }

    /// How many wishes come at once, on average.
    fn mean_together(self) -> f64 {
        let wave = f64::from(self.wave());
        match self.goods {
            Goods::Seats => wave,
            Goods::Wallets => 1.0,
            Goods::Mixed => 2.0 * wave / (wave + 1.0),
        }
    }
}

/// All arrivals of an open model: `rate` a second on average, for `length`.
pub fn arrivals(workload: Workload, seed: u64, rate: f64, length: Duration) -> Vec<Arrival> {
    let mut times = ChaCha8Rng::seed_from_u64(seed);
    times.set_stream(TIMES);
    let mut wishes = Wishes::new(workload, seed);
    let mean_gap = workload.mean_together() / rate;
    let (mut arrivals, mut at) = (Vec::new(), 0.0);
    loop {
        let u: f64 = times.random();
        at += -(1.0 - u).ln() * mean_gap;
        if at >= length.as_secs_f64() {
            return arrivals;
        }
        let moment = Duration::from_secs_f64(at);
        let together = wishes.together().into_iter();
        arrivals.extend(together.map(|action| Arrival { at: moment, action }));
    }
}

/// How many seats these arrivals want.
pub fn seats_wanted(arrivals: &[Arrival]) -> u32 {
    let seats = arrivals.iter().filter_map(|arrival| match arrival.action {
        Action::Book { seat, .. } => Some(seat + 1),
        Action::Transfer { .. } => None,
    });
    seats.max().unwrap_or(0)
}

/// A short number that differs where schedules differ (FNV-1a), so that two reports can be seen to be of the same one.
pub fn fingerprint(arrivals: &[Arrival]) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut eat = |number: u64| {
        for byte in number.to_le_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for Arrival { at, action } in arrivals {
        eat(u64::try_from(at.as_nanos()).unwrap_or(u64::MAX));
        let numbers = match *action {
            Action::Book { seat, buyer } => [0, seat, buyer, 0],
            Action::Transfer { from, to, cents } => [1, from, to, cents],
        };
        for number in numbers {
            eat(number.into());
        }
    }
    format!("{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_secs(20);

    fn workload(goods: Goods, hot: u32) -> Workload {
        Workload {
            goods,
            hot,
            wallets: 10,
        }
    }

    fn bookings(arrivals: &[Arrival]) -> usize {
        let is_booking = |arrival: &&Arrival| matches!(arrival.action, Action::Book { .. });
        arrivals.iter().filter(is_booking).count()
    }

    #[test]
    fn the_same_seed_gives_the_same_schedule_and_another_one_another() {
        for goods in [Goods::Seats, Goods::Wallets, Goods::Mixed] {
            let of = |seed| arrivals(workload(goods, 3), seed, 300.0, LENGTH);
            assert_eq!(of(7), of(7));
            assert_eq!(fingerprint(&of(7)), fingerprint(&of(7)));
            assert_ne!(of(7), of(8));
            assert_ne!(fingerprint(&of(7)), fingerprint(&of(8)));
        }
    }

    #[test]
    fn the_rate_is_kept_on_average() {
        for goods in [Goods::Seats, Goods::Wallets, Goods::Mixed] {
            let count = arrivals(workload(goods, 4), 1, 500.0, Duration::from_secs(200)).len();
            assert!((90_000..110_000).contains(&count), "{goods:?}: {count}");
        }
    }

    #[test]
    fn a_mixed_workload_is_half_bookings() {
        let arrivals = arrivals(
            workload(Goods::Mixed, 4),
            1,
            500.0,
            Duration::from_secs(200),
        );
        let share = bookings(&arrivals) as f64 / arrivals.len() as f64;
        assert!((0.45..0.55).contains(&share), "{share}");
    }

    #[test]
    fn buyers_of_a_wave_come_at_once_and_every_seat_has_as_many() {
        let arrivals = arrivals(workload(Goods::Seats, 3), 1, 300.0, LENGTH);
        for wave in arrivals.chunks(12) {
            assert!(wave.iter().all(|arrival| arrival.at == wave[0].at));
            let mut seats: Vec<u32> = wave
                .iter()
                .map(|arrival| match arrival.action {
                    Action::Book { seat, .. } => seat % 3,
                    Action::Transfer { .. } => panic!("a transfer of seats"),
                })
                .collect();
            seats.sort_unstable();
            assert_eq!(seats, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
        }
    }

    #[test]
    fn cold_seats_are_each_wanted_once() {
        let arrivals = arrivals(workload(Goods::Seats, 0), 1, 300.0, LENGTH);
        assert_eq!(seats_wanted(&arrivals) as usize, arrivals.len());
    }

    #[test]
    fn the_first_wallet_is_the_hottest_and_nobody_gives_to_themselves() {
        let arrivals = arrivals(workload(Goods::Wallets, 0), 1, 500.0, LENGTH);
        let mut uses = [0; 10];
        for arrival in &arrivals {
            let Action::Transfer { from, to, .. } = arrival.action else {
                panic!("a booking of wallets")
            };
            assert_ne!(from, to);
            uses[from as usize] += 1;
        }
        assert!(uses[0] > 3 * uses[9], "{uses:?}");
    }
}
