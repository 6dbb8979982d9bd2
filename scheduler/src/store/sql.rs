//! Every statement of the hot path, rendered once per database.
//!
//! `+l.status`, `+l.tenant_id` keep SQLite from starting a batch at an index of states or tenants, which would read
//! the whole document once per row of the table; the way in is always the batch's own keys.

use super::LEFT_OUT_MAX;
use super::dialect::{Dialect, Kind, Sql};
use super::rows::{EXECUTOR_COLUMNS, HANDED_COLUMNS, RUN_COLUMNS, TASK_COLUMNS};
use super::task_columns::spec_list;
use crate::domain::Status;

/// The statements.
#[derive(Debug)]
pub struct Statements {
    // cluster
    pub now_us: Sql,
    pub node_beat: Sql,
    pub nodes: Sql,
    pub lease_take: Sql,
    pub lease_renew: Sql,
    pub lease_read: Sql,
    // pregenerate
    pub tasks_due: Sql,
    pub tasks: Sql,
    pub move_watermarks: Sql,
    pub moved_tasks: Sql,
    pub watermark: Sql,
    pub skipped: Sql,
    pub move_skips: Sql,
    pub insert_fires: Sql,
    pub keep_given_up: Sql,
    pub take_over_fires: Sql,
    pub watch_fires: Sql,
    // claim
    pub claimable_all: Sql,
    pub claimable_share: Sql,
    pub claimable_besides: Sql,
    pub claim: Sql,
    pub claimed: Sql,
    pub queued_of: Sql,
    pub queued_of_others: Sql,
    // hand over
    pub hand_over: Sql,
    pub handed_over: Sql,
    pub expand_parent: Sql,
    pub insert_shards: Sql,
    pub change: Sql,
    pub changed: Sql,
    pub note_stop: Sql,
    pub noted_stop: Sql,
    // permits and routing
    pub scope_lock: Sql,
    pub scope_insert: Sql,
    pub permit_clean: Sql,
    pub permits_of_tasks: Sql,
    pub permits_of_apps: Sql,
    pub permits_of_tenants: Sql,
    pub permits_waiting: Sql,
    pub permit_waits: Sql,
    pub permit_drop: Sql,
    pub permit_back: Sql,
    pub permit_insert: Sql,
    pub permit_holders: Sql,
    pub note_waits: Sql,
    pub rate_lock: Sql,
    pub rate_insert: Sql,
    pub rates: Sql,
    pub rate_write: Sql,
    pub rate_line: Sql,
    pub over_quota: Sql,
    pub ask_anew: Sql,
    pub uses: Sql,
    pub use_insert: Sql,
    pub use_add: Sql,
    pub overdue: Sql,
    pub rule_version: Sql,
    pub postponed: Sql,
    pub resume: Sql,
    // outcome
    pub succeed: Sql,
    pub runs: Sql,
    pub runs_scoped: Sql,
    pub stale: Sql,
    pub parents_of: Sql,
    pub settle_parents: Sql,
    pub open_parents: Sql,
    pub stopping: Sql,
    pub shards_to_stop: Sql,
    pub suspects_of: Sql,
    pub suspects_except: Sql,
    // follow up
    pub follow_any: Sql,
    pub follow_ended: Sql,
    pub follow_take: Sql,
    pub adopt: Sql,
    pub watch_runs: Sql,
    pub children_of: Sql,
    // executors
    pub signing_keys: Sql,
    pub executor_beat: Sql,
    pub executor_known: Sql,
    pub reconfirm: Sql,
    pub reconfirmed: Sql,
    pub executors: Sql,
    pub executor_ends: Sql,
    // housekeeping
    pub purge_select: Sql,
    pub purge_delete: Sql,
    pub purge_stale: Sql,
    pub purge_beside: [Sql; 5],
    pub statistics: super::statistics::Statements,
    pub purge_look: Sql,
    pub purge_beside_these: [Sql; 4],
    pub attempts: super::attempts::Statements,
    // tasks
    pub parents_of_tasks: Sql,
    pub names_of_tasks: Sql,
    pub calendars: Sql,
    pub taken_fires: Sql,
    pub revive_fires: Sql,
    pub insert_backfill: Sql,
    pub insert_backfill_runs: Sql,
    pub watch_backfill: Sql,
    pub shard_counts: Sql,
}

const INIT: i16 = Status::Init as i16;
const QUEUED: i16 = Status::Queued as i16;
const DISPATCHED: i16 = Status::Dispatched as i16;
const RETRY: i16 = Status::Retry as i16;
const SUCCEEDED: i16 = Status::Succeeded as i16;
const FAILED: i16 = Status::Failed as i16;
const CANCELLED: i16 = Status::Cancelled as i16;
const EXPIRED: i16 = Status::Expired as i16;

/// Whether the permit `p` of the log `l` counts.
const HOLDS: &str = "(+l.status = 2 OR (+l.status = 1 AND l.version = p.version))";

/// Whether the permit `p` says that the log `l` waits for one.
const WAITS: &str = "(+l.status = 1 AND l.version = -p.version)";

