//! Apps and tasks as portals and scripts that know xxl-job's admin list them: by their numbers, a page from a place on, with
//! how many there are.

use super::conditions::Conditions;
use super::row::{FromRow as _, Read, column, from_row, or_default};
use super::sql_store::{read_all, retrying};
use super::task_views::views_with;
use super::values::to_word;
use super::xxljob::APP_NUMBERS_BEGIN;
use super::{BATCH_MAX, JobNumberStore as _, Result, SqlStore, TaskView};
use crate::domain::task::ParentOutcome;
use crate::domain::xxljob::GlueType;
use crate::domain::{AccessScope, AppId, Owner, TaskId, TenantId};
use sea_orm::QueryResult;
use std::collections::{BTreeMap, HashMap};

/// Rows of a list that are counted at most.
const COUNTED_MAX: u32 = 100_000;

/// Rounds of [`BATCH_MAX`] numbers that one call gives.
const ROUNDS_MAX: usize = 100;

/// Links to children that are read for one page at most.
const CHILDREN_MAX: u64 = 10_000;

const LIST_GROUPS: &str = "list apps by their numbers";
const LIST_JOBS: &str = "list tasks by their numbers";

/// Which apps to list.
#[derive(Debug, Clone, Default)]
pub struct GroupFilter {
    /// Only the one of this number.
    pub number: Option<i32>,
    /// Only those that have this in their name.
    pub name: Option<String>,
    /// Only those that have this in what people read first: the description, or the name where there is none.
    pub title: Option<String>,
    /// So many are left out.
    pub offset: u64,
    /// At most so many.
    pub limit: u64,
}

/// An app by its number.
#[derive(Debug, Clone)]
pub struct GroupView {
    /// Its number within the tenant.
    pub number: i32,
    /// Whose tasks are its.
    pub owner: Owner,
    /// Tenant's name.
    pub tenant: String,
    /// Name.
    pub name: String,
    /// For people.
    pub description: String,
}

from_row!(GroupView { number, owner = owner_of_app, tenant, name, description = or_default("description") });

fn owner_of_app(row: &QueryResult) -> Read<Owner> {
    Ok(Owner { tenant_id: column(row, "tenant_id")?, app_id: column(row, "id")? })
}

/// Which tasks to list.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    /// Only those of these numbers; empty is all.
    pub numbers: Vec<i32>,
    /// Only of the app of this number.
    pub group: Option<i32>,
    /// Only those that fire by themselves, or do not.
    pub started: Option<bool>,
    /// Only those that have this in their name, or in their description.
    pub text: Option<String>,
    /// Only those that have this in the name of their handler.
    pub handler: Option<String>,
    /// Only those that have this in their author.
    pub author: Option<String>,
    /// So many are left out.
    pub offset: u64,
    /// At most so many.
    pub limit: u64,
}

/// A task by its number.
#[derive(Debug, Clone)]
pub struct JobView {
    /// The task.
    pub task: TaskView,
    /// Its number within the tenant.
    pub number: i32,
    /// Its app's.
    pub group: i32,
    /// Who is responsible for it.
    pub author: String,
    /// Where alarms went.
    pub alarm_email: String,
    /// What its runs are.
    pub glue_type: GlueType,
    /// What the author of its script said of that.
    pub glue_remark: String,
    /// When its script was written, epoch ms; none where it has none.
    pub glue_updated_at: Option<i64>,
    /// Numbers of the tasks that follow its success, of those within reach.
    pub children: Vec<i32>,
}

/// What a row has beside the task.
struct Beside {
    number: i32,
    group: i32,
    author: String,
    alarm_email: String,
    glue_type: GlueType,
    glue_remark: String,
    glue_updated_at: Option<i64>,
}

from_row!(Beside {
    number: "job_number",
    group: "job_group",
    author = or_default("author"),
    alarm_email = or_default("alarm_email"),
    glue_type = or_default("glue_type"),
    glue_remark = or_default("glue_remark"),
    glue_updated_at,
});

impl SqlStore {
    /// Lists apps within reach by their numbers, and says how many there are; those without a number get the next ones.
    pub async fn job_groups(&self, access_scope: &AccessScope, filter: &GroupFilter) -> Result<(u64, Vec<GroupView>)> {
        const FROM: &str = "FROM app a JOIN tenant n ON n.id = a.tenant_id JOIN xxljob_app x ON x.app_id = a.id";
        self.number_apps(access_scope).await?;
        let wanted = |head: String| {
            let mut wanted = Conditions::new(format!("{head} WHERE x.number > 0"), Vec::new());
            wanted.within(access_scope, "a.tenant_id", Some("a.id"));
            wanted.and("x.number = ", filter.number);
            wanted.and_holds(&["a.name"], filter.name.as_deref());
            wanted.and_holds(&["COALESCE(NULLIF(a.description, ''), a.name)"], filter.title.as_deref());
            wanted
        };
        let total = self.counted(LIST_GROUPS, wanted(format!("SELECT COUNT(*) FROM (SELECT a.id {FROM}"))).await?;
        let mut page =
            wanted(format!("SELECT x.number, a.id, a.tenant_id, n.name AS tenant, a.name, a.description {FROM}"));
        let order = format!("ORDER BY x.number LIMIT {{{}}} OFFSET", page.push(filter.limit));
        let at = page.push(filter.offset);
        Ok((total, self.query_raw(LIST_GROUPS, page.finish_as(self, &format!("{order} {{{at}}}"))).await?))
    }

