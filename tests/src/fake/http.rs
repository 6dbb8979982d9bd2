//! The scripted executor's server.

use super::{OnDispatch, OnHealth, State};
use crate::api::App;
use carillon_protocol::sign::{self, SignMethod, header};
use carillon_protocol::{
    Cancel, CancelAck, CancelOutcome, Code, Dispatch, DispatchAck, DispatchOutcome, Health, Reply, RunKey,
};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::io;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// A reply's JSON and the secret that it is signed with.
type Signed = (Vec<u8>, String);

/// Serves for ever.
pub(super) async fn serve(listener: TcpListener, app: Arc<Mutex<App>>, state: Arc<Mutex<State>>) {
    // Connections end with this task: a fake that is dropped is gone like a killed process.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (app, state) = (Arc::clone(&app), Arc::clone(&state));
        connections.spawn(async move {
            let service = service_fn(|request| {
                let app = app.lock().unwrap().clone();
                answer(request, app, Arc::clone(&state))
            });
            let served = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            // An error here is a dropped connection, which is what the script asked for.
            let _ = served.await;
        });
    }
}

/// An error drops the connection without a reply.
async fn answer(request: Request<Incoming>, app: App, state: Arc<Mutex<State>>) -> io::Result<Response<Full<Bytes>>> {
    let path = request.uri().path().to_owned();
    let on_health = state.lock().unwrap().script.on_health;
    if path == "/health" && on_health == OnHealth::Older {
        return older_health(request.method() == hyper::Method::GET);
    }
    let headers = request.headers();
    let text = |name| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
    let nonce = text(header::NONCE);
    let method = SignMethod::parse(&text(header::SIGN_METHOD)).unwrap_or_default();
    state.lock().unwrap().last_signed = (text(header::KEY), method.as_str());
    let body = request.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
    let (reply, secret) = match path.as_str() {
        "/dispatch" => dispatch(&body, &app, &state).await?,
        "/cancel" => (cancel(&body, &state)?, app.key.secret.clone()),
        "/health" => (serde_json::to_vec(&Reply::ok(another()))?, health_secret(on_health, &app)?),
        _ => return Err(io::Error::other("nothing else is scripted")),
    };
    let signature = sign::sign_reply(method, &secret, &nonce, 200, &reply);
    Response::builder()
        .header("content-type", "application/json")
        .header(header::SIGN_METHOD, method.as_str())
        .header(header::SIGN, signature)
        .body(Full::new(Bytes::from(reply)))
        .map_err(io::Error::other)
}

/// What a process says that has taken its place.
fn another() -> Health {
    Health { executor_id: 0, instance: "another".into(), held: 0, running: 0, version: "0".into() }
}

fn health_secret(on_health: OnHealth, app: &App) -> io::Result<String> {
    match on_health {
        OnHealth::Successor => Ok(app.key.secret.clone()),
        OnHealth::Forged => Ok("not-the-secret".to_owned()),
        OnHealth::Drop | OnHealth::Older => Err(io::Error::other("scripted")),
    }
}

fn older_health(is_known: bool) -> io::Result<Response<Full<Bytes>>> {
    let (status, reply) = if is_known {
        (200, serde_json::to_vec(&Reply::ok(another()))?)
    } else {
        (404, serde_json::to_vec(&Reply::<()>::refuse(Code::NotFound, "there is no such path"))?)
    };
    Response::builder().status(status).body(Full::new(Bytes::from(reply))).map_err(io::Error::other)
}

async fn dispatch(body: &[u8], app: &App, state: &Mutex<State>) -> io::Result<Signed> {
    let message: Dispatch = serde_json::from_slice(body)?;
    let on_dispatch = {
        let mut state = state.lock().unwrap();
        state.offered.extend(message.items.iter().cloned());
        state.script.on_dispatch
    };
    let all = |outcome| vec![outcome; message.items.len()];
    let (outcomes, secret) = match on_dispatch {
        OnDispatch::Accept => (accept(message, state), app.key.secret.clone()),
        OnDispatch::Refuse => (all(DispatchOutcome::Busy), app.key.secret.clone()),
        OnDispatch::ForgedAck => (all(DispatchOutcome::Accepted), "not-the-secret".to_owned()),
        OnDispatch::AcceptThenDrop => {
            accept(message, state);
            return Err(io::Error::other("scripted"));
        }
        OnDispatch::Drop => return Err(io::Error::other("scripted")),
        OnDispatch::Hang => std::future::pending().await,
    };
    Ok((serde_json::to_vec(&Reply::ok(DispatchAck { outcomes }))?, secret))
}

fn accept(message: Dispatch, state: &Mutex<State>) -> Vec<DispatchOutcome> {
    let mut state = state.lock().unwrap();
    let now = crate::clock::now_ms();
    let mut outcomes = Vec::new();
    for item in message.items {
        let key = RunKey(item.log, item.attempt);
        outcomes.push(if state.refused.contains(&key) {
            DispatchOutcome::Cancelled
        } else if state.seen.contains(&key) {
            DispatchOutcome::Duplicate
        } else if now >= item.accept_until {
            DispatchOutcome::TooLate
        } else {
            state.seen.insert(key);
            state.held.insert(key, item);
            DispatchOutcome::Accepted
        });
    }
    outcomes
}

fn cancel(body: &[u8], state: &Mutex<State>) -> io::Result<Vec<u8>> {
    let message: Cancel = serde_json::from_slice(body)?;
    let mut state = state.lock().unwrap();
    if !state.script.obeys {
        return Err(io::Error::other("it hears nothing"));
    }
    let mut outcomes = Vec::new();
    for key in message.runs {
        state.cancels.push(key);
        outcomes.push(if state.held.remove(&key).is_some() {
            CancelOutcome::Dropped
        } else if state.running.contains_key(&key) {
            // It cannot be stopped; its result follows.
            if message.unstarted_only { CancelOutcome::Running } else { CancelOutcome::Stopping }
        } else {
            state.refused.insert(key);
            CancelOutcome::Unknown
        });
    }
    Ok(serde_json::to_vec(&Reply::ok(CancelAck { outcomes }))?)
}
