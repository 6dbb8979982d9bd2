//! A client of Nacos' published HTTP interface: it lists the instances of a service.

use super::answers::{self, Instances};
use super::settings::{NacosSettings, base_of};
use crate::auth::AddressRule;
use crate::domain::discovery::NacosService;
use crate::response_body::{Unread, read_within};
use anyhow::Context;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Method, Request, StatusCode, redirect};
use secrecy::{ExposeSecret, SecretString};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use url::Url;
use url::form_urlencoded::Serializer;

/// An answer may take this long, a connection this long of it …
const ANSWER_MAX: Duration = Duration::from_secs(1);
const CONNECT_MAX: Duration = Duration::from_millis(500);
/// … and have so many bytes.
const ANSWER_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Servers that are tried before it counts as away.
const TRIED_MAX: usize = 3;

/// When none of them could be spoken with, nobody asks for this long: the services of one Nacos share its fate, and each would wait
/// as long.
const AWAY_FOR: Duration = Duration::from_secs(1);

/// A token is used for so long at most, and for this long where its server does not say.
const TOKEN_MAX: Duration = Duration::from_hours(1);
const TOKEN_DEFAULT: Duration = Duration::from_mins(5);

/// Versions of its interface that list instances.
const FIRST: Version = Version { list: "/v1/ns/instance/list", read: answers::first };
const THIRD: Version = Version { list: "/v3/client/ns/instance/list", read: answers::third };

/// Where it signs people in, by version.
const LOGINS: [&str; 2] = ["/v1/auth/login", "/v3/auth/user/login"];

/// A version of its interface.
struct Version {
    list: &'static str,
    read: fn(&[u8]) -> Result<Instances, String>,
}

/// One Nacos: its servers say the same.
pub struct Nacos {
    http: Client,
    servers: Vec<Server>,
    /// The server that answered last.
    turn: AtomicUsize,
    /// Until when nobody asks, and why.
    away: Mutex<Option<(Instant, String)>>,
    login: Option<Login>,
}

/// Why a server does not tell.
enum Failure {
    /// It cannot be spoken with, whatever it is asked.
    Away(String),
    /// It does not answer this question.
    NoAnswer(String),
}

struct Server {
    base: String,
    /// It has only the third version.
    is_third: AtomicBool,
}

struct Login {
    username: String,
    password: SecretString,
    token: Mutex<Option<(SecretString, Instant)>>,
}

impl Nacos {
    /// Over its settings; nothing is asked yet.
    ///
    /// # Errors
    /// When the machine's certificates cannot be used.
    pub fn new(settings: &NacosSettings) -> anyhow::Result<Self> {
        let bases: Vec<String> = settings.servers.iter().filter_map(|server| base_of(server)).collect();
        let mut http = Client::builder()
            .connect_timeout(CONNECT_MAX)
            .timeout(ANSWER_MAX)
            .redirect(redirect::Policy::none())
            .no_proxy()
            .dns_resolver(Arc::new(AddressRule::anywhere()))
            .pool_max_idle_per_host(8);
        if !bases.iter().any(|base| base.starts_with("https:")) {
            http = http.tls_backend_preconfigured(crate::tls::unused()?);
        }
        let login =
            Login { username: settings.username.clone(), password: settings.password.clone(), token: Mutex::default() };
        let server = |base| Server { base, is_third: AtomicBool::new(false) };
        Ok(Self {
            http: http.build().context("a client for nacos.servers cannot be created")?,
            servers: bases.into_iter().map(server).collect(),
            turn: AtomicUsize::new(0),
            away: Mutex::default(),
            login: Some(login).filter(|login| !login.username.is_empty()),
        })
    }

