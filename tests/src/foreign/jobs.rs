//! A hundred jobs that differ, made of a seed.

use super::Release;
use carillon::domain::stable_random::stable_random;
use carillon::domain::xxljob::{BEAN, ForeignGlue, ForeignGroup, ForeignJob, ForeignUser, GLUE_TYPES};

/// Ids of the groups: the last one is of addresses that a person entered.
pub const GROUPS: [i64; 4] = [1, 2, 5, 9];

/// Ids of the jobs begin with it.
const FIRST_ID: i64 = 11;

/// An instant that the times of jobs are near of, ms.
const BEGAN: i64 = 1_767_225_600_000;

/// Expressions of every kind that Quartz reads.
#[rustfmt::skip] // a table
pub const CRONS: &[&str] = &[
    "* * * * * ?", "0/5 * * * * ? *", "*/7 * * * * ?", "10-40/10 * * * * ?", "0,15,30,45 * * * * ?", "0 * * * * ?",
    "30 0/2 * * * ?", "0 0/5 * * * ?", "0 */15 * * * ?", "0 3/10 8-18 * * ?", "0 5,35 * * * ?", "0 59 * * * ?", "0 0 * * * ?",
    "0 0 */2 * * ?", "0 0 0/6 * * ?", "0 30 9-17 * * ?", "0 0 22-2 * * ?", "0 0 8,12,18 * * ?", "0 0 0 * * ?", "0 15 1 * * ?",
    "0 30 2 * * ?", "0 45 2 * * ?", "59 59 23 * * ?", "0 0 3 ? * *", "0 0 12 ? * MON-FRI", "0 0 12 ? * 2-6", "0 30 6 ? * SAT,SUN",
    "0 30 6 ? * 1,7", "0 0 10 ? * FRI-MON", "0 15 10 ? * 6L", "0 15 10 ? * L", "0 0 9 ? * 2#1", "0 0 9 ? * FRI#3", "0 0 9 ? * MON#5",
    "0 0 1 1 * ?", "0 0 1 15 * ?", "0 0 1 1,15 * ?", "0 0 1 31 * ?", "0 0 1 29 2 ?", "0 0 1 L * ?", "0 0 1 L-1 * ?", "0 0 1 L-3 * ?",
    "0 0 1 LW * ?", "0 0 1 1W * ?", "0 0 1 15W * ?", "0 0 1 31W * ?", "0 0 1 1-7 * ?", "0 0 1 */3 * ?", "0 0 1 5/10 * ?",
    "0 0 0 1 1 ?", "0 0 0 1 1,4,7,10 ?", "0 0 0 1 JAN-MAR ?", "0 0 0 1 */2 ?", "0 0 0 ? 6-8 MON", "0 0 0 1 NOV-FEB ?",
    "0 0 12 * * ? 2026", "0 0 12 1 * ? 2026-2028", "0 0 12 1 1 ? 2027/2", "0 0 12 1 1 ? 2026,2028,2032", "0 0 0 25 12 ? *",
    "0 0/30 8-9 5,20 * ?", "0 10,44 14 ? 3 WED", "5 4 3 2 1 ?", "0 0 5 ? * tue", "0  0  5  *  *  ?", "0 0 12 1 1 ? 2099",
];

/// Numbers that look random and are always the same.
#[derive(Debug)]
pub struct Dice {
    seed: u64,
    thrown: u64,
}

impl Dice {
    /// Those of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed: stable_random(seed), thrown: 0 }
    }

    /// A number below `sides`.
    pub fn below(&mut self, sides: i64) -> i64 {
        self.thrown += 1;
        (stable_random(self.seed ^ self.thrown) % sides.unsigned_abs().max(1)).cast_signed()
    }

    /// One of these.
    pub fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as i64) as usize]
    }

    /// Whether one of `sides` falls.
    fn falls(&mut self, sides: i64) -> bool {
        self.below(sides) == 0
    }
}

/// The groups of the jobs.
#[must_use]
pub fn groups() -> Vec<ForeignGroup> {
    let names = ["xxl-job-executor-sample", "orders_executor", "billing.eu", "legacy"];
    let group = |(id, name): (&i64, &str)| ForeignGroup {
        id: *id,
        app_name: name.to_owned(),
        title: format!("执行器 {id}"),
        address_type: i64::from(*id == 9),
        address_list: if *id == 9 { "http://10.0.0.1:9999/,http://10.0.0.2:9999/".to_owned() } else { String::new() },
    };
    GROUPS.iter().zip(names).map(group).collect()
}

/// Users of every kind.
#[must_use]
pub fn users() -> Vec<ForeignUser> {
    let rows = [("admin", 1, ""), ("ann", 0, "1,2"), ("bob", 0, "9"), ("idle", 0, ""), ("王", 0, "1")];
    let user = |(at, (name, role, permission)): (usize, (&str, i64, &str))| ForeignUser {
        id: at as i64 + 1,
        username: name.to_owned(),
        role,
        permission: permission.to_owned(),
    };
    rows.into_iter().enumerate().map(user).collect()
}

