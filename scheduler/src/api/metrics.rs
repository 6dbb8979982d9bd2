//! `GET /metrics` for Prometheus: what this node has done, and its current state. Renaming a metric
//! breaks someone's alert; docs/operating.md lists them.

use super::Api;
use super::guard::{self, Guard};
use super::problem::Problem;
use crate::domain::silence::Silence;
use crate::domain::{AppId, Permission};
use crate::metrics::{METRICS, OTHER_APPS, RUNS_ENDED, Text};
use crate::store::STORE_ERRORS;
use crate::workers::ROUNDS_FAILED;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::AUTHORIZATION;
use actix_web::middleware::Next;
use actix_web::{Error, HttpRequest, HttpResponse, web};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long a scrape waits for the database; after that, metrics that need it are omitted.
const STORE_MAX: Duration = Duration::from_millis(700);

/// The route.
pub fn routes(config: &mut web::ServiceConfig) {
    config.route("/metrics", web::get().to(metrics));
}

/// Counts every answer by its class.
pub async fn count_requests(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let answered = next.call(request).await;
    let status = match &answered {
        Ok(response) => response.status(),
        Err(error) => error.as_response_error().status_code(),
    };
    METRICS.requests.add(usize::from(status.as_u16() / 100).wrapping_sub(1), 1);
    answered
}

async fn metrics(request: HttpRequest, api: web::Data<Api>) -> Result<HttpResponse, Problem> {
    // Without a token, public metrics name no tenant and no app.
    let is_named = !api.metrics_public || request.headers().contains_key(AUTHORIZATION);
    if is_named {
        let guarded = Guard { id: "read_metrics", needs: Permission::MetricsRead.into(), has_body: false };
        guard::check(guarded, &request).await?;
    }
    let mut text = Text::default();
    of_runs(&mut text);
    of_ended_runs(&mut text, &api, is_named).await;
    of_node(&mut text, &api);
    of_store(&mut text, &api).await;
    Ok(HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(text.finish()))
}

fn of_runs(text: &mut Text) {
    let m = &METRICS;
    text.counter("carillon_claims_won_total", "Runs claimed for this node's queue.", m.claims_won.get());
    text.counter("carillon_claims_lost_total", "Runs that another node claimed first.", m.claims_lost.get());
    text.counter(
        "carillon_dispatch_conflicts_total",
        "Queued runs that someone else changed before their dispatch.",
        m.dispatch_conflicts.get(),
    );
    text.counters(
        "carillon_dispatches_total",
        "Runs dispatched to executors, by outcome; each shard and each attempt counts.",
        "outcome",
        m.dispatches.all(),
    );
    text.counters("carillon_results_total", "Results committed by this node, by outcome.", "outcome", m.results.all());
    text.counter(
        "carillon_results_stale_total",
        "Results of attempts that were no longer current; recorded, not applied.",
        m.results_stale.get(),
    );
    text.counter("carillon_results_unknown_total", "Results of unknown runs.", m.results_unknown.get());
    text.counter(
        "carillon_runs_lost_total",
        "Dispatched runs whose executor was gone, decided without a result.",
        m.runs_lost.get(),
    );
    text.counter(
        "carillon_runs_reclaimed_total",
        "Queued runs of dead nodes that this node returned to all nodes.",
        m.reclaimed.get(),
    );
    text.histogram(
        "carillon_run_lateness_seconds",
        "From the due time of a run to its start, of results committed by this node.",
        &m.lateness,
    );
    text.histogram(
        "carillon_run_duration_seconds",
        "From the start of a run to its end, of results committed by this node.",
        &m.duration,
    );
}

/// By the names of tenant and app, from the database: an app without a name there is omitted.
async fn of_ended_runs(text: &mut Text, api: &Api, is_named: bool) {
    const NAME: &str = "carillon_runs_ended_total";
    let ended = RUNS_ENDED.all();
    if !is_named {
        let mut counts: BTreeMap<[String; 2], u64> = BTreeMap::new();
        for ((status, reason), count) in ended.into_values().flatten() {
            *counts.entry([status.as_str().to_owned(), reason.as_str().to_owned()]).or_default() += count;
        }
        let about =
            "Runs whose end this node committed, by status and reason; by tenant and app for callers with a token.";
        return text.counters_by(NAME, about, ["status", "reason"], counts.into_iter());
    }
    let ids: Vec<AppId> = ended.keys().copied().filter(|app| *app != OTHER_APPS).collect();
    let look = async { tokio::time::timeout(STORE_MAX, api.store.app_names(&ids)).await.ok().and_then(Result::ok) };
    let Some(names) = api.cached.apps.or(look).await else { return };
    let mut counts: BTreeMap<[String; 4], u64> = BTreeMap::new();
    for (app, ends) in ended {
        let (tenant, app) = match names.get(&app) {
            Some(names) => names.clone(),
            None if app == OTHER_APPS => ("other".to_owned(), "other".to_owned()),
            None => continue,
        };
        for ((status, reason), count) in ends {
            let labels = [tenant.clone(), app.clone(), status.as_str().to_owned(), reason.as_str().to_owned()];
            *counts.entry(labels).or_default() += count;
        }
    }
    let about =
        "Runs whose end this node committed, by tenant, app, status and reason; the first 200 apps, the rest as other.";
    text.counters_by(NAME, about, ["tenant", "app", "status", "reason"], counts.into_iter());
}

