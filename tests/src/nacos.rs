//! A Nacos as far as its published HTTP interface tells it: instances register, leave, and are listed, in the words of version 1
//! and of version 3, with or without a login; unless a scenario tells it otherwise.

use crate::http;
use crate::port;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use reqwest::Url;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// How it answers a question for instances.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum OnList {
    /// With what is registered.
    #[default]
    Answer,
    /// With this status.
    Status(u16),
    /// With 200 and this text.
    Text(String),
    /// With 200 and so many bytes.
    Flood(usize),
    /// Never.
    Hang,
}

/// How it behaves; changed by scenarios at any time.
#[derive(Debug, Clone)]
pub struct NacosScript {
    /// Questions for instances.
    pub on_list: OnList,
    /// Version 1 of the interface is there.
    pub has_first: bool,
    /// Version 3 is.
    pub has_third: bool,
    /// Who asks must have signed in with this name and password.
    pub login: Option<(String, String)>,
}

/// A request that it got.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Path without the query.
    pub path: String,
    /// Query, and form of the body.
    pub fields: HashMap<String, String>,
    /// Of the header `authorization`.
    pub authorization: String,
}

struct State {
    script: NacosScript,
    asked: Vec<Asked>,
    /// Tokens that were given out, the last one is valid.
    tokens: u32,
    /// By namespace, group and service, then by ip and port.
    services: BTreeMap<[String; 3], BTreeMap<(String, u16), Value>>,
}

/// A running server.
pub struct NacosServer {
    /// `http://127.0.0.1:port`.
    pub url: String,
    state: Arc<Mutex<State>>,
    asked_here: Arc<Mutex<usize>>,
    server: Option<JoinHandle<()>>,
}

impl NacosServer {
    /// Starts one without instances.
    ///
    /// # Panics
    /// When it cannot listen.
    pub async fn start() -> Self {
        let script = NacosScript { on_list: OnList::Answer, has_first: true, has_third: true, login: None };
        Self::over(Arc::new(Mutex::new(State { script, asked: Vec::new(), tokens: 0, services: BTreeMap::new() })))
            .await
    }

    /// Starts another server of the same Nacos.
    ///
    /// # Panics
    /// When it cannot listen.
    pub async fn beside(&self) -> Self {
        Self::over(Arc::clone(&self.state)).await
    }

    async fn over(state: Arc<Mutex<State>>) -> Self {
        let port = port::free();
        let mut server =
            Self { url: format!("http://127.0.0.1:{port}"), state, asked_here: Arc::default(), server: None };
        server.listen().await;
        server
    }

    /// Listens, again after [`NacosServer::stop`].
    ///
    /// # Panics
    /// When it cannot listen.
    pub async fn listen(&mut self) {
        let address = self.url.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind(&address).await.expect("its port is free");
        self.server = Some(tokio::spawn(serve(listener, Arc::clone(&self.state), Arc::clone(&self.asked_here))));
    }

