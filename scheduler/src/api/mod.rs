//! HTTP in: executors under `/openapi` (signed), people and programs under `/api/v1` (session or
//! token, permissions), health for orchestrators, and the web console for all else.
//!
//! Each room of `/api/v1` lists its operations ([`operation`]); routes, permissions and the OpenAPI
//! document are made of these lists.

mod account;
mod apps;
mod audit;
mod body;
mod calendars;
mod client_address;
mod console;
mod errors_page;
mod event_stream;
mod events;
mod executors;
mod forecast;
mod graph;
mod guard;
mod input;
mod keys;
mod log_output;
mod logs;
mod maintenance;
mod metrics;
mod nodes;
mod openapi;
mod operation;
mod parents;
mod problem;
mod quotas;
mod reference;
mod refusal;
mod roles;
mod runs;
mod schedules;
mod security_headers;
mod settings;
mod short_cache;
mod sign_on;
mod skips;
mod statistics;
mod targets;
mod task_files;
mod task_schema;
mod tasks;
mod tenants;
mod tokens;
mod unauthenticated;
mod unread_bodies;
mod upcoming_fires;
mod users;
mod wire;
mod words;

use crate::auth::{AddressRule, Authenticator, KeyRing, Provider, Throttle, Verifier};
use crate::definitions::TaskDefinitions;
use crate::dispatch::Tails;
use crate::engine::Engine;
use crate::live::Streams;
use crate::store::SqlStore;
use crate::workers::RunEndSignal;
use actix_web::dev::{Server, ServerHandle};
use actix_web::middleware::from_fn;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use carillon_protocol::{ExecutorSettings, NODE_BASE_PATH};
use console::Console;
pub use errors_page::errors_page;
pub use forecast::Forecasts;
use ipnet::IpNet;
use operation::Operation;
use problem::Problem;
use refusal::RequestRefusal;
use short_cache::ShortCache;
use std::collections::HashMap;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
pub use unauthenticated::UnauthenticatedLimits;
#[cfg(any(test, fuzzing))]
pub(crate) use wire::check_registration;

/// How often each may ask.
pub struct Rates {
    /// By address, before anybody knows who it is.
    pub addresses: Throttle,
    /// By user or token.
    pub callers: Throttle,
}

/// What the database said last to those who need no login.
#[derive(Default)]
pub struct CachedAnswers {
    /// Whether it answers.
    answers: ShortCache<bool>,
    /// The watermark of writing ahead, epoch ms; `None` when it did not answer.
    watermark: ShortCache<Option<i64>>,
    /// Names (tenant, app) by the app's id; `None` when it did not answer.
    apps: ShortCache<Option<HashMap<i64, (String, String)>>>,
}

/// What the handlers work with.
pub struct Api {
    /// The engine.
    pub engine: Arc<Engine<SqlStore>>,
    /// The database, for what is not the engine's.
    pub store: SqlStore,
    /// Changes definitions.
    pub definitions: Arc<TaskDefinitions>,
    /// Wakes whoever follows up ended runs, and whoever lets waiting ones go.
    pub ended: Arc<RunEndSignal>,
    /// Checks executors' signatures.
    pub verifier: Verifier,
    /// Executors' keys.
    pub keys: Arc<KeyRing>,
    /// Requests that are not rightly signed.
    pub unauthenticated: UnauthenticatedLimits,
    /// Where executors may be.
    pub addresses: AddressRule,
    /// Proxies whose word on where requests come from counts.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether executors are heard only over connections that showed a certificate.
    pub executors_show_certificates: bool,
    /// Says who asks.
    pub authenticator: Authenticator,
    /// Who else can say it.
    pub provider: Option<Provider>,
    /// How often they may.
    pub rates: Rates,
    /// Whether cookies are for TLS only.
    pub secure_cookie: bool,
    /// Who follows what runs log.
    pub tails: Arc<Tails>,
    /// Who hears what has changed.
    pub streams: Arc<Streams>,
    /// This node's name.
    pub node_name: String,
    /// Wakes the urgent loader.
    pub wake: Arc<Notify>,
    /// What executors are told to keep to.
    pub executor_settings: ExecutorSettings,
    /// Cancelled when this node stops.
    pub stop: CancellationToken,
    /// What probes and scrapes ask the database.
    pub cached: CachedAnswers,
    /// The coming day, as it was counted last.
    pub forecasts: Forecasts,
    /// Whether `/metrics` answers without a token.
    pub metrics_public: bool,
    /// How far ahead task logs are written, ms.
    pub ahead_ms: i64,
    /// Zone of tasks that name none.
    pub default_zone: chrono_tz::Tz,
    /// Settings, as people may see them.
    pub settings: Vec<(String, String)>,
}