fn of_node(text: &mut Text, api: &Api) {
    let engine = &api.engine;
    text.gauges("carillon_node_info", "The version of this node.", "version", [(env!("CARGO_PKG_VERSION"), 1)]);
    text.gauge("carillon_node_stopping", "Whether this node is stopping.", u64::from(api.stop.is_cancelled()));
    text.gauge("carillon_queue_depth", "Runs in this node's memory, including blocked ones.", engine.queue.len());
    text.gauge("carillon_queue_room", "Further runs that fit into this node's memory.", engine.queue.room());
    text.gauge(
        "carillon_queue_blocked",
        "Runs in this node's memory that wait for other runs to end.",
        engine.queue.blocked.len(),
    );
    text.gauge(
        "carillon_executors_online",
        "Executors that this node can dispatch runs to.",
        engine.registry.ids().len(),
    );
    text.gauge(
        "carillon_nodes_online",
        "Nodes of the cluster that this node sees alive.",
        engine.membership.view().live.len(),
    );
    text.gauge(
        "carillon_past_held",
        "Whether runs are held because they may have run before the database was restored, until an operator decides.",
        u64::from(engine.rules.now().silences.iter().any(Silence::is_open)),
    );
    let behind = engine.watch.behind();
    text.gauge(
        "carillon_overloaded",
        "Whether more is due than this node and its database carry.",
        u64::from(engine.watch.overload().is_some()),
    );
    text.gauge(
        "carillon_claim_lag_seconds",
        "How long the longest waiting run that this node can claim has been due.",
        behind.claiming_ms as f64 / 1_000.0,
    );
    text.gauge(
        "carillon_dispatch_lag_seconds",
        "How long the longest waiting run in this node's memory has been ready for its dispatch.",
        behind.dispatching_ms as f64 / 1_000.0,
    );
    if let Some(ahead_ms) = behind.written_ahead_ms {
        text.gauge(
            "carillon_written_ahead_seconds",
            "How far ahead the task that is most behind has been written; negative when fires have passed. Only on the node that writes.",
            ahead_ms as f64 / 1_000.0,
        );
    }
    text.gauges(
        "carillon_lease_held",
        "Whether this node holds the lease.",
        "lease",
        [
            ("pregenerate", u64::from(engine.pregenerator.has_lease())),
            ("housekeeping", u64::from(engine.housekeeper.has_lease())),
            ("statistics", u64::from(engine.aggregator.has_lease())),
        ],
    );
    text.gauge(
        "carillon_clock_offset_seconds",
        "How far cluster time is ahead of this machine's clock; the machine's clock decides nothing.",
        (engine.clock.now_us() - machine_us()) as f64 / 1_000_000.0,
    );
    text.gauge(
        "carillon_database_clock_spread_seconds",
        "By how much the clocks of the database's servers differ at least, as heartbeats read by this node show it.",
        engine.membership.database_clock_spread_ms() as f64 / 1_000.0,
    );
    text.counters(
        "carillon_worker_rounds_failed_total",
        "Ticks of this node's workers that failed and are repeated.",
        "worker",
        ROUNDS_FAILED.all(),
    );
    text.counters(
        "carillon_nacos_requests_total",
        "Questions of this node to Nacos where executors are, by outcome.",
        "outcome",
        METRICS.nacos_answers.all(),
    );
    text.counters(
        "carillon_http_requests_total",
        "Requests answered by this node, by class of status.",
        "status",
        METRICS.requests.all(),
    );
}

async fn of_store(text: &mut Text, api: &Api) {
    let m = &METRICS;
    text.counter("carillon_store_statements_total", "Statements sent to the database.", api.store.statements_sent());
    text.histogram(
        "carillon_store_statement_seconds",
        "Time of statements, waiting for a connection included.",
        &m.statements,
    );
    text.counters(
        "carillon_store_errors_total",
        "Statements that failed, by kind; contention and unavailable are tried again.",
        "kind",
        STORE_ERRORS.all(),
    );
    let look = async { tokio::time::timeout(STORE_MAX, api.store.watermark()).await.ok().and_then(Result::ok) };
    let watermark = api.cached.watermark.or(look).await;
    text.gauge(
        "carillon_store_up",
        "Whether the database answered, at this scrape or within the second before.",
        u64::from(watermark.is_some()),
    );
    if let Some(watermark) = watermark {
        let behind_ms = (api.engine.clock.now_ms() + api.ahead_ms).saturating_sub(watermark).max(0);
        text.gauge(
            "carillon_pregeneration_lag_seconds",
            "How far writing ahead is behind; up to schedulers.pre_generation_interval is usual.",
            behind_ms as f64 / 1_000.0,
        );
    }
}

fn machine_us() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64)
}