    /// Lists tasks within reach, the latest number first, and says how many there are; those without a number get the next
    /// ones. What a later release wrote, and this one cannot read, is left out and reported.
    pub async fn jobs(&self, access_scope: &AccessScope, filter: &JobFilter) -> Result<(u64, Vec<JobView>)> {
        const JOINED: &str = "JOIN xxljob_task x ON x.task_id = t.id JOIN xxljob_app g ON g.app_id = t.app_id LEFT JOIN \
             xxljob_words w ON w.task_id = t.id LEFT JOIN task_script s ON s.task_id = t.id AND s.version = t.script";
        self.number_apps(access_scope).await?;
        self.number_all_tasks(access_scope).await?;
        let wanted = |head: String| {
            let mut wanted = Conditions::new(format!("{head} {JOINED} WHERE x.number > 0"), Vec::new());
            wanted.within(access_scope, "t.tenant_id", Some("t.app_id"));
            if !filter.numbers.is_empty() {
                let places: Vec<String> =
                    filter.numbers.iter().map(|number| format!("{{{}}}", wanted.push(*number))).collect();
                let numbered = format!(" AND x.number IN ({})", places.join(", "));
                wanted.text.push_str(&numbered);
            }
            wanted.and("g.number = ", filter.group);
            wanted.and("t.started = ", filter.started.map(i32::from));
            wanted.and_holds(&["t.name", "t.description"], filter.text.as_deref());
            wanted.and_holds(&["t.handler"], filter.handler.as_deref());
            wanted.and_holds(&["w.author"], filter.author.as_deref());
            wanted
        };
        let total = self.counted(LIST_JOBS, wanted("SELECT COUNT(*) FROM (SELECT t.id FROM task t".to_owned())).await?;
        let mut page = wanted(views_with(
            ", x.number AS job_number, g.number AS job_group, w.author, w.alarm_email, s.glue_type, s.remark AS glue_remark, \
             s.updated_at AS glue_updated_at",
        ));
        let order = format!("ORDER BY x.number DESC LIMIT {{{}}} OFFSET", page.push(filter.limit));
        let at = page.push(filter.offset);
        let rows = self.fetch(LIST_JOBS, page.finish_as(self, &format!("{order} {{{at}}}"))).await?;
        Ok((total, self.read_jobs(access_scope, &rows).await?))
    }

    /// The numbers of a tenant's apps, as far as they have one.
    pub async fn group_numbers(&self, tenant_id: TenantId) -> Result<HashMap<AppId, i32>> {
        let read = sql!("SELECT app_id, number FROM xxljob_app WHERE tenant_id = {1} LIMIT {2}");
        let values = [tenant_id.into(), u64::from(COUNTED_MAX).into()];
        let found: Vec<(AppId, i32)> = self.query(LIST_GROUPS, &read, values).await?;
        Ok(found.into_iter().collect())
    }

    async fn read_jobs(&self, access_scope: &AccessScope, rows: &[QueryResult]) -> Result<Vec<JobView>> {
        let beside: Vec<Beside> = read_all(LIST_JOBS, rows, Beside::from_row)?;
        let (mut tasks, mut kept): (Vec<TaskView>, Vec<Beside>) = (Vec::new(), Vec::new());
        for (row, beside) in rows.iter().zip(beside) {
            match TaskView::from_row(row) {
                Ok(task) => {
                    tasks.push(task);
                    kept.push(beside);
                }
                Err(error) => {
                    tracing::error!(number = beside.number, %error, "a task cannot be read and is not listed");
                }
            }
        }
        let unreadable = self.fill_parents(&mut tasks).await?;
        for task in &unreadable {
            tracing::error!(task = task.0, "a task has a link of a later release and is not listed");
        }
        let mut children = self.children_of(access_scope, &tasks).await?;
        let with_place = tasks.into_iter().zip(kept).filter(|(task, _)| !unreadable.contains(&task.id));
        let job = |(task, beside): (TaskView, Beside)| {
            let children = children.remove(&task.id).unwrap_or_default();
            let Beside { number, group, author, alarm_email, glue_type, glue_remark, glue_updated_at } = beside;
            JobView { task, number, group, author, alarm_email, glue_type, glue_remark, glue_updated_at, children }
        };
        Ok(with_place.map(job).collect())
    }