const USE: &[(&str, Kind)] = &[
    ("id", Kind::Big),
    ("task_id", Kind::Big),
    ("address", Kind::Text),
    ("floor", Kind::Big),
    ("added", Kind::Big),
    ("last", Kind::Big),
];
const BACKFILL: &[(&str, Kind)] = &[("id", Kind::Big), ("fire_time", Kind::Big), ("bucket", Kind::Int)];
const ID: &[(&str, Kind)] = &[("id", Kind::Big)];
const ID_VERSION: &[(&str, Kind)] = &[("id", Kind::Big), ("version", Kind::Big)];
const FIRE: &[(&str, Kind)] = &[
    ("id", Kind::Big),
    ("task_id", Kind::Big),
    ("revision", Kind::Big),
    ("next", Kind::Big),
    ("fire_time", Kind::Big),
    ("due_time", Kind::Big),
    ("status", Kind::Int),
    ("bucket", Kind::Int),
    ("shard_index", Kind::Int),
    ("reason", Kind::Text),
    ("message", Kind::Text),
    ("origin", Kind::Text),
    ("seq", Kind::Big),
    ("priority", Kind::Int),
];
const MARK: &[(&str, Kind)] = &[
    ("id", Kind::Big),
    ("revision", Kind::Big),
    ("from", Kind::Big),
    ("to", Kind::Big),
    ("counted", Kind::Big),
    ("turns", Kind::Big),
    ("follow_up", Kind::Int),
];

