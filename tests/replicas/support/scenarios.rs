//! One scenario, many tests: the macros that name the database and the lock.

/// Makes a test on SQLite and one on PostgreSQL of each scenario, an `async fn(Database)`.
macro_rules! on_both_databases {
    ($($scenario:ident),+ $(,)?) => {
        $(
            mod $scenario {
                #[tokio::test]
                async fn on_sqlite() {
                    super::$scenario($crate::support::Database::Sqlite).await;
                }

                #[tokio::test]
                async fn on_postgres() {
                    super::$scenario($crate::support::Database::Postgres).await;
                }
            }
        )+
    };
}

/// Makes a test of each lock on each database of a scenario, an `async fn(Database, &str)`.
macro_rules! under_each_lock {
    ($scenario:ident: $($lock:ident),+) => {
        mod $scenario {
            $(
                mod $lock {
                    #[tokio::test]
                    async fn on_sqlite() {
                        super::super::$scenario($crate::support::Database::Sqlite, stringify!($lock)).await;
                    }

                    #[tokio::test]
                    async fn on_postgres() {
                        super::super::$scenario($crate::support::Database::Postgres, stringify!($lock)).await;
                    }
                }
            )+
        }
    };
}
