//! Counts the fires of the next 24 hours, and caches the last answers.

use super::input::PAGE_MAX;
use super::problem::Problem;
use super::refusal::RequestRefusal;
use crate::domain::forecast::{Budget, Extent, Firing, Forecast, Peak, forecast};
use crate::domain::task::{NEVER, ScheduleKind};
use crate::domain::{AccessScope, TaskId, TenantId};
use crate::store::{SqlStore, TaskFilter, TaskState, TaskView, WrittenFires};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use utoipa::ToSchema;

/// Most tasks that one forecast reads.
const TASKS_MAX: usize = 20_000;

/// How long an answer is kept.
const KEPT: Duration = Duration::from_secs(30);

/// Most cached answers, of some 15 KiB each.
const ANSWERS_MAX: usize = 64;

/// How long a caller waits for their turn.
const TURN_MAX: Duration = Duration::from_secs(20);

/// Fires by the minute.
#[derive(Serialize, ToSchema)]
pub struct FireForecast {
    /// Start of the first minute, epoch ms: the current one, of which only future fires count.
    from: i64,
    /// Fires in each of the 1440 minutes.
    #[schema(min_items = 1440, max_items = 1440)]
    minutes: Vec<u64>,
    /// Tasks that were counted.
    tasks: usize,
    /// Started tasks that were not counted: those beyond the limits (reported up to 100,000), and those whose fires
    /// cannot be known in advance, with a fixed delay or without a schedule.
    left_out: u64,
    /// The busiest minutes, busiest first, 10 at most.
    peaks: Vec<ForecastPeak>,
}

/// A minute with many fires.
#[derive(Serialize, ToSchema)]
pub struct ForecastPeak {
    /// Where it starts, epoch ms.
    minute: i64,
    /// Fires in it.
    fires: u64,
    /// The tasks with the most fires in it, 5 at most.
    tasks: Vec<ForecastTask>,
}

/// A task that fires in such a minute.
#[derive(Serialize, ToSchema)]
pub struct ForecastTask {
    /// Id.
    task: String,
    /// Its name.
    name: String,
    /// Tenant's name.
    tenant: String,
    /// How often it fires in the minute.
    fires: u64,
}

/// Key of an answer: another access scope gets another answer.
pub type Asked = (AccessScope, Option<TenantId>);

type Answers = VecDeque<(Asked, Instant, Arc<FireForecast>)>;

/// The last answers; one is computed at a time.
#[derive(Clone)]
pub struct Forecasts {
    turn: Arc<Semaphore>,
    answers: Arc<Mutex<Answers>>,
}

impl Default for Forecasts {
    fn default() -> Self {
        Self { turn: Arc::new(Semaphore::new(1)), answers: Arc::default() }
    }
}

impl Forecasts {
    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self, asked: &Asked) -> Option<Arc<FireForecast>> {
        let mut answers = self.answers();
        answers.retain(|(_, at, _)| at.elapsed() < KEPT);
        answers.iter().find(|(known, ..)| known == asked).map(|(.., answer)| Arc::clone(answer))
    }

    fn keep(&self, asked: Asked, answer: &Arc<FireForecast>) {
        let mut answers = self.answers();
        if answers.len() >= ANSWERS_MAX {
            answers.pop_front();
        }
        answers.push_back((asked, Instant::now(), Arc::clone(answer)));
    }

    /// The answer to `asked`; callers that arrive while another one is being computed wait for their turn.
    pub async fn answer(&self, store: &SqlStore, asked: Asked, now: i64) -> Result<Arc<FireForecast>, Problem> {
        if let Some(answer) = self.kept(&asked) {
            return Ok(answer);
        }
        let turn = tokio::time::timeout(TURN_MAX, Arc::clone(&self.turn).acquire_owned()).await;
        let busy = |_| Problem::from(RequestRefusal::ForecastBusy).retry_after(TURN_MAX);
        let turn = turn.map_err(busy)?.map_err(Problem::internal)?;
        // The previous caller may have asked the same.
        if let Some(answer) = self.kept(&asked) {
            return Ok(answer);
        }
        let Read { tasks, shown, left_out } = read_tasks(store, &asked, now).await?;
        let kept = self.clone();
        let count = move || {
            let answer = Arc::new(answer_of(forecast(&tasks, now, Budget::default()), &shown, left_out));
            // Cached before the next caller gets its turn, even when the caller of this one no longer waits.
            kept.keep(asked, &answer);
            drop(turn);
            answer
        };
        tokio::task::spawn_blocking(count).await.map_err(Problem::internal)
    }
}

/// Tasks as they are counted, and as they are shown.
struct Read {
    tasks: Vec<Firing>,
    shown: Vec<(TaskId, String, String)>,
    left_out: u64,
}

async fn read_tasks(store: &SqlStore, (access_scope, tenant_id): &Asked, now: i64) -> Result<Read, Problem> {
    let mut read = Read { tasks: Vec::new(), shown: Vec::new(), left_out: 0 };
    let mut filter =
        TaskFilter { tenant_id: *tenant_id, state: Some(TaskState::Started), limit: PAGE_MAX, ..TaskFilter::default() };
    let mut seen = 0;
    while seen < TASKS_MAX {
        let page = store.list_tasks(access_scope, &filter).await?;
        let schedules = store.schedules_of(&page).await?;
        let written = store.written_fires(&page, now).await?;
        for (task, schedule) in page.iter().zip(schedules) {
            if matches!(task.spec.schedule, ScheduleKind::FixedDelay | ScheduleKind::None) {
                read.left_out += 1;
                continue;
            }
            read.tasks.push(Firing { schedule, extent: extent(task, written.get(&task.id)) });
            read.shown.push((task.id, task.spec.name.clone(), task.tenant.clone()));
        }
        seen += page.len();
        match page.last() {
            Some(last) if page.len() as u64 == PAGE_MAX => filter.after = last.id,
            _ => return Ok(read),
        }
    }
    read.left_out += store.number_of_tasks(access_scope, &filter).await?;
    Ok(read)
}

fn extent(task: &TaskView, written: Option<&WrittenFires>) -> Extent {
    if task.is_written_up() {
        return Extent::Until(written.map_or(0, |written| written.last.saturating_add(1)));
    }
    if task.spec.max_fires <= 0 || task.next_fire_at == NEVER {
        return Extent::Unbounded;
    }
    let fires = u64::try_from(task.spec.max_fires - task.fires).unwrap_or(0);
    Extent::Left { from: task.next_fire_at, fires }
}

fn answer_of(told: Forecast, shown: &[(TaskId, String, String)], left_out: u64) -> FireForecast {
    let task = |(place, fires): (usize, u64)| {
        let (task, name, tenant) = shown.get(place)?;
        Some(ForecastTask { task: task.to_string(), name: name.clone(), tenant: tenant.clone(), fires })
    };
    let peak = |Peak { minute, fires, tasks }: Peak| ForecastPeak {
        minute,
        fires,
        tasks: tasks.into_iter().filter_map(task).collect(),
    };
    FireForecast {
        from: told.from,
        minutes: told.minutes,
        tasks: told.tasks,
        left_out: left_out + told.left_out as u64,
        peaks: told.peaks.into_iter().map(peak).collect(),
    }
}