/// A client that is slower than this with its request's head is cut off.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The same for a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Connections at most, per HTTP worker.
const CONNECTIONS_MAX: usize = 10_000;

/// Requests under way are given this long at a stop.
const SHUTDOWN_S: u64 = 5;

/// Every operation of the management API.
fn operations() -> Vec<Operation> {
    [
        account::operations(),
        apps::operations(),
        audit::operations(),
        calendars::operations(),
        events::operations(),
        executors::operations(),
        upcoming_fires::operations(),
        forecast::operations(),
        graph::operations(),
        keys::operations(),
        log_output::operations(),
        logs::operations(),
        maintenance::operations(),
        nodes::operations(),
        reference::operations(),
        quotas::operations(),
        roles::operations(),
        runs::operations(),
        schedules::operations(),
        skips::operations(),
        settings::operations(),
        sign_on::operations(),
        statistics::operations(),
        task_files::operations(),
        tasks::operations(),
        tenants::operations(),
        tokens::operations(),
        users::operations(),
    ]
    .into_iter()
    .flatten()
    .chain([operation::get("/openapi.json", "show_openapi", operation::Needs::Nothing, "This document")
        .answers_as(200, "application/json", "The document")
        .to(document)])
    .collect()
}

/// The OpenAPI document, as JSON.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn openapi_json() -> serde_json::Result<String> {
    openapi::document(operations()).to_pretty_json()
}

/// The document, made once.
struct Document(String);

async fn document(document: web::Data<Document>) -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(document.0.clone())
}

/// The HTTP server on `listener`, over TLS where that is set up, and the handle to stop it.
///
/// # Errors
/// When the listener cannot be used.
pub fn server(
    api: Api,
    listener: TcpListener,
    tls: Option<rustls::ServerConfig>,
) -> std::io::Result<(Server, ServerHandle)> {
    let api = web::Data::new(api);
    let document = web::Data::new(Document(openapi_json()?));
    let console = web::Data::new(Console::embedded());
    if !console.is_there() {
        tracing::info!("this binary was built without the web console; its start page says how to build it");
    }
    let server = HttpServer::new(move || {
        App::new()
            .app_data(api.clone())
            .app_data(document.clone())
            .app_data(console.clone())
            .wrap(from_fn(security_headers::add))
            .wrap(from_fn(metrics::count_requests))
            .wrap(from_fn(unread_bodies::keep))
            .service(web::scope(NODE_BASE_PATH).configure(wire::routes))
            .service(
                web::scope("/api/v1")
                    .configure(|config| operation::configure(config, operations()))
                    .default_service(web::to(nothing_here)),
            )
            .configure(nodes::health_routes)
            .configure(metrics::routes)
            .default_service(web::to(console::answer))
    })
    .workers(2)
    .max_connections(CONNECTIONS_MAX)
    .client_request_timeout(HEAD_TIMEOUT)
    .tls_handshake_timeout(HANDSHAKE_TIMEOUT)
    .on_connect(crate::tls::note_certificate)
    .shutdown_timeout(SHUTDOWN_S)
    .disable_signals();
    let server = match tls {
        Some(config) => server.listen_rustls_0_23(listener, config)?,
        None => server.listen(listener)?,
    };
    let server = server.run();
    let handle = server.handle();
    Ok((server, handle))
}

/// Strangers do not learn what exists.
async fn nothing_here(api: web::Data<Api>, request: HttpRequest) -> Result<HttpResponse, Problem> {
    let address = client_address::client_address(&api, &request);
    api.rates.addresses.admit_address(&address).map_err(Problem::too_many)?;
    guard::identify(&api, &request, &address).await?;
    Err(RequestRefusal::NoRoute.into())
}