impl Statements {
    /// Renders all of them for `backend`.
    #[allow(clippy::too_many_lines)] // a list, one entry per statement
    pub fn new(backend: Dialect) -> Self {
        let sql = |template: &str| Sql::new(backend, template);
        let from = |table: &str, set: &str, columns: &[(&str, Kind)], on: &str| {
            Sql::new(backend, &backend.update_from(table, set, &backend.rows(1, columns), on))
        };
        let suspects = |which: &str| {
            format!(
                "SELECT {HANDED_COLUMNS} FROM task_log l WHERE l.status = {DISPATCHED} AND l.shard_index >= 0 AND \
                 l.executor_id {which} (SELECT n_id FROM {}) AND (l.due_time < {{2}} OR ({{3}} = 1 AND \
                 l.node_id NOT IN (SELECT n_id FROM {}))) ORDER BY l.due_time LIMIT {{5}}",
                backend.rows(1, ID),
                backend.rows(4, ID)
            )
        };
        let spec = spec_list("");
        let batch_first = backend.join_in_order();
        let permits = |scope: &str| {
            format!(
                "SELECT p.{scope}, COUNT(*) FROM permit p JOIN task_log l ON l.id = p.id WHERE p.{scope} IN (SELECT n_id FROM {}) \
                 AND p.id NOT IN (SELECT n_id FROM {}) AND {HOLDS} GROUP BY p.{scope}",
                backend.rows(1, ID),
                backend.rows(2, ID)
            )
        };
        let in_rows = |marker: usize| format!("(SELECT n_id FROM {})", backend.rows(marker, ID));
        Self {
            now_us: sql("SELECT {now_us} AS now_us"),
            node_beat: sql(
                "UPDATE node SET heartbeat_at = {now}, queue_depth = {3}, left_at = 0, clock_offset_ms = {4}, \
                 clock_uncertainty_us = {5} WHERE id = {1} AND incarnation = {2}",
            ),
            nodes: sql(
                "SELECT id, name, address, version, started_at, heartbeat_at, left_at, queue_depth, clock_offset_ms, \
                 clock_uncertainty_us FROM node \
                 WHERE left_at = 0 OR left_at > {1} ORDER BY id",
            ),
            lease_take: sql(
                "UPDATE lease SET fence = fence + 1, holder = {2}, expires_at = {now} + {3} WHERE name = {1} \
                 AND (expires_at < {now} OR expires_at > {now} + 10 * {3})",
            ),
            lease_renew: sql(
                "UPDATE lease SET expires_at = {now} + {4} WHERE name = {1} AND holder = {2} AND fence = {3} \
                 AND expires_at >= {now}",
            ),
            lease_read: sql("SELECT fence FROM lease WHERE name = {1} AND holder = {2} AND expires_at >= {now}"),
            tasks_due: sql(&format!(
                "SELECT {TASK_COLUMNS}, {spec} FROM task WHERE next_fire_at <= {{1}} ORDER BY next_fire_at LIMIT {{2}}"
            )),
            tasks: sql(&format!("SELECT {TASK_COLUMNS}, {spec} FROM task WHERE id IN {}", in_rows(1))),
            move_watermarks: from(
                "task",
                "next_fire_at = v.n_to, fires = l.fires + v.n_counted, turn = l.turn + v.n_turns",
                MARK,
                // A plan made before the first child came would leave its runs without a follow-up;
                // the next one knows.
                "l.id = v.n_id AND l.revision = v.n_revision AND l.next_fire_at = v.n_from AND \
                 (v.n_follow_up = 1 OR l.children = 0)",
            ),
            moved_tasks: sql(&format!(
                "SELECT t.id FROM {} JOIN task t ON t.id = v.n_id AND t.revision = v.n_revision AND t.next_fire_at = v.n_to \
                 AND (v.n_follow_up = 1 OR t.children = 0)",
                backend.rows(1, MARK)
            )),
            watermark: sql("SELECT MIN(next_fire_at) FROM task"),
            skipped: sql(&super::skips::skipped(backend)),
            move_skips: from("task_log", "shard_index = {2}, shard_total = {3}", ID, "l.id = v.n_id"),
            insert_fires: sql(&format!(
                "INSERT INTO task_log (id, tenant_id, app_id, task_id, revision, parent_id, shard_index, shard_total, \
                 bucket, fire_time, due_time, status, version, attempt, failures, node_id, executor_id, queued_at, \
                 dispatched_at, started_at, finished_at, reason, message, origin, seq, priority) \
                 SELECT v.n_id, t.tenant_id, t.app_id, t.id, t.revision, 0, \
                 v.n_shard_index, CASE WHEN v.n_shard_index < 0 THEN 0 ELSE 1 END, \
                 v.n_bucket, v.n_fire_time, v.n_due_time, v.n_status, 1, 0, 0, 0, 0, 0, 0, 0, 0, v.n_reason, v.n_message, v.n_origin, v.n_seq, v.n_priority \
                 FROM {} JOIN task t ON t.id = v.n_task_id AND t.revision = v.n_revision AND t.next_fire_at = v.n_next \
                 WHERE 1 = 1 {}",
                backend.rows(1, FIRE),
                backend.or_ignore("task_log", "task_id, fire_time, shard_index")
            )),
            keep_given_up: sql(&super::attempts::keep_given_up(backend, &backend.rows(1, FIRE), &may_take_over())),
            take_over_fires: from(
                "task_log",
                "status = v.n_status, revision = v.n_revision, due_time = v.n_due_time, reason = v.n_reason, \
                     message = v.n_message, version = l.version + 1, failures = 0, origin = v.n_origin, seq = v.n_seq, \
                     priority = v.n_priority, node_id = 0, executor_id = 0, \
                     finished_at = 0, shard_total = CASE WHEN l.shard_index = -1 THEN 0 ELSE l.shard_total END",
                FIRE,
                &may_take_over(),
            ),
            watch_fires: sql(&format!(
                "INSERT INTO follow_up (id, task_id) SELECT l.id, l.task_id FROM {} JOIN task_log l ON \
                 l.task_id = v.n_task_id AND l.fire_time = v.n_fire_time AND l.shard_index = v.n_shard_index \
                 WHERE l.revision = v.n_revision AND +l.status < {SUCCEEDED} {}",
                backend.rows(1, FIRE),
                backend.or_ignore("follow_up", "id")
            )),
            claimable_all: sql(&claimable(backend, &[""])),
            claimable_share: sql(&claimable(backend, &[IN_SHARE])),
            claimable_besides: sql(&claimable_besides(backend)),
            claim: from(
                "task_log",
                &format!("status = {QUEUED}, node_id = {{2}}, queued_at = {{3}}, version = l.version + 1"),
                ID_VERSION,
                &format!("l.id = v.n_id AND l.version = v.n_version AND +l.status IN ({INIT}, {RETRY})"),
            ),
            claimed: sql(&format!(
                "SELECT l.id FROM {} JOIN task_log l ON l.id = v.n_id AND l.version = v.n_version + 1 \
                 WHERE +l.status = {QUEUED} AND l.node_id = {{2}}",
                backend.rows(1, ID_VERSION)
            )),
            queued_of: sql(&format!(
                "SELECT {RUN_COLUMNS} FROM task_log l WHERE l.status = {QUEUED} AND l.node_id = {{1}} \
                 ORDER BY l.due_time LIMIT {{2}}"
            )),
            queued_of_others: sql(&format!(
                "SELECT {RUN_COLUMNS} FROM task_log l WHERE l.status = {QUEUED} AND l.node_id NOT IN {} \
                 ORDER BY l.due_time LIMIT {{2}}",
                in_rows(1)
            )),
            hand_over: from(
                "task_log",
                &format!(
                    "status = {DISPATCHED}, node_id = {{2}}, executor_id = v.n_executor_id, dispatched_at = {{3}}, \
                     attempt = l.attempt + 1, version = l.version + 1, started_at = 0, finished_at = 0, reason = '', stopping = ''"
                ),
                &[("id", Kind::Big), ("version", Kind::Big), ("executor_id", Kind::Big)],
                &format!("l.id = v.n_id AND l.version = v.n_version AND +l.status IN ({QUEUED}, {DISPATCHED})"),
            ),
            handed_over: sql(&format!(
                "SELECT l.id FROM {} JOIN task_log l ON l.id = v.n_id AND l.version = v.n_version + 1 \
                 WHERE +l.status = {DISPATCHED} AND l.node_id = {{2}} AND l.executor_id = v.n_executor_id",
                backend.rows(1, &[("id", Kind::Big), ("version", Kind::Big), ("executor_id", Kind::Big)])
            )),
            expand_parent: sql(&format!(
                "UPDATE task_log SET status = {DISPATCHED}, shard_total = {{3}}, dispatched_at = {{4}}, \
                 attempt = attempt + 1, version = version + 1, reason = '' WHERE id = {{1}} AND version = {{2}} \
                 AND status = {QUEUED}"
            )),
            insert_shards: sql(&format!(
                "INSERT INTO task_log (id, tenant_id, app_id, task_id, revision, parent_id, shard_index, shard_total, \
                 bucket, fire_time, due_time, status, version, attempt, failures, node_id, executor_id, queued_at, \
                 dispatched_at, started_at, finished_at, reason, params, origin, seq, priority) \
                 SELECT v.n_id, p.tenant_id, p.app_id, p.task_id, p.revision, p.id, v.n_shard_index, p.shard_total, \
                 v.n_bucket, p.fire_time, p.due_time, {DISPATCHED}, 1, 1, 0, {{2}}, v.n_executor_id, {{3}}, {{3}}, 0, 0, \
                 '', p.params, p.origin, p.seq, p.priority FROM {} JOIN task_log p ON p.id = v.n_parent_id",
                backend.rows(1,
                    &[
                        ("id", Kind::Big),
                        ("parent_id", Kind::Big),
                        ("shard_index", Kind::Int),
                        ("bucket", Kind::Int),
                        ("executor_id", Kind::Big)
                    ]
                )
            )),
            change: from(
                "task_log",
                "status = v.n_status, due_time = v.n_due_time, failures = v.n_failures, reason = v.n_reason, \
                 message = COALESCE(v.n_message, l.message), started_at = CASE WHEN v.n_started_at > 0 THEN \
                 v.n_started_at ELSE l.started_at END, finished_at = v.n_finished_at, version = l.version + 1",
                CHANGE,
                "l.id = v.n_id AND l.version = v.n_version",
            ),
            changed: sql(&format!(
                "SELECT l.id FROM {} JOIN task_log l ON l.id = v.n_id AND l.version = v.n_version + 1 \
                 AND +l.status = v.n_status AND l.reason = v.n_reason",
                backend.rows(1, CHANGE)
            )),
            note_stop: from(
                "task_log",
                "stopping = {2}, version = l.version + 1",
                ID_VERSION,
                &format!("l.id = v.n_id AND l.version = v.n_version AND +l.status = {DISPATCHED}"),
            ),
            noted_stop: sql(&format!(
                "SELECT l.id FROM {} JOIN task_log l ON l.id = v.n_id AND l.version = v.n_version + 1 \
                 WHERE +l.status = {DISPATCHED} AND l.stopping = {{2}}",
                backend.rows(1, ID_VERSION)
            )),
            scope_lock: from("permit_scope", "turn = l.turn + 1", ID, "l.id = v.n_id"),
            scope_insert: sql(&format!(
                "INSERT INTO permit_scope (id, turn) SELECT v.n_id, 0 FROM {} WHERE 1 = 1 {}",
                backend.rows(1, ID),
                backend.or_ignore("permit_scope", "id")
            )),
            permit_clean: sql(&format!(
                "DELETE FROM permit WHERE id IN (SELECT id FROM (SELECT p.id FROM permit p LEFT JOIN task_log l ON l.id = p.id \
                 WHERE p.task_id IN {} AND (l.id IS NULL OR NOT ({HOLDS} OR {WAITS})) ORDER BY p.id LIMIT 1000) dead)",
                in_rows(1)
            )),
            permits_of_tasks: sql(&permits("task_id")),
            permits_of_apps: sql(&permits("app_id")),
            permits_of_tenants: sql(&permits("tenant_id")),
            permits_waiting: sql(&format!(
                "SELECT p.task_id, MIN(l.due_time) FROM permit p JOIN task_log l ON l.id = p.id WHERE p.task_id IN {} \
                 AND {WAITS} GROUP BY p.task_id",
                in_rows(1)
            )),
            permit_waits: sql(&format!(
                "SELECT p.id FROM permit p JOIN task_log l ON l.id = p.id WHERE p.id IN {} AND {WAITS}",
                in_rows(1)
            )),
            permit_back: from("permit", "version = -l.version", ID, "l.id = v.n_id AND l.version > 0"),
            permit_drop: Sql::new(backend, &backend.delete_from("permit", &backend.rows(1, ID), "l.id = v.n_id")),
            permit_insert: sql(&format!(
                "INSERT INTO permit (id, tenant_id, app_id, task_id, version) SELECT v.n_id, v.n_tenant_id, v.n_app_id, \
                 v.n_task_id, v.n_version FROM {}",
                backend.rows(1,
                    &[
                        ("id", Kind::Big),
                        ("tenant_id", Kind::Big),
                        ("app_id", Kind::Big),
                        ("task_id", Kind::Big),
                        ("version", Kind::Big)
                    ]
                )
            )),
            permit_holders: sql(&format!(
                "SELECT {HANDED_COLUMNS} FROM {} JOIN permit p ON p.task_id = v.n_id JOIN task_log l ON l.id = p.id \
                 WHERE +l.status = {DISPATCHED}",
                backend.rows(1, ID)
            )),
            note_waits: from(
                "task_log",
                "reason = v.n_reason",
                &[("id", Kind::Big), ("version", Kind::Big), ("reason", Kind::Text)],
                &format!("l.id = v.n_id AND l.version = v.n_version AND +l.status = {QUEUED} AND l.reason = ''"),
            ),
            rate_lock: from("tenant_rate", "turn = l.turn + 1", ID, "l.id = v.n_id"),
            rate_insert: sql(&format!(
                "INSERT INTO tenant_rate (id, turn, places) SELECT v.n_id, 0, '{{}}' FROM {} WHERE 1 = 1 {}",
                backend.rows(1, ID),
                backend.or_ignore("tenant_rate", "id")
            )),
            rates: sql(&format!(
                "SELECT r.id, t.max_fires_per_minute, r.places FROM {} JOIN tenant_rate r ON r.id = v.n_id \
                 JOIN tenant t ON t.id = r.id",
                backend.rows(1, ID)
            )),
            rate_write: from(
                "tenant_rate",
                "places = v.n_places",
                &[("id", Kind::Big), ("places", Kind::Text)],
                "l.id = v.n_id",
            ),
            // Who waits only so long keeps his place. (A tenant has more logs than wait at a time.)
            rate_line: sql(&format!(
                "SELECT l.id, l.version, l.failures, l.priority, l.due_time FROM task_log l {} JOIN task t ON t.id = l.task_id \
                 WHERE l.status = {INIT} AND l.due_time > {{3}} AND l.due_time < {{4}} AND l.tenant_id = {{1}} AND \
                 l.priority < {{2}} AND l.reason = 'over_quota' AND t.wait_timeout_ms = 0 ORDER BY l.due_time LIMIT {{5}}",
                backend.by_index(DUE_TIME)
            )),
            over_quota: sql(&format!(
                "SELECT l.id FROM task_log l WHERE l.status IN ({INIT}, {RETRY}) AND +l.tenant_id = {{1}} AND \
                 l.reason = 'over_quota' LIMIT {{2}}"
            )),
            ask_anew: from(
                "task_log",
                "due_time = CASE WHEN l.fire_time > {2} THEN l.fire_time ELSE {2} END, reason = '', version = l.version + 1",
                ID,
                &format!("l.id = v.n_id AND +l.status IN ({INIT}, {RETRY}) AND l.reason = 'over_quota'"),
            ),
            uses: sql(&format!(
                "SELECT task_id, address, uses, last_use FROM routing_use WHERE task_id IN {}",
                in_rows(1)
            )),
            use_insert: sql(&format!(
                "INSERT INTO routing_use (id, task_id, address, uses, last_use) SELECT v.n_id, v.n_task_id, v.n_address, 0, 0 \
                 FROM {} WHERE 1 = 1 {}",
                backend.rows(1, USE),
                backend.or_ignore("routing_use", "task_id, address")
            )),
            use_add: from(
                "routing_use",
                "uses = CASE WHEN l.uses > v.n_floor THEN l.uses ELSE v.n_floor END + v.n_added, \
                 last_use = CASE WHEN l.last_use > v.n_last THEN l.last_use ELSE v.n_last END",
                USE,
                "l.task_id = v.n_task_id AND l.address = v.n_address",
            ),
            overdue: sql(&format!(
                "SELECT l.task_id, l.fire_time FROM {} JOIN task_log l ON l.task_id = v.n_id AND l.fire_time >= v.n_from \
                 WHERE ((l.due_time < {{2}} AND l.origin = 'schedule') OR l.origin = 'misfire') AND l.parent_id = 0 AND \
                 +l.status NOT IN ({EXPIRED}, {CANCELLED}) \
                 ORDER BY l.fire_time DESC LIMIT {{3}}",
                backend.rows(1, &[("id", Kind::Big), ("from", Kind::Big)])
            )),
            rule_version: sql("SELECT version FROM rule_version WHERE id = 1"),
            postponed: sql(&format!(
                "SELECT l.id FROM task_log l WHERE l.status IN ({INIT}, {RETRY}) AND l.due_time = {{2}} AND l.tenant_id = {{1}} \
                 AND l.reason = 'maintenance' LIMIT {{3}}"
            )),
            resume: from(
                "task_log",
                "due_time = CASE WHEN l.fire_time > {3} THEN l.fire_time ELSE {3} END, reason = '', version = l.version + 1",
                ID,
                &format!(
                    "l.id = v.n_id AND +l.status IN ({INIT}, {RETRY}) AND l.due_time = {{2}} AND l.reason = 'maintenance'"
                ),
            ),
            succeed: from(
                "task_log",
                &format!(
                    "status = {SUCCEEDED}, started_at = v.n_started_at, finished_at = v.n_finished_at, \
                     output = v.n_output, message = CASE WHEN l.origin <> 'schedule' AND l.failures = 0 THEN l.message ELSE NULL END, \
                     version = l.version + 1, reason = '', stopping = ''"
                ),
                &[
                    ("id", Kind::Big),
                    ("attempt", Kind::Int),
                    ("started_at", Kind::Big),
                    ("finished_at", Kind::Big),
                    ("output", Kind::Text),
                ],
                &format!(
                    "l.id = v.n_id AND l.attempt = v.n_attempt AND +l.status = {DISPATCHED} AND \
                     +l.tenant_id = {{2}} AND +l.app_id = {{3}}"
                ),
            ),
            runs: sql(&format!(
                "SELECT {HANDED_COLUMNS} FROM {} JOIN task_log l ON l.id = v.n_id",
                backend.rows(1, ID)
            )),
            runs_scoped: sql(&format!(
                "SELECT {HANDED_COLUMNS} FROM {} JOIN task_log l ON l.id = v.n_id AND +l.tenant_id = {{2}} AND +l.app_id = {{3}}",
                backend.rows(1, ID)
            )),
            stale: sql(&format!(
                "INSERT INTO stale_result (id, log_id, attempt, executor_id, status, message, started_at, finished_at, \
                 received_at) SELECT v.n_id, v.n_log, v.n_attempt, {{2}}, v.n_status, v.n_message, v.n_started_at, \
                 v.n_finished_at, {{3}} FROM {}",
                backend.rows(1,
                    &[
                        ("id", Kind::Big),
                        ("log", Kind::Big),
                        ("attempt", Kind::Int),
                        ("status", Kind::Text),
                        ("message", Kind::Text),
                        ("started_at", Kind::Big),
                        ("finished_at", Kind::Big)
                    ]
                )
            )),
            parents_of: sql(&format!(
                "SELECT DISTINCT l.parent_id FROM {} JOIN task_log l ON l.id = v.n_id WHERE l.parent_id > 0",
                backend.rows(1, ID)
            )),
            settle_parents: sql(&settle_parents(backend)),
            open_parents: sql(&format!(
                "SELECT l.id FROM task_log l WHERE l.status = {DISPATCHED} AND l.shard_index = -1 AND \
                 l.dispatched_at < {{1}} ORDER BY l.due_time LIMIT {{2}}"
            )),
            stopping: sql(&format!(
                "SELECT {HANDED_COLUMNS} FROM task_log l WHERE l.status = {DISPATCHED} AND l.stopping <> '' AND \
                 l.shard_index >= 0 ORDER BY l.due_time LIMIT {{1}}"
            )),
            shards_to_stop: sql(&format!(
                "SELECT {} FROM task_log p JOIN task_log l ON l.task_id = p.task_id AND l.fire_time = p.fire_time \
                 AND l.parent_id = p.id WHERE p.status = {DISPATCHED} AND p.shard_index = -1 AND p.stopping <> '' AND \
                 +l.status < {SUCCEEDED} AND (l.stopping = '' OR +l.status <> {DISPATCHED}) LIMIT {{1}}",
                HANDED_COLUMNS.replace("l.stopping", "p.stopping")
            )),
            suspects_of: sql(&suspects("IN")),
            suspects_except: sql(&suspects("NOT IN")),
            follow_any: sql("SELECT id FROM follow_up LIMIT 1"),
            follow_ended: sql(&format!(
                "SELECT l.id, l.task_id, l.status, l.reason, l.origin, l.revision, l.finished_at, l.output, l.attempt \
                 FROM follow_up f JOIN task_log l ON l.id = f.id WHERE +l.status >= {SUCCEEDED} ORDER BY f.id LIMIT {{1}}"
            )),
            // One that an edit has taken over since it was read has not ended any more.
            follow_take: Sql::new(
                backend,
                &backend.delete_from("follow_up",
                    &backend.rows(1, ID),
                    &format!(
                        "l.id = v.n_id AND EXISTS (SELECT 1 FROM task_log t WHERE t.id = l.id AND t.status >= {SUCCEEDED})"
                    ),
                ),
            ),
            // The task's revision, not one that the caller knows: this is part of the edit.
            adopt: from(
                "task_log",
                "revision = (SELECT t.revision FROM task t WHERE t.id = l.task_id)",
                ID,
                "l.id = v.n_id",
            ),
            watch_runs: sql(&format!(
                "INSERT INTO follow_up (id, task_id) SELECT l.id, l.task_id FROM {} JOIN task_log l ON l.id = v.n_id \
                 WHERE l.parent_id = 0 {}",
                backend.rows(1, ID),
                backend.or_ignore("follow_up", "id")
            )),
            children_of: sql(&format!(
                "SELECT p.parent_id, p.child_id, p.on_outcome FROM {} JOIN task_parent p ON p.parent_id = v.n_id \
                 ORDER BY p.child_id, p.id",
                backend.rows(1, ID)
            )),
            signing_keys: sql(
                "SELECT k.id, k.secret, k.tenant_id, k.app_id, t.name, a.name, k.expires_at, a.sign_method FROM app_key k \
                 JOIN tenant t ON t.id = k.tenant_id JOIN app a ON a.id = k.app_id AND a.tenant_id = k.tenant_id \
                 WHERE k.revoked_at = 0 AND (k.expires_at = 0 OR k.expires_at > {now})",
            ),
            executor_beat: sql(&format!(
                "UPDATE executor SET heartbeat_at = {{now}}, held = {{5}}, running = {{6}}, draining = {{7}}, \
                 beat_signed_at = {{8}}, node_id = {{9}} WHERE {BEAT_OF} AND (beat_signed_at < {{8}} OR beat_signed_at > {{now}} + 1000)"
            )),
            executor_known: sql(&format!("SELECT id FROM executor WHERE {BEAT_OF}")),
            reconfirm: from("task_log", "version = l.version + 1", RUN_KEY, STILL_HELD),
            reconfirmed: sql(&format!(
                "SELECT l.id, l.attempt FROM {} JOIN task_log l ON {STILL_HELD}",
                backend.rows(1, RUN_KEY)
            )),
            executors: sql(&format!(
                "SELECT {EXECUTOR_COLUMNS} FROM executor e LEFT JOIN executor_rule r ON r.tenant_id = e.tenant_id AND \
                 r.app_id = e.app_id AND r.address = e.address \
                 WHERE e.heartbeat_at >= {{1}} AND e.heartbeat_at <= {{now}} + 60000 AND e.gone_at = 0"
            )),
            executor_ends: sql(&format!(
                "SELECT id, tenant_id, app_id, instance, address, heartbeat_at, gone_at FROM executor WHERE id IN {}",
                in_rows(1)
            )),
            purge_select: sql(&format!(
                "SELECT id FROM task_log WHERE id < {{1}} AND +status >= {SUCCEEDED} AND finished_at < {{3}} ORDER BY id LIMIT {{2}}"
            )),
            purge_delete: sql(&backend.delete_from("task_log",
                &backend.rows(1, ID),
                &format!("l.id = v.n_id AND +l.status >= {SUCCEEDED}"),
            )),
            purge_stale: sql(
                "DELETE FROM stale_result WHERE id <= (SELECT MAX(id) FROM (SELECT id FROM stale_result WHERE id < {1} \
                 ORDER BY id LIMIT {2}) batch)",
            ),
            // What stands beside logs that retention has taken.
            purge_beside: [
                sql(
                    "DELETE FROM follow_up WHERE id < {1} AND NOT EXISTS (SELECT 1 FROM task_log l WHERE l.id = follow_up.id)",
                ),
                sql(
                    "DELETE FROM permit WHERE id < {1} AND NOT EXISTS (SELECT 1 FROM task_log l WHERE l.id = permit.id)",
                ),
                sql(
                    "DELETE FROM backfill_run WHERE id < {1} AND NOT EXISTS (SELECT 1 FROM task_log l WHERE l.id = backfill_run.id)",
                ),
                sql(
                    "DELETE FROM run_key WHERE log_id < {1} AND NOT EXISTS (SELECT 1 FROM task_log l WHERE l.id = run_key.log_id)",
                ),
                // Those that no batch took with their logs: a node died in between.
                sql(
                    "DELETE FROM task_log_attempt WHERE log_id < {1} AND NOT EXISTS (SELECT 1 FROM task_log l WHERE l.id = task_log_attempt.log_id)",
                ),
            ],
            attempts: super::attempts::Statements::new(backend),
            statistics: super::statistics::Statements::new(backend),
            // By the logs' own order, whatever a tenant has among them.
            purge_look: sql(&format!(
                "SELECT l.id, CASE WHEN t.retain_days = {{4}} AND l.status >= {SUCCEEDED} AND l.finished_at < {{5}} THEN 1 \
                 ELSE 0 END FROM task_log l LEFT JOIN tenant t ON t.id = l.tenant_id WHERE l.id > {{1}} AND l.id < {{2}} \
                 ORDER BY l.id LIMIT {{3}}"
            )),
            purge_beside_these: [("follow_up", "id"), ("permit", "id"), ("backfill_run", "id"), ("run_key", "log_id")]
                .map(|(table, key)| sql(&format!("DELETE FROM {table} WHERE {key} IN {}", in_rows(1)))),
            parents_of_tasks: sql(&format!(
                "SELECT p.child_id, t.app_id, t.name, a.name, p.on_outcome FROM {} JOIN task_parent p ON p.child_id = v.n_id \
                 JOIN task t ON t.id = p.parent_id JOIN app a ON a.id = t.app_id ORDER BY p.child_id, p.id",
                backend.rows(1, ID)
            )),
            taken_fires: sql(&format!(
                "SELECT l.fire_time, l.id, l.version, CASE WHEN l.status = {EXPIRED} AND l.attempt = 0 THEN 1 ELSE 0 END FROM {} \
                 {batch_first} task_log l ON l.task_id = {{2}} AND l.fire_time = v.n_id AND l.shard_index = {{3}}",
                backend.rows(1, ID)
            )),
            revive_fires: from(
                "task_log",
                &format!(
                    "status = {INIT}, version = l.version + 1, revision = {{2}}, due_time = {{3}}, finished_at = 0, reason = '', \
                     message = NULL, failures = 0, origin = {{5}}, priority = 0, params = {{4}}"
                ),
                ID_VERSION,
                &format!("l.id = v.n_id AND l.version = v.n_version AND +l.status = {EXPIRED}"),
            ),
            insert_backfill: sql(&format!(
                "INSERT INTO task_log (id, tenant_id, app_id, task_id, revision, parent_id, shard_index, shard_total, bucket, \
                 fire_time, due_time, status, version, attempt, failures, node_id, executor_id, queued_at, dispatched_at, \
                 started_at, finished_at, reason, params, origin, seq, priority, stopping) \
                 SELECT v.n_id, t.tenant_id, t.app_id, t.id, t.revision, 0, {{4}}, {{5}}, v.n_bucket, v.n_fire_time, {{3}}, \
                 {INIT}, 1, 0, 0, 0, 0, 0, 0, 0, 0, '', {{6}}, {{7}}, t.turn, 0, '' FROM {} {batch_first} task t ON t.id = {{2}}",
                backend.rows(1, BACKFILL)
            )),
            insert_backfill_runs: sql(&format!(
                "INSERT INTO backfill_run (id, backfill_id) SELECT v.n_id, {{2}} FROM {} WHERE 1 = 1 {}",
                backend.rows(1, BACKFILL),
                backend.or_ignore("backfill_run", "id")
            )),
            watch_backfill: sql(&format!(
                "INSERT INTO follow_up (id, task_id) SELECT l.id, l.task_id FROM {} JOIN task_log l ON l.id = v.n_id \
                 WHERE 1 = 1 {}",
                backend.rows(1, BACKFILL),
                backend.or_ignore("follow_up", "id")
            )),
            calendars: sql(&format!(
                "SELECT c.tenant_id, c.name, c.version, c.body FROM {} JOIN calendar c ON c.tenant_id = v.n_tenant_id \
                 AND c.name = v.n_name",
                backend.rows(1, &[("tenant_id", Kind::Big), ("name", Kind::Text)])
            )),
            shard_counts: sql(&format!(
                "SELECT p.id, COUNT(CASE WHEN s.status >= {SUCCEEDED} THEN 1 END), \
                 COUNT(CASE WHEN s.status = {SUCCEEDED} THEN 1 END), COUNT(CASE WHEN s.started_at > 0 OR (s.status = {DISPATCHED} AND s.due_time <= {{now}}) THEN 1 END) \
                 FROM {} JOIN task_log p ON p.id = v.n_id JOIN task_log s ON s.task_id = p.task_id AND \
                 s.fire_time = p.fire_time AND s.parent_id = p.id GROUP BY p.id",
                backend.rows(1, ID)
            )),
            names_of_tasks: sql(&format!("SELECT id, name FROM task WHERE id IN {}", in_rows(1))),
        }
    }
}

