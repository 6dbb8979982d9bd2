//! HTTP in: executors under `/openapi` (signed), people and programs under `/api/v1` (session or
//! token, permissions), health for orchestrators, and the web console for all else.
//!
//! Each resource of `/api/v1` lists its operations ([`operation`]); routes, permissions and the OpenAPI
//! document are generated from these lists.

mod account;
mod apps;
mod audit;
mod body;
mod calendars;
mod client_address;
mod cluster_sign_in;
mod clusters;
mod console;
mod discovery;
mod errors_page;
mod event_stream;
mod events;
mod executor_messages;
mod executors;
mod executors_door;
mod forecast;
mod forecasts;
mod grants;
mod graph;
mod guard;
mod input;
mod keys;
mod log_output;
mod logs;
mod maintenance;
mod metrics;
mod needs;
mod nodes;
mod old_runs;
mod openapi;
mod operation;
mod origins;
mod parents;
mod past;
mod pending_sign_in;
mod people;
mod problem;
mod quotas;
mod reference;
mod refusal;
mod roles;
mod runs;
mod schedules;
mod scripts;
mod security_headers;
mod settings;
mod short_cache;
mod sign_on;
mod skips;
mod state;
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
mod wait_slots;
mod waiting;
mod why;
mod wire;
mod wire_limits;
mod words;
mod xxljob;

use actix_web::dev::{Server, ServerHandle};
use actix_web::middleware::from_fn;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use carillon_protocol::{NODE_BASE_PATH, NODE_KEEP_ALIVE};
use console::Console;
pub use errors_page::errors_page;
#[cfg(any(test, fuzzing))]
pub(crate) use executor_messages::check_registration;
pub use executor_messages::{ExecutorMessage, ExecutorMessages};
pub use executors_door::ExecutorsDoor;
pub use forecasts::Forecasts;
use operation::Operation;
use problem::Problem;
use refusal::RequestRefusal;
pub use state::{Api, CachedAnswers, Rates};
use std::net::TcpListener;
use std::time::Duration;
pub use wait_slots::WaitSlots;
pub use xxljob::{PlainCaller, PlainDoor, PlainDoorParts, PlainMessage};

/// How long a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The same for a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Most connections per HTTP worker.
const CONNECTIONS_MAX: usize = 10_000;

/// How long requests in progress may take at shutdown.
const SHUTDOWN_S: u64 = 5;

/// Every operation of the management API.
fn operations() -> Vec<Operation> {
    [
        account::operations(),
        apps::operations(),
        audit::operations(),
        calendars::operations(),
        cluster_sign_in::operations(),
        clusters::operations(),
        discovery::operations(),
        events::operations(),
        executors::operations(),
        upcoming_fires::operations(),
        forecast::operations(),
        grants::operations(),
        graph::operations(),
        keys::operations(),
        log_output::operations(),
        logs::operations(),
        maintenance::operations(),
        nodes::operations(),
        old_runs::operations(),
        origins::operations(),
        past::operations(),
        reference::operations(),
        quotas::operations(),
        roles::operations(),
        runs::operations(),
        schedules::operations(),
        scripts::operations(),
        skips::operations(),
        settings::operations(),
        sign_on::operations(),
        statistics::operations(),
        task_files::operations(),
        tasks::operations(),
        tenants::operations(),
        tokens::operations(),
        users::operations(),
        why::operations(),
    ]
    .into_iter()
    .flatten()
    .chain([operation::get("/openapi.json", "show_openapi", needs::Needs::Nothing, "This document")
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
            .configure(xxljob::routes)
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
    .keep_alive(NODE_KEEP_ALIVE)
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

/// Unauthenticated callers do not learn which routes exist.
async fn nothing_here(api: web::Data<Api>, request: HttpRequest) -> Result<HttpResponse, Problem> {
    let address = client_address::client_address(&api, &request);
    api.rates.addresses.admit_address(&address).map_err(Problem::too_many)?;
    guard::identify(&api, &request, &address).await?;
    Err(RequestRefusal::NoRoute.into())
}
