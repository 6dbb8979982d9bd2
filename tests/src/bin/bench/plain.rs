//! Plain executors, which speak xxl-job's protocol: the process that plays them, and what it saw.

use crate::database::Database;
use crate::records;
use crate::stand::{self, Bench, RECORDS};
use anyhow::{Result, ensure};
use carillon::domain::LogId;
use carillon::domain::xxljob::number;
use carillon_tests::plain_executor::open_door;
use carillon_tests::{Api, App, folder};
use std::collections::HashMap;
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of a record of the fleet: the number of a run, and when it arrived, epoch µs.
const BYTES: usize = 16;

/// The command that plays `count` executors of `apps` in turn, and its folder. Each app gets a token, which opens its door.
pub async fn fleet(
    bench: &Bench,
    (api, node): (&Api, &str),
    apps: &[App],
    count: u32,
    runs: u64,
) -> Result<(Command, PathBuf)> {
    let mut lines = Vec::new();
    for (number, app) in apps.iter().enumerate() {
        let token = format!("the-token-of-app-{number}-of-the-benchmark");
        open_door(api, app, &token).await;
        lines.push(format!("{}\t{token}\n", app.name));
    }
    let folder = folder::fresh("bench-fleet");
    let list = folder.join("apps");
    std::fs::write(&list, lines.iter().map(String::as_str).cycle().take(count as usize).collect::<String>())?;
    let mut command = stand::program(&bench.programs, "carillon-fleet")?;
    command
        .current_dir(&folder)
        .env("FLEET_ADMIN", format!("{node}/xxl-job-admin"))
        .env("FLEET_APPS", &list)
        .env("FLEET_RECORDS", folder.join(RECORDS))
        .env("FLEET_ROOM", runs.to_string());
    Ok((command, folder))
}

/// Makes records as those of the SDK's executors are of what the fleet wrote: by the numbers of runs it finds the fires of
/// `window` (epoch ms) in the database. The wall clock at the executor's door is the only one there is.
pub async fn name_fires(file: &Path, database: &Database, window: &Range<i64>) -> Result<()> {
    let sql = format!(
        "SELECT id, task_id, fire_time FROM task_log WHERE fire_time >= {} AND fire_time < {}",
        window.start, window.end
    );
    let mut fires: HashMap<i64, (i64, i64, i64)> = HashMap::new();
    for row in database.query(&sql).await? {
        let (log, task, fire_time): (i64, i64, i64) =
            (row.try_get_by_index(0)?, row.try_get_by_index(1)?, row.try_get_by_index(2)?);
        fires.insert(number::of_first(LogId(log)), (log, task, fire_time));
    }
    let seen = std::fs::read(file)?;
    ensure!(seen.len().is_multiple_of(BYTES), "{} is not whole", file.display());
    let mut named = Vec::new();
    for record in seen.chunks_exact(BYTES) {
        let long = |at: usize| i64::from_le_bytes(std::array::from_fn(|i| record[at + i]));
        let (number, at_us) = (long(0), long(8));
        if let Some((log, task, fire_time)) = fires.get(&number) {
            let late_us = (at_us - fire_time * 1_000).clamp(i32::MIN.into(), i32::MAX.into()) as i32;
            named.extend([*log, *task, *fire_time].into_iter().flat_map(i64::to_le_bytes));
            named.extend([late_us, late_us, 1].into_iter().flat_map(i32::to_le_bytes));
        }
    }
    ensure!(named.len().is_multiple_of(records::BYTES), "records of another size");
    std::fs::File::create(file)?.write_all(&named)?;
    Ok(())
}