const CHANGE: &[(&str, Kind)] = &[
    ("id", Kind::Big),
    ("version", Kind::Big),
    ("status", Kind::Int),
    ("due_time", Kind::Big),
    ("failures", Kind::Int),
    ("reason", Kind::Text),
    ("message", Kind::Text),
    ("started_at", Kind::Big),
    ("finished_at", Kind::Big),
];

const RUN_KEY: &[(&str, Kind)] = &[("id", Kind::Big), ("attempt", Kind::Int)];
const STILL_HELD: &str = "l.id = v.n_id AND l.attempt = v.n_attempt AND +l.status = 2 AND l.executor_id = {2} \
     AND +l.tenant_id = {3} AND +l.app_id = {4}";

/// Whether the fire `v` takes over the log `l`, which an earlier definition gave up.
fn may_take_over() -> String {
    format!(
        "l.task_id = v.n_task_id AND l.fire_time = v.n_fire_time AND l.shard_index = v.n_shard_index AND \
         l.parent_id = 0 AND +l.status = {CANCELLED} AND l.revision < v.n_revision AND \
         l.reason IN ('task_edited', 'task_stopped', 'task_paused')"
    )
}

/// The executor that a heartbeat is of.
const BEAT_OF: &str = "id = {1} AND instance = {2} AND tenant_id = {3} AND app_id = {4} AND gone_at = 0";