/// A hundred jobs as that release keeps them, by id.
#[must_use]
pub fn jobs(seed: u64, release: Release) -> Vec<ForeignJob> {
    let mut dice = Dice::new(seed);
    (0..100).map(|at| of_release(job(at, &mut dice), release)).collect()
}

fn job(at: i64, dice: &mut Dice) -> ForeignJob {
    let id = FIRST_ID + at;
    let descs = ["report", "测试任务", "sync a/b", "daily  close", "Résumé\t2", "close"];
    let (kind, conf) = match dice.below(10) {
        0 => ("NONE", String::new()),
        1 => ("NONE", dice.one_of(CRONS).to_owned()),
        2 | 3 => ("FIX_RATE", (1 + dice.below(100_000)).to_string()),
        _ => ("CRON", CRONS[at as usize % CRONS.len()].to_owned()),
    };
    let glue_type = if dice.falls(5) { dice.one_of(&GLUE_TYPES) } else { BEAN };
    let is_script = glue_type != BEAN;
    let time = |dice: &mut Dice| (!dice.falls(4)).then(|| BEGAN + 1_000 * dice.below(10_000_000));
    ForeignJob {
        id,
        job_group: dice.one_of(&GROUPS),
        job_cron: None,
        job_desc: if dice.falls(2) { dice.one_of(&descs).to_owned() } else { format!("{} {id}", dice.one_of(&descs)) },
        add_time: time(dice),
        update_time: time(dice),
        author: dice.one_of(&["XXL", "ann", "", "李雷"]).to_owned(),
        alarm_email: dice.one_of(&["", "", "ops@example.org,ann@example.org"]).to_owned(),
        schedule_type: Some(kind.to_owned()),
        schedule_conf: Some(conf),
        misfire_strategy: Some(dice.one_of(&["DO_NOTHING", "FIRE_ONCE_NOW"]).to_owned()),
        executor_route_strategy: dice
            .one_of(&[
                "FIRST",
                "LAST",
                "ROUND",
                "RANDOM",
                "CONSISTENT_HASH",
                "LEAST_FREQUENTLY_USED",
                "LEAST_RECENTLY_USED",
                "FAILOVER",
                "BUSYOVER",
                "SHARDING_BROADCAST",
            ])
            .to_owned(),
        executor_handler: if is_script {
            String::new()
        } else {
            dice.one_of(&["demoJobHandler", "shop.Close", "h"]).to_owned()
        },
        executor_param: dice.one_of(&["", "depth=3", "{\"a\": \"it's\"}", "行1\n行2", "C:\\temp\\'x'"]).to_owned(),
        executor_block_strategy: dice.one_of(&["SERIAL_EXECUTION", "DISCARD_LATER", "COVER_EARLY"]).to_owned(),
        executor_timeout: dice.one_of(&[0, 0, 30, 3_600]),
        executor_fail_retry_count: dice.one_of(&[0, 0, 1, 3]),
        glue_source: if is_script { format!("echo {id}\n# 'quoted' \\ 行\n") } else { String::new() },
        glue_remark: if is_script { format!("version of {id}") } else { String::new() },
        glue_updatetime: time(dice),
        glue_type: glue_type.to_owned(),
        child_jobid: if dice.falls(6) && at > 0 { (FIRST_ID + dice.below(at)).to_string() } else { String::new() },
        trigger_status: i64::from(!dice.falls(3)),
        trigger_last_time: if dice.falls(2) { BEGAN + dice.below(1_000_000) * 1_000 } else { 0 },
        trigger_next_time: if dice.falls(2) { BEGAN + dice.below(1_000_000) * 1_000 } else { 0 },
    }
}

/// 2.2.0 has cron expressions only.
fn of_release(job: ForeignJob, release: Release) -> ForeignJob {
    if release != Release::V2_2_0 {
        return job;
    }
    let cron = job.schedule_conf.as_ref().filter(|_| job.schedule_type.as_deref() == Some("CRON"));
    let job_cron = Some(cron.cloned().unwrap_or_default());
    ForeignJob { job_cron, schedule_type: None, schedule_conf: None, misfire_strategy: None, ..job }
}

/// Versions of the scripts among these jobs: two of each, the one that runs last.
#[must_use]
pub fn glue_of(jobs: &[ForeignJob]) -> Vec<ForeignGlue> {
    let scripts = jobs.iter().filter(|job| job.glue_type != BEAN);
    let versions =
        scripts.flat_map(|job| [format!("echo first {}\n", job.id), job.glue_source.clone()].map(|text| (job, text)));
    let version = |(at, (job, glue_source)): (usize, (&ForeignJob, String))| ForeignGlue {
        id: at as i64 + 1,
        job_id: job.id,
        glue_type: job.glue_type.clone(),
        glue_source,
        glue_remark: format!("remark {at}"),
        add_time: Some(BEGAN + at as i64 * 1_000),
    };
    versions.enumerate().map(version).collect()
}