    /// The numbers of the tasks within reach that follow the success of these.
    async fn children_of(&self, access_scope: &AccessScope, parents: &[TaskView]) -> Result<HashMap<TaskId, Vec<i32>>> {
        const HEAD: &str = "SELECT p.parent_id, x.number FROM task_parent p JOIN task t ON t.id = p.child_id JOIN \
             xxljob_task x ON x.task_id = t.id WHERE p.on_outcome = {1}";
        let mut children: HashMap<TaskId, Vec<i32>> = HashMap::new();
        if parents.is_empty() {
            return Ok(children);
        }
        let success = to_word(LIST_JOBS, &ParentOutcome::Success)?;
        let mut wanted = Conditions::new(HEAD.to_owned(), vec![success.into()]);
        wanted.within(access_scope, "t.tenant_id", Some("t.app_id"));
        let places: Vec<String> = parents.iter().map(|task| format!("{{{}}}", wanted.push(task.id))).collect();
        let follow = format!(" AND p.parent_id IN ({})", places.join(", "));
        wanted.text.push_str(&follow);
        let statement = wanted.finish(self, "ORDER BY x.number", CHILDREN_MAX);
        let found: Vec<(TaskId, i32)> = self.query_raw(LIST_JOBS, statement).await?;
        for (parent, child) in found {
            children.entry(parent).or_default().push(child);
        }
        Ok(children)
    }

    async fn counted(&self, action: &'static str, wanted: Conditions) -> Result<u64> {
        let found: Vec<i64> =
            self.query_raw(action, wanted.finish_as(self, &format!("LIMIT {COUNTED_MAX}) s"))).await?;
        Ok(found.first().map_or(0, |count| count.unsigned_abs()))
    }

    /// Numbers the tasks within reach that have no number yet.
    async fn number_all_tasks(&self, access_scope: &AccessScope) -> Result<()> {
        const HEAD: &str = "SELECT t.id, t.tenant_id, t.app_id FROM task t WHERE NOT EXISTS (SELECT 1 FROM xxljob_task x \
             WHERE x.task_id = t.id)";
        for _ in 0..ROUNDS_MAX {
            let mut wanted = Conditions::new(HEAD.to_owned(), Vec::new());
            wanted.within(access_scope, "t.tenant_id", Some("t.app_id"));
            let statement = wanted.finish(self, "ORDER BY t.id", BATCH_MAX as u64);
            let found: Vec<(TaskId, TenantId, AppId)> = self.query_raw(LIST_JOBS, statement).await?;
            let mut by_owner: BTreeMap<(TenantId, AppId), Vec<TaskId>> = BTreeMap::new();
            for (task, tenant_id, app_id) in &found {
                by_owner.entry((*tenant_id, *app_id)).or_default().push(*task);
            }
            for ((tenant_id, app_id), tasks) in by_owner {
                self.job_numbers(Owner { tenant_id, app_id }, &tasks).await?;
            }
            if found.len() < BATCH_MAX {
                break;
            }
        }
        Ok(())
    }

    /// Numbers the apps within reach that have no number yet, one transaction of a tenant at a time.
    async fn number_apps(&self, access_scope: &AccessScope) -> Result<()> {
        const HEAD: &str =
            "SELECT a.tenant_id, a.id FROM app a WHERE NOT EXISTS (SELECT 1 FROM xxljob_app x WHERE x.app_id = a.id)";
        for _ in 0..ROUNDS_MAX {
            let mut wanted = Conditions::new(HEAD.to_owned(), Vec::new());
            wanted.within(access_scope, "a.tenant_id", Some("a.id"));
            let statement = wanted.finish(self, "ORDER BY a.id", BATCH_MAX as u64);
            let found: Vec<(TenantId, AppId)> = self.query_raw(LIST_GROUPS, statement).await?;
            let mut by_tenant: BTreeMap<TenantId, Vec<AppId>> = BTreeMap::new();
            for (tenant_id, app_id) in &found {
                by_tenant.entry(*tenant_id).or_default().push(*app_id);
            }
            for (tenant_id, apps) in by_tenant {
                retrying(|| self.number_apps_of(tenant_id, &apps)).await?;
            }
            if found.len() < BATCH_MAX {
                break;
            }
        }
        Ok(())
    }

    async fn number_apps_of(&self, tenant_id: TenantId, apps: &[AppId]) -> Result<()> {
        let take = sql!("UPDATE xxljob_app_last SET last_app = last_app + 1 WHERE tenant_id = {1}");
        let number = sql!(
            "INSERT INTO xxljob_app (app_id, tenant_id, number) SELECT {2}, l.tenant_id, l.last_app FROM xxljob_app_last l \
             WHERE l.tenant_id = {1} AND NOT EXISTS (SELECT 1 FROM xxljob_app x WHERE x.app_id = {2})"
        );
        let tx = self.begin("number apps").await?;
        for app in apps {
            // Its row is held from here on: whoever numbers the same app comes later, and finds it numbered.
            if tx.execute(&take, [tenant_id.into()]).await? == 0 {
                tx.execute(&APP_NUMBERS_BEGIN, [tenant_id.into()]).await?;
                tx.execute(&take, [tenant_id.into()]).await?;
            }
            tx.execute(&number, [tenant_id.into(), (*app).into()]).await?;
        }
        tx.commit().await
    }
}

impl GroupView {
    /// What people read first.
    #[must_use]
    pub fn title(&self) -> &str {
        if self.description.is_empty() { &self.name } else { &self.description }
    }
}