    /// Nothing listens there any more.
    pub async fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.abort();
            // An error here is the abort.
            let _ = server.await;
        }
    }

    /// Changes how it behaves.
    ///
    /// # Panics
    /// When another change panicked.
    pub fn script(&self, change: impl FnOnce(&mut NacosScript)) {
        change(&mut self.state.lock().unwrap().script);
    }

    /// What all its servers were asked for instances of this service.
    ///
    /// # Panics
    /// As [`NacosServer::script`].
    #[must_use]
    pub fn lists(&self, service: &str) -> Vec<Asked> {
        let is_list = |asked: &&Asked| asked.path.ends_with("/instance/list") && asked.fields["serviceName"] == service;
        self.state.lock().unwrap().asked.iter().filter(is_list).cloned().collect()
    }

    /// Everything that its servers were asked.
    ///
    /// # Panics
    /// As [`NacosServer::script`].
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.state.lock().unwrap().asked.clone()
    }

    /// How many requests this server has got.
    ///
    /// # Panics
    /// As [`NacosServer::script`].
    #[must_use]
    pub fn asked_here(&self) -> usize {
        *self.asked_here.lock().unwrap()
    }

    /// Tokens that it has given out are refused.
    ///
    /// # Panics
    /// As [`NacosServer::script`].
    pub fn forget_tokens(&self) {
        self.state.lock().unwrap().tokens += 1;
    }

    /// Registers an instance as a client does.
    ///
    /// # Panics
    /// When it is not taken.
    pub async fn register(&self, service: &str, address: &str, metadata: &Value) {
        self.tell(Method::POST, service, address, &[("metadata", &metadata.to_string())]).await;
    }

    /// The same with other fields: `healthy`, `enabled`, `groupName`, `namespaceId`.
    ///
    /// # Panics
    /// When it is not taken.
    pub async fn register_with(&self, service: &str, address: &str, fields: &[(&str, &str)]) {
        self.tell(Method::POST, service, address, fields).await;
    }

    /// An instance leaves.
    ///
    /// # Panics
    /// When it is not taken.
    pub async fn deregister(&self, service: &str, address: &str) {
        self.tell(Method::DELETE, service, address, &[]).await;
    }

    async fn tell(&self, method: Method, service: &str, address: &str, fields: &[(&str, &str)]) {
        let of = Url::parse(address).expect("an address");
        let mut url = Url::parse(&format!("{}/nacos/v1/ns/instance", self.url)).expect("an address");
        let port = of.port().unwrap_or(80).to_string();
        let own = [("serviceName", service), ("ip", of.host_str().unwrap_or_default()), ("port", &port)];
        url.query_pairs_mut().extend_pairs(own).extend_pairs(fields);
        let sent = http::shared().request(method, url).send().await.expect("the scripted Nacos answers");
        assert_eq!(sent.status(), 200);
    }
}

impl Drop for NacosServer {
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            server.abort();
        }
    }
}

async fn serve(listener: TcpListener, state: Arc<Mutex<State>>, asked_here: Arc<Mutex<usize>>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (state, asked_here) = (Arc::clone(&state), Arc::clone(&asked_here));
        connections.spawn(async move {
            let service = service_fn(|request| {
                *asked_here.lock().unwrap() += 1;
                answer(request, Arc::clone(&state))
            });
            let served = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            // An error here is a connection that the other side has dropped.
            let _ = served.await;
        });
    }
}

async fn answer(request: Request<Incoming>, state: Arc<Mutex<State>>) -> io::Result<Response<Full<Bytes>>> {
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let authorization = request.headers().get("authorization").and_then(|value| value.to_str().ok());
    let authorization = authorization.unwrap_or_default().to_owned();
    let body = request.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
    let form = String::from_utf8_lossy(&body).into_owned();
    let mut fields = fields_of(&query);
    fields.extend(fields_of(&form));
    let (script, reply) = {
        let mut state = state.lock().unwrap();
        let asked = Asked { path: path.clone(), fields: fields.clone(), authorization: authorization.clone() };
        state.asked.push(asked);
        (state.script.clone(), reply(&mut state, &method, &path, &fields, &authorization))
    };
    if path.ends_with("/instance/list") && method == Method::GET {
        match script.on_list {
            OnList::Answer => {}
            OnList::Status(status) => return said(status, "scripted".to_owned()),
            OnList::Text(text) => return said(200, text),
            OnList::Flood(bytes) => return said(200, format!("{{\"hosts\":[],\"x\":\"{}\"}}", "x".repeat(bytes))),
            OnList::Hang => std::future::pending().await,
        }
    }
    said(reply.0, reply.1)
}