/// A share as half of all rows in PostgreSQL's eyes: a plain comparison of an expression would be
/// one row in two hundred, for which it reads and sorts everything that is due.
const IN_SHARE: &str = " AND CASE WHEN l.bucket % {3} = {4} THEN 1 = 1 ELSE 1 = 0 END";

/// Task logs by state and due time.
const DUE_TIME: &str = "task_log_due_tenant";

/// One ordered index range for each of the two states and each filter, each cut at the limit,
/// instead of one sort over all. MariaDB would read past the instant (by the state alone) when
/// much of what is written is due, unless it is told to use the index as a range.
fn claimable(backend: Dialect, filters: &[&str]) -> String {
    let index = backend.by_index(DUE_TIME);
    let parts = [RETRY, INIT].iter().flat_map(|status| filters.iter().map(move |filter| (status, filter)));
    let parts = parts.enumerate().map(|(at, (status, filter))| {
        format!(
            "SELECT * FROM (SELECT {RUN_COLUMNS} FROM task_log l {index} WHERE l.status = {status} AND \
             l.due_time <= {{1}}{filter} ORDER BY l.due_time LIMIT {{2}}) p{at}"
        )
    });
    parts.collect::<Vec<_>>().join(" UNION ALL ")
}

/// Passes by the rows of a few tenants, `{4}` and on in ascending order, of a priority up to `{3}`,
/// looking only at the index (status, due time, tenant, priority). PostgreSQL looks at the rows,
/// too, for any condition but a range: it gets the ranges between the tenants.
fn claimable_besides(backend: Dialect) -> String {
    let tenants: Vec<String> = (4..4 + LEFT_OUT_MAX).map(|at| format!("{{{at}}}")).collect();
    let list = tenants.join(", ");
    if backend.filters_in_index() {
        return claimable(backend, &[&format!(" AND (l.tenant_id NOT IN ({list}) OR l.priority > {{3}})")]);
    }
    let mut ranges = vec![
        format!(" AND l.priority > {{3}} AND l.tenant_id IN ({list})"),
        format!(" AND l.tenant_id < {}", tenants[0]),
        format!(" AND l.tenant_id > {}", tenants[LEFT_OUT_MAX - 1]),
    ];
    let between = tenants.windows(2).map(|two| format!(" AND l.tenant_id > {} AND l.tenant_id < {}", two[0], two[1]));
    ranges.extend(between);
    let ranges: Vec<&str> = ranges.iter().map(String::as_str).collect();
    format!("SELECT * FROM ({}) a ORDER BY due_time LIMIT {{2}}", claimable(backend, &ranges))
}

