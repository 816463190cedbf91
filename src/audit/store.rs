//! The questions of the audit. The caller brings a snapshot, so that all answers are of one moment.

use super::sentence::sentence;
use super::{Audit, Disorder, MoneySum, Sale, SoldTwice, WalletOff};
use crate::database::{DatabaseError, Session, sql};
use crate::wallet::Money;

/// Audits a room.
pub async fn audit(
    snapshot: &mut Session,
    room_id: i64,
    leases_left: Option<u64>,
) -> Result<Audit, DatabaseError> {
    let wallets = wallets(snapshot, room_id).await?;
    let sum = |of: fn(&Wallet) -> Money| {
        wallets
            .iter()
            .fold(Money::ZERO, |sum, wallet| sum + of(wallet))
    };
    let (opened, now) = (sum(|wallet| wallet.opening), sum(|wallet| wallet.balance));
    let mut audit = Audit {
        clean: false,
        sentence: String::new(),
        attempts: attempts(snapshot, room_id).await?,
        seats_sold_twice: seats_sold_twice(snapshot, room_id).await?,
        money: MoneySum {
            opened,
            now,
            difference: now - opened,
        },
        negative_wallets: wallets
            .iter()
            .filter(|wallet| wallet.balance.is_negative())
            .map(|wallet| wallet.name.clone())
            .collect(),
        wallets: wallets.into_iter().filter_map(Wallet::off).collect(),
        token_disorder: token_disorder(snapshot, room_id).await?,
        leases_left,
    };
    audit.clean = audit.seats_sold_twice.is_empty()
        && audit.money.difference == Money::ZERO
        && audit.wallets.is_empty()
        && audit.negative_wallets.is_empty()
        && audit.token_disorder.is_empty();
    audit.sentence = sentence(&audit);
    Ok(audit)
}

async fn attempts(snapshot: &mut Session, room_id: i64) -> Result<i64, DatabaseError> {
    let text = "SELECT (SELECT COUNT(*) FROM booking WHERE room_id = $1)
                     + (SELECT COUNT(*) FROM transfer WHERE room_id = $1) AS attempts";
    snapshot.one(sql(text).bind(room_id)).await?.int("attempts")
}

async fn seats_sold_twice(
    snapshot: &mut Session,
    room_id: i64,
) -> Result<Vec<SoldTwice>, DatabaseError> {
    // Counted in one pass: of a room that was just filled PostgreSQL knows nothing yet, and would count the bookings of
    // the whole room for each of them.
    let text = "WITH counted AS (
                    SELECT seat, buyer, replica, token, seq,
                           COUNT(*) OVER (PARTITION BY seat) AS times
                    FROM booking
                    WHERE room_id = $1
                )
                SELECT counted.seat, counted.buyer, counted.replica, counted.token
                FROM counted
                JOIN seat ON seat.room_id = $1 AND seat.name = counted.seat
                WHERE counted.times > 1
                ORDER BY seat.row_number, seat.column_number, counted.seq";
    let mut seats: Vec<SoldTwice> = Vec::new();
    for row in snapshot.all(sql(text).bind(room_id)).await? {
        let seat = row.text("seat")?;
        let sale = Sale {
            buyer: row.text("buyer")?,
            replica: row.text("replica")?,
            token: row.maybe_int("token")?,
        };
        match seats.last_mut() {
            Some(last) if last.seat == seat => last.bookings.push(sale),
            _ => seats.push(SoldTwice {
                seat,
                bookings: vec![sale],
            }),
        }
    }
    Ok(seats)
}

struct Wallet {
    name: String,
    opening: Money,
    balance: Money,
    expected: Money,
}

impl Wallet {
    fn off(self) -> Option<WalletOff> {
        let off = WalletOff {
            wallet: self.name,
            balance: self.balance,
            expected: self.expected,
        };
        (off.balance != off.expected).then_some(off)
    }
}

async fn wallets(snapshot: &mut Session, room_id: i64) -> Result<Vec<Wallet>, DatabaseError> {
    let text = "SELECT wallet.name, wallet.opening, wallet.balance,
                       wallet.opening
                       + COALESCE((
                           SELECT SUM(amount)
                           FROM transfer
                           WHERE transfer.room_id = wallet.room_id
                             AND transfer.to_wallet = wallet.name
                         ), 0)
                       - COALESCE((
                           SELECT SUM(amount)
                           FROM transfer
                           WHERE transfer.room_id = wallet.room_id
                             AND transfer.from_wallet = wallet.name
                         ), 0) AS expected
                FROM wallet
                WHERE wallet.room_id = $1
                ORDER BY wallet.position";
    let rows = snapshot.all(sql(text).bind(room_id)).await?;
    rows.iter()
        .map(|row| {
            Ok(Wallet {
                name: row.text("name")?,
                opening: row.money("opening")?.into(),
                balance: row.money("balance")?.into(),
                expected: row.money("expected")?.into(),
            })
        })
        .collect()
}

async fn token_disorder(
    snapshot: &mut Session,
    room_id: i64,
) -> Result<Vec<Disorder>, DatabaseError> {
    let text = "WITH ordered AS (
                    SELECT seat, buyer, seq, epoch, token,
                           LAG(epoch) OVER (PARTITION BY seat ORDER BY seq) AS after_epoch,
                           LAG(token) OVER (PARTITION BY seat ORDER BY seq) AS after_token
                    FROM booking
                    WHERE room_id = $1
                      AND token IS NOT NULL
                )
                SELECT seat, buyer, epoch, token, after_epoch, after_token
                FROM ordered
                WHERE after_token IS NOT NULL
                  AND (epoch, token) <= (after_epoch, after_token)
                ORDER BY seq";
    let rows = snapshot.all(sql(text).bind(room_id)).await?;
    rows.iter()
        .map(|row| {
            Ok(Disorder {
                seat: row.text("seat")?,
                buyer: row.text("buyer")?,
                epoch: row.int("epoch")?,
                token: row.int("token")?,
                after_epoch: row.int("after_epoch")?,
                after_token: row.int("after_token")?,
            })
        })
        .collect()
}