fn reply(
    state: &mut State,
    method: &Method,
    path: &str,
    fields: &HashMap<String, String>,
    authorization: &str,
) -> (u16, String) {
    let (has_first, has_third) = (state.script.has_first, state.script.has_third);
    let is_first = has_first && path.starts_with("/nacos/v1/");
    let is_third = has_third && path.starts_with("/nacos/v3/");
    let end = path.trim_start_matches("/nacos/");
    if is_first && end == "v1/auth/login" || is_third && end == "v3/auth/user/login" {
        let given = (fields.get("username").cloned(), fields.get("password").cloned());
        let is_right = state.script.login.clone().is_some_and(|(name, word)| given == (Some(name), Some(word)));
        if !is_right {
            return (403, "unknown user!".to_owned());
        }
        state.tokens += 1;
        let token = format!("token-{}", state.tokens);
        return (200, json!({ "accessToken": token, "tokenTtl": 18_000, "globalAdmin": false }).to_string());
    }
    let text = |name: &str, otherwise: &str| fields.get(name).cloned().unwrap_or_else(|| otherwise.to_owned());
    let service = [text("namespaceId", "public"), text("groupName", "DEFAULT_GROUP"), text("serviceName", "")];
    let instance = (text("ip", ""), text("port", "").parse().unwrap_or_default());
    let is_list = is_first && end == "v1/ns/instance/list" || is_third && end == "v3/client/ns/instance/list";
    if is_list && *method == Method::GET {
        if state.script.login.is_some() && authorization != format!("Bearer token-{}", state.tokens) {
            return (403, "user not found!".to_owned());
        }
        // As the real one does not: all of them, so that who asks must look.
        let hosts: Vec<&Value> = state.services.get(&service).into_iter().flat_map(BTreeMap::values).collect();
        let answer = if is_first {
            json!({ "name": format!("{}@@{}", service[1], service[2]), "cacheMillis": 10_000, "hosts": hosts })
        } else {
            json!({ "code": 0, "message": "success", "data": hosts })
        };
        return (200, answer.to_string());
    }
    // Clients of any version may register, so that a scenario can take a version away from those who ask.
    match (method, end) {
        (&Method::POST, "v1/ns/instance") => {
            let host = host_of(&instance, fields);
            state.services.entry(service).or_default().insert(instance, host);
            (200, "ok".to_owned())
        }
        (&Method::DELETE, "v1/ns/instance") => {
            state.services.entry(service).or_default().remove(&instance);
            (200, "ok".to_owned())
        }
        (&Method::PUT, "v1/ns/instance/beat") => {
            (200, json!({ "clientBeatInterval": 5_000, "code": 10_200, "lightBeatEnabled": false }).to_string())
        }
        _ => (404, "no such path".to_owned()),
    }
}

fn host_of((ip, port): &(String, u16), fields: &HashMap<String, String>) -> Value {
    let flag = |names: [&str; 2]| {
        let given = names.iter().find_map(|name| fields.get(*name));
        given.is_none_or(|text| text.eq_ignore_ascii_case("true"))
    };
    let metadata: Map<String, Value> = fields.get("metadata").map(|text| metadata_of(text)).unwrap_or_default();
    json!({
        "ip": ip, "port": port, "weight": 1.0, "ephemeral": true, "clusterName": "DEFAULT",
        "healthy": flag(["healthy", "healthy"]), "enabled": flag(["enabled", "enable"]), "metadata": metadata,
    })
}

/// Clients send it as JSON, or as `key=value,key=value`.
fn metadata_of(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_else(|_| {
        let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
        pairs.map(|(key, value)| (key.to_owned(), json!(value))).collect()
    })
}

fn fields_of(query: &str) -> HashMap<String, String> {
    let url = Url::parse(&format!("http://nobody/?{query}")).expect("an address");
    url.query_pairs().into_owned().collect()
}

fn said(status: u16, text: String) -> io::Result<Response<Full<Bytes>>> {
    Response::builder().status(status).body(Full::new(Bytes::from(text))).map_err(io::Error::other)
}
