//! Rows of horace cron-job as they are read. Texts that are null are empty.

/// A row of `t_tenant`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForeignTenant {
    /// Id.
    pub id: i64,
    /// Name for people.
    pub name: String,
    /// The word that executors name it by.
    pub tenant: String,
    /// For people.
    pub remark: String,
}

/// A row of `t_app`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForeignApp {
    /// Id.
    pub id: i64,
    /// Id of its tenant.
    pub tenant_id: i64,
    /// Name, unique within the tenant.
    pub app_name: String,
    /// For people.
    pub app_desc: String,
    /// 2: it is stopped, and with it all of its tasks.
    pub state: i64,
}

/// A row of `t_task`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForeignTask {
    /// Id.
    pub id: i64,
    /// Id of its tenant.
    pub tenant_id: i64,
    /// Id of its app.
    pub app_id: i64,
    /// What people call it.
    pub name: String,
    /// Who is responsible.
    pub owner: String,
    /// Cron expression.
    pub cron: String,
    /// Tags of executors, with commas between them.
    pub tag: String,
    /// 1: it is started.
    pub run_state: i64,
    /// Class and method that run.
    pub method: String,
    /// 1: a random executor; 2: all, one shard each.
    pub router_strategy: i64,
    /// 1: a late run is discarded; 2: it runs.
    pub expired_strategy: i64,
    /// From when on a run is late, ms.
    pub expired_time: i64,
    /// 1: a failed run is tried again; 2: it is not.
    pub failure_strategy: i64,
    /// Retries.
    pub max_retry_count: i64,
    /// From a failure to the next attempt, ms.
    pub failure_retry_interval: i64,
    /// Longest time to a result, ms.
    pub timeout: i64,
    /// Parameters.
    pub task_params: String,
    /// For people.
    pub remark: String,
    /// When it was made, epoch ms.
    pub create_time: Option<i64>,
}

/// A row of `t_user`, without its password, which is never read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForeignUser {
    /// Id.
    pub id: i64,
    /// Name to sign in with.
    pub username: String,
    /// Name for people.
    pub nickname: String,
    /// 1: cannot sign in.
    pub state: i64,
}

/// A row of `t_user_tenant`: a user sees a tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForeignMember {
    /// Id of the user.
    pub user_id: i64,
    /// Id of the tenant.
    pub tenant_id: i64,
}

/// Everything that an import takes of a horace cron-job, each list by id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForeignHorace {
    /// Tenants.
    pub tenants: Vec<ForeignTenant>,
    /// Apps.
    pub apps: Vec<ForeignApp>,
    /// Tasks.
    pub tasks: Vec<ForeignTask>,
    /// Users.
    pub users: Vec<ForeignUser>,
    /// Which user sees which tenant.
    pub members: Vec<ForeignMember>,
}