/// Counts the shards of each parent; only a parent all of whose shards have ended moves.
fn settle_parents(backend: Dialect) -> String {
    let counted = format!(
        "(SELECT p.id AS n_id, COUNT(*) AS n_ended, SUM(CASE WHEN s.status = {SUCCEEDED} THEN 1 ELSE 0 END) AS n_good, \
         MIN(CASE WHEN s.started_at > 0 THEN s.started_at END) AS n_started, MAX(s.finished_at) AS n_finished \
         FROM {} JOIN task_log p ON p.id = v.n_id AND +p.status = {DISPATCHED} \
         JOIN task_log s ON s.task_id = p.task_id AND s.fire_time = p.fire_time AND s.parent_id = p.id \
         AND +s.status >= {SUCCEEDED} GROUP BY p.id) v",
        backend.rows(1, ID)
    );
    backend.update_from("task_log",
        &format!(
            "status = CASE WHEN v.n_good = l.shard_total THEN {SUCCEEDED} WHEN l.stopping <> '' THEN {CANCELLED} ELSE {FAILED} \
             END, reason = CASE WHEN v.n_good = l.shard_total THEN l.reason WHEN l.stopping <> '' THEN l.stopping ELSE \
             'shard_failed' END, \
             started_at = COALESCE(v.n_started, 0), \
             finished_at = CASE WHEN v.n_finished > 0 THEN v.n_finished ELSE {{2}} END, version = l.version + 1"
        ),
        &counted,
        &format!("l.id = v.n_id AND +l.status = {DISPATCHED} AND l.shard_index = -1 AND v.n_ended = l.shard_total"),
    )
}
