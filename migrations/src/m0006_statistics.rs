//! Figures by minute and hour, of tasks and of tenants, and the list of what is still to be counted.

use crate::schema::Kind::{self, Big, BigNull, Int, IntNull};
use crate::schema::{Columns, table, table_with_key};
use sea_orm_migration::prelude::*;

/// Statistics.
pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m0006_statistics"
    }
}

/// Buckets of one histogram. What each holds stands in the scheduler's `domain/statistics.rs`.
const BUCKETS: usize = 23;

/// Which figures (see the scheduler's `domain/statistics.rs`), from when on (ms), of whom.
const KEY: Columns = &[("grain", Int), ("start", Big), ("subject", Big)];

/// What is zero is null, and takes no room: most buckets of most rows are.
const FIGURES: Columns = &[
    ("tenant_id", Big),
    ("fires", Int),
    ("succeeded", IntNull),
    ("failed", IntNull),
    ("discarded", IntNull),
    ("expired", IntNull),
    ("cancelled", IntNull),
    ("open_runs", IntNull),
    ("failures", IntNull),
    ("late_ms", BigNull),
    ("late_max", BigNull),
    ("took_ms", BigNull),
    ("took_max", BigNull),
];

/// Minutes and hours that are to be counted (again). `marks` grows whenever there is a reason to
/// do it once more; `is_full` says whether all tasks are, or only those with runs that had not ended.
const WORK: Columns =
    &[("grain", Int), ("start", Big), ("marks", Big), ("is_full", Int), ("due_at", Big), ("tries", Int)];

/// One row: every minute before `listed_until` (ms) has been on the list.
const STATE: Columns = &[("id", Big), ("listed_until", Big)];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let backend = manager.get_database_backend();
        let buckets: Vec<(String, Kind)> = ["late", "took"]
            .iter()
            .flat_map(|of| (0..BUCKETS).map(move |at| (format!("{of}_{at}"), IntNull)))
            .collect();
        let buckets = buckets.iter().map(|(name, kind)| (name.as_str(), *kind));
        let columns: Vec<_> = KEY.iter().chain(FIGURES).copied().chain(buckets).collect();
        manager.create_table(table_with_key("statistic", &columns, KEY.len(), backend)).await?;
        manager.create_table(table_with_key("statistic_work", WORK, 2, backend)).await?;
        manager.create_table(table("statistic_state", STATE, backend)).await?;
        seed(manager, "statistic_state", ["id", "listed_until"], [1.into(), 0.into()]).await?;
        let lease = ["statistics".into(), 0.into(), 0.into(), 0.into()];
        seed(manager, "lease", ["name", "holder", "fence", "expires_at"], lease).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut lease = Query::delete();
        lease.from_table(Alias::new("lease")).and_where(Expr::col(Alias::new("name")).eq("statistics"));
        manager.execute(lease).await?;
        for name in ["statistic_state", "statistic_work", "statistic"] {
            manager.drop_table(Table::drop().table(Alias::new(name)).if_exists().to_owned()).await?;
        }
        Ok(())
    }
}

/// A row that must be there; its first column is the key.
async fn seed<const N: usize>(
    manager: &SchemaManager<'_>,
    table: &str,
    columns: [&str; N],
    values: [Expr; N],
) -> Result<(), DbErr> {
    let key = Alias::new(columns[0]);
    let mut insert = Query::insert();
    insert
        .into_table(Alias::new(table))
        .columns(columns.map(Alias::new))
        .values_panic(values)
        .on_conflict(OnConflict::column(key.clone()).do_nothing_on([key]).to_owned());
    manager.execute(insert).await
}
