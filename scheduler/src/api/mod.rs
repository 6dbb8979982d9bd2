//! HTTP in: executors under `/openapi` (signed), people and programs under `/api/v1` (bearer
//! token), health for orchestrators.

mod body;
mod calendars;
mod cluster;
mod logs;
mod problem;
mod quotas;
mod rules;
mod runs;
mod schedules;
mod task_files;
mod tasks;
mod tenants;
mod wire;

use crate::auth::{ApiToken, KeyRing, Verifier};
use crate::engine::Engine;
use crate::redefine::Redefiner;
use crate::store::SqlStore;
use crate::workers::Ended;
use actix_web::body::MessageBody;
use actix_web::dev::{Server, ServerHandle, ServiceRequest, ServiceResponse};
use actix_web::middleware::{Next, from_fn};
use actix_web::{App, Error, HttpServer, web};
use carillon_protocol::{ExecutorSettings, NODE_BASE_PATH};
use problem::Problem;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// What the handlers work with.
pub struct Api {
    /// The engine.
    pub engine: Arc<Engine<SqlStore>>,
    /// The database, for what is not the engine's.
    pub store: SqlStore,
    /// Changes definitions.
    pub redefiner: Arc<Redefiner>,
    /// Wakes whoever follows up ended runs, and whoever lets waiting ones go.
    pub ended: Arc<Ended>,
    /// Checks executors' signatures.
    pub verifier: Verifier,
    /// Executors' keys.
    pub keys: Arc<KeyRing>,
    /// The management token.
    pub token: ApiToken,
    /// Wakes the urgent loader.
    pub poke: Arc<Notify>,
    /// What executors are told to keep to.
    pub executor_settings: ExecutorSettings,
    /// Zone of tasks that name none.
    pub default_zone: chrono_tz::Tz,
}

/// A client that is slower than this with its request's head is cut off.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections at most, per HTTP worker.
const CONNECTIONS_MAX: usize = 10_000;

/// Requests under way are given this long at a stop.
const SHUTDOWN_S: u64 = 5;

/// The HTTP server on `listener`, and the handle to stop it.
///
/// # Errors
/// When the listener cannot be used.
pub fn server(api: Api, listener: TcpListener) -> std::io::Result<(Server, ServerHandle)> {
    let api = web::Data::new(api);
    let server = HttpServer::new(move || {
        App::new()
            .app_data(api.clone())
            .service(web::scope(NODE_BASE_PATH).configure(wire::routes))
            .service(
                web::scope("/api/v1")
                    .wrap(from_fn(authorised))
                    .configure(tenants::routes)
                    // Before `/tasks/{id}`.
                    .configure(task_files::routes)
                    .configure(tasks::routes)
                    .configure(runs::routes)
                    .configure(schedules::routes)
                    .configure(calendars::routes)
                    .configure(rules::routes)
                    .configure(quotas::routes)
                    .configure(logs::routes)
                    .configure(cluster::routes)
                    .default_service(web::to(nothing_here)),
            )
            .configure(cluster::health_routes)
            .default_service(web::to(nothing_here))
    })
    .workers(2)
    .max_connections(CONNECTIONS_MAX)
    .client_request_timeout(HEAD_TIMEOUT)
    .shutdown_timeout(SHUTDOWN_S)
    .disable_signals()
    .listen(listener)?
    .run();
    let handle = server.handle();
    Ok((server, handle))
}

async fn nothing_here() -> Result<&'static str, Problem> {
    Err(Problem::not_found("there is no such route"))
}

/// The one door of the management API: without the token nothing is told, not even what exists.
async fn authorised(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let header = request.headers().get("authorization").and_then(|value| value.to_str().ok());
    let admitted = request.app_data::<web::Data<Api>>().is_some_and(|api| header.is_some_and(|h| api.token.admits(h)));
    if !admitted {
        return Err(Problem::unauthorised().into());
    }
    next.call(request).await
}