    /// The healthy and enabled instances of a service.
    ///
    /// # Errors
    /// Why no server tells, for people.
    pub async fn instances(&self, service: &NacosService) -> Result<Instances, String> {
        if let Some(why) = self.why_away() {
            return Err(why);
        }
        let first = self.turn.load(Ordering::Relaxed);
        let mut why = "this node knows no Nacos (nacos.servers)".to_owned();
        let mut is_away = true;
        for at in (first..first + self.servers.len()).take(TRIED_MAX) {
            let at = at % self.servers.len();
            let server = &self.servers[at];
            match self.ask(server, service).await {
                Ok(instances) => {
                    self.turn.store(at, Ordering::Relaxed);
                    return Ok(instances);
                }
                Err(Failure::Away(error)) => why = format!("{}: {error}", server.base),
                Err(Failure::NoAnswer(error)) => {
                    is_away = false;
                    why = format!("{}: {error}", server.base);
                }
            }
        }
        if is_away {
            *self.away.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now() + AWAY_FOR, why.clone()));
        }
        Err(why)
    }

    /// Why nobody asks now.
    fn why_away(&self) -> Option<String> {
        let away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        away.as_ref().filter(|(until, _)| Instant::now() < *until).map(|(_, why)| why.clone())
    }

    async fn ask(&self, server: &Server, service: &NacosService) -> Result<Instances, Failure> {
        let is_third = server.is_third.load(Ordering::Relaxed);
        let versions = if is_third { [&THIRD, &FIRST] } else { [&FIRST, &THIRD] };
        let mut why = String::new();
        for (at, version) in versions.into_iter().enumerate() {
            let (status, body) = self.list(server, version, service).await?;
            if status == StatusCode::OK {
                let instances = (version.read)(&body).map_err(Failure::NoAnswer)?;
                server.is_third.store(is_third != (at == 1), Ordering::Relaxed);
                return Ok(instances);
            }
            if why.is_empty() {
                why = format!("it answered {status}");
            }
            if !is_missing(status) {
                break;
            }
        }
        Err(Failure::NoAnswer(why))
    }

    /// Asks for the list, with a token where there is a login. A token that is refused is replaced once.
    async fn list(
        &self,
        server: &Server,
        version: &Version,
        service: &NacosService,
    ) -> Result<(StatusCode, Vec<u8>), Failure> {
        let mut query =
            vec![("serviceName", service.service.as_str()), ("groupName", &service.group), ("healthyOnly", "true")];
        if !service.namespace.is_empty() {
            query.push(("namespaceId", &service.namespace));
        }
        let url = format!("{}{}?{}", server.base, version.list, form(&query));
        let mut is_fresh = false;
        loop {
            let mut request = get(&url).map_err(Failure::NoAnswer)?;
            if let Some(login) = &self.login {
                let token = if let Some(token) = login.known() {
                    token
                } else {
                    is_fresh = true;
                    self.sign_in(server, login).await.map_err(Failure::Away)?
                };
                let value = format!("Bearer {}", token.expose_secret()).parse::<HeaderValue>();
                let mut value = value.map_err(|_| Failure::Away("its token is no header".to_owned()))?;
                value.set_sensitive(true);
                request.headers_mut().insert(AUTHORIZATION, value);
            }
            let (status, body) = self.carry(request).await.map_err(Failure::Away)?;
            let is_refused = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status);
            match &self.login {
                Some(login) if is_refused && !is_fresh => login.forget(),
                _ => return Ok((status, body)),
            }
        }
    }

    async fn sign_in(&self, server: &Server, login: &Login) -> Result<SecretString, String> {
        let form = form(&[("username", &login.username), ("password", login.password.expose_secret())]);
        let mut why = String::new();
        for path in LOGINS {
            let mut request = Request::new(Method::POST, address(&format!("{}{path}", server.base))?);
            let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
            request.headers_mut().insert(CONTENT_TYPE, kind);
            *request.body_mut() = Some(form.clone().into());
            let (status, body) = self.carry(request).await?;
            if status == StatusCode::OK {
                return login.keep(answers::token(&body)?);
            }
            why = format!("it refused the login of nacos.username with {status}");
            if !is_missing(status) {
                break;
            }
        }
        Err(why)
    }

    /// Errors do not name the address: its query is of no use to anyone, and a token must never be in it.
    async fn carry(&self, request: Request) -> Result<(StatusCode, Vec<u8>), String> {
        // With everything behind it: reqwest's own text hides the cause.
        let why = |error: reqwest::Error| format!("{:#}", anyhow::Error::new(error.without_url()));
        let mut response = self.http.execute(request).await.map_err(why)?;
        let body = read_within(&mut response, ANSWER_BYTES_MAX).await.map_err(|unread| match unread {
            Unread::TooLong => format!("its answer has more than {ANSWER_BYTES_MAX} bytes"),
            Unread::Broken(error) => why(error),
        })?;
        Ok((response.status(), body))
    }
}

impl Login {
    fn known(&self) -> Option<SecretString> {
        let token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        token.as_ref().filter(|(_, until)| Instant::now() < *until).map(|(token, _)| token.clone())
    }

    fn keep(&self, (token, ttl_s): (String, u64)) -> Result<SecretString, String> {
        let token = SecretString::from(token);
        let holds = if ttl_s == 0 { TOKEN_DEFAULT } else { Duration::from_secs(ttl_s).min(TOKEN_MAX) };
        // Replaced before it ends.
        let until = Instant::now() + holds * 9 / 10;
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some((token.clone(), until));
        Ok(token)
    }

    fn forget(&self) {
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Whether a version of the interface is not there.
fn is_missing(status: StatusCode) -> bool {
    [StatusCode::NOT_FOUND, StatusCode::GONE, StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_IMPLEMENTED]
        .contains(&status)
}

fn form(pairs: &[(&str, &str)]) -> String {
    Serializer::new(String::new()).extend_pairs(pairs).finish()
}

fn get(url: &str) -> Result<Request, String> {
    Ok(Request::new(Method::GET, address(url)?))
}

fn address(url: &str) -> Result<Url, String> {
    Url::parse(url).map_err(|error| format!("it has no address: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    fn service(name: &str) -> NacosService {
        NacosService { namespace: String::new(), group: "G".to_owned(), service: name.to_owned(), port: None }
    }

    #[tokio::test]
    async fn one_that_hangs_is_waited_for_once() {
        // It takes connections, and never answers.
        let hung = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let servers = vec![format!("http://{}", hung.local_addr().unwrap())];
        let settings = NacosSettings { servers, username: String::new(), password: String::new().into() };
        let nacos = Nacos::new(&settings).unwrap();
        let why = nacos.instances(&service("orders")).await.unwrap_err();
        let since = Instant::now();
        assert_eq!(nacos.instances(&service("stock")).await.unwrap_err(), why);
        assert!(since.elapsed() < ANSWER_MAX / 2, "{:?}", since.elapsed());
    }
}
