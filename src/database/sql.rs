//! A statement with its values, and the rows it brings, for both databases.
//!
//! Parameters are written `$1`, `$2` … in both dialects. The kinds of value are those that this project stores.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use sqlx::postgres::{PgRow, Postgres};
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteRow};
use sqlx::{AssertSqlSafe, Row as _};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::DatabaseError;

/// SQLite stores money as whole cents.
const CENTS: u32 = 2;

/// A value to bind.
#[derive(Debug, Clone)]
pub enum Value {
    /// A whole number, or none.
    Int(Option<i64>),
    /// A text, or none.
    Text(Option<String>),
    /// Money with at most two decimals: `NUMERIC` in PostgreSQL, whole cents in SQLite.
    Money(Decimal),
    /// `UUID` in PostgreSQL, its hyphenated text in SQLite.
    Uuid(Uuid),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(Some(value))
    }
}

impl From<Option<i64>> for Value {
    fn from(value: Option<i64>) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(Some(value.to_owned()))
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(Some(value))
    }
}

impl From<Option<&str>> for Value {
    fn from(value: Option<&str>) -> Self {
        Self::Text(value.map(str::to_owned))
    }
}

impl From<Decimal> for Value {
    fn from(value: Decimal) -> Self {
        Self::Money(value)
    }
}

impl From<Uuid> for Value {
    fn from(value: Uuid) -> Self {
        Self::Uuid(value)
    }
}

/// A statement and its values.
#[derive(Debug)]
pub struct Sql {
    pub(super) text: String,
    pub(super) values: Vec<Value>,
}

/// Begins a statement. The text is ours, never a user's: users' words go into [`Sql::bind`].
pub fn sql(text: impl Into<String>) -> Sql {
    Sql {
        text: text.into(),
        values: Vec::new(),
    }
}

impl Sql {
    /// Adds the value of the next parameter.
    pub fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    pub(super) fn for_postgres(self) -> Query<'static, Postgres, sqlx::postgres::PgArguments> {
        let query = sqlx::query::<Postgres>(AssertSqlSafe(self.text));
        self.values
            .into_iter()
            .fold(query, |query, value| match value {
                Value::Int(number) => query.bind(number),
                Value::Text(text) => query.bind(text),
                Value::Money(amount) => query.bind(amount),
                Value::Uuid(uuid) => query.bind(uuid),
            })
    }

    pub(super) fn for_sqlite(self) -> Query<'static, Sqlite, sqlx::sqlite::SqliteArguments> {
        let query = sqlx::query::<Sqlite>(AssertSqlSafe(self.text));
        self.values
            .into_iter()
            .fold(query, |query, value| match value {
                Value::Int(number) => query.bind(number),
                Value::Text(text) => query.bind(text),
                Value::Money(amount) => query.bind(cents(amount)),
                Value::Uuid(uuid) => query.bind(uuid.hyphenated()),
            })
    }
}

/// Amounts are parsed with two decimals and at most nine digits before them, so they fit.
fn cents(mut amount: Decimal) -> Option<i64> {
    amount.rescale(CENTS);
    amount.mantissa().to_i64()
}

/// One row of an answer.
#[derive(Debug)]
pub enum Row {
    /// From PostgreSQL.
    Postgres(PgRow),
    /// From SQLite.
    Sqlite(SqliteRow),
}

impl Row {
    /// A whole number.
    pub fn int(&self, column: &str) -> Result<i64, DatabaseError> {
        self.maybe_int(column)?.ok_or_else(|| missing(column))
    }

    /// A whole number or none. PostgreSQL's `INTEGER` and `BIGINT` both arrive as `i64`.
    pub fn maybe_int(&self, column: &str) -> Result<Option<i64>, DatabaseError> {
        match self {
            Self::Postgres(row) => match row.try_get::<Option<i64>, _>(column) {
                Ok(number) => Ok(number),
                Err(_) => Ok(row.try_get::<Option<i32>, _>(column)?.map(i64::from)),
            },
            Self::Sqlite(row) => Ok(row.try_get(column)?),
        }
    }

    /// A truth value.
    pub fn bool(&self, column: &str) -> Result<bool, DatabaseError> {
        match self {
            Self::Postgres(row) => Ok(row.try_get(column)?),
            Self::Sqlite(row) => Ok(row.try_get(column)?),
        }
    }

    /// A text.
    pub fn text(&self, column: &str) -> Result<String, DatabaseError> {
        self.maybe_text(column)?.ok_or_else(|| missing(column))
    }

    /// A text or none.
    pub fn maybe_text(&self, column: &str) -> Result<Option<String>, DatabaseError> {
        match self {
            Self::Postgres(row) => Ok(row.try_get(column)?),
            Self::Sqlite(row) => Ok(row.try_get(column)?),
        }
    }

    /// A UUID.
    pub fn uuid(&self, column: &str) -> Result<Uuid, DatabaseError> {
        match self {
            Self::Postgres(row) => Ok(row.try_get(column)?),
            Self::Sqlite(row) => Ok(row.try_get::<Hyphenated, _>(column)?.into_uuid()),
        }
    }

    /// Money with two decimals.
    pub fn money(&self, column: &str) -> Result<Decimal, DatabaseError> {
        match self {
            Self::Postgres(row) => {
                let mut amount: Decimal = row.try_get(column)?;
                amount.rescale(CENTS);
                Ok(amount)
            }
            Self::Sqlite(row) => Ok(Decimal::new(row.try_get(column)?, CENTS)),
        }
    }
}

fn missing(column: &str) -> DatabaseError {
    DatabaseError::Broken(format!("column {column} is NULL"))
}
