//! An identity provider that keeps to OpenID Connect except where a scenario tells it to lie.

use crate::folder;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use openidconnect::core::{
    CoreGenderClaim, CoreHmacKey, CoreJsonWebKeySet, CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm,
    CoreRsaPrivateSigningKey,
};
use openidconnect::{
    AccessToken, AdditionalClaims, Audience, EndUserName, EndUserUsername, IdToken, IdTokenClaims, IssuerUrl,
    JsonWebKeyId, LocalizedClaim, Nonce, PkceCodeChallenge, PkceCodeVerifier, PrivateSigningKey, StandardClaims,
    SubjectIdentifier,
};
use reqwest::Url;
use rsa::pkcs1::{EncodeRsaPrivateKey, LineEnding};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// What the provider calls the node.
pub const CLIENT_ID: &str = "carillon";

/// Characters that a form would change: they must arrive all the same.
pub const CLIENT_SECRET: &str = "a:secret+with%the usual=traps";

/// Who sits at the browser.
#[derive(Debug, Clone)]
pub struct Somebody {
    /// The user's permanent id.
    pub subject: String,
    /// The user's name there.
    pub username: String,
    /// The user's groups.
    pub groups: Vec<String>,
}

/// How the provider lies, or an attacker in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// Not at all.
    None,
    /// The token was made for another question.
    Nonce,
    /// For another client.
    Audience,
    /// By another issuer.
    Issuer,
    /// An hour ago.
    Expired,
    /// Signed with a key that the provider does not have.
    Key,
    /// Not signed (`alg: none`).
    Unsigned,
    /// Signed with the client's secret instead of the provider's key.
    Symmetric,
    /// With another access token.
    AccessToken,
    /// No ID token at all.
    NoToken,
    /// More than any client wants to read.
    Flood,
}

#[derive(Debug, Serialize, Deserialize)]
struct Groups {
    groups: Vec<String>,
}

impl AdditionalClaims for Groups {}

type Claims = IdTokenClaims<Groups, CoreGenderClaim>;
type Token = IdToken<Groups, CoreGenderClaim, CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm>;

/// A question that has been answered with a code.
#[derive(Debug, Clone)]
struct Asked {
    who: Somebody,
    nonce: String,
    challenge: String,
    redirect_uri: String,
}

struct State {
    issuer: String,
    key: CoreRsaPrivateSigningKey,
    codes: HashMap<String, Asked>,
    codes_made: usize,
    lie: Lie,
}

/// The provider. Dropped, it is gone.
pub struct IdentityProvider {
    /// As it calls itself.
    pub issuer: String,
    state: Arc<Mutex<State>>,
    server: JoinHandle<()>,
}

impl Drop for IdentityProvider {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn new_key(id: &str) -> CoreRsaPrivateSigningKey {
    let key = rsa::RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 2048).expect("make an RSA key");
    let pem = key.to_pkcs1_pem(LineEnding::LF).expect("write an RSA key");
    CoreRsaPrivateSigningKey::from_pem(&pem, Some(JsonWebKeyId::new(id.to_owned()))).expect("read an RSA key")
}

impl IdentityProvider {
    /// Starts on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let issuer = format!("http://{}", listener.local_addr().expect("its address"));
        let state =
            State { issuer: issuer.clone(), key: new_key("one"), codes: HashMap::new(), codes_made: 0, lie: Lie::None };
        let state = Arc::new(Mutex::new(state));
        let server = tokio::spawn(serve(listener, Arc::clone(&state)));
        Self { issuer, state, server }
    }

    /// From now on it lies so.
    pub fn lie(&self, lie: Lie) {
        self.state.lock().unwrap().lie = lie;
    }

    /// It has another key from now on.
    pub fn change_key(&self) {
        self.state.lock().unwrap().key = new_key("two");
    }

    /// What `who` gets who is sent here: the address that leads back.
    #[must_use]
    pub fn authorise(&self, url: &str, who: &Somebody) -> String {
        let url = Url::parse(url).expect("an address");
        assert!(url.as_str().starts_with(&format!("{}/authorize?", self.issuer)), "{url}");
        let told: HashMap<String, String> = url.query_pairs().into_owned().collect();
        assert_eq!(told["client_id"], CLIENT_ID);
        assert_eq!((told["response_type"].as_str(), told["code_challenge_method"].as_str()), ("code", "S256"));
        assert!(told["scope"].split(' ').any(|scope| scope == "openid"), "{url}");
        let asked = Asked {
            who: who.clone(),
            nonce: told["nonce"].clone(),
            challenge: told["code_challenge"].clone(),
            redirect_uri: told["redirect_uri"].clone(),
        };
        let mut state = self.state.lock().unwrap();
        state.codes_made += 1;
        let code = format!("code-{}", state.codes_made);
        state.codes.insert(code.clone(), asked);
        let back = [("code", code.as_str()), ("state", &told["state"]), ("iss", &self.issuer), ("session_state", "x")];
        Url::parse_with_params(&told["redirect_uri"], back).expect("an address").into()
    }

    /// A node's configuration file: this provider, with what groups are granted (TOML).
    #[must_use]
    pub fn configuration(&self, node_url: &str, grants: &str) -> PathBuf {
        let file = folder::fresh("oidc").join("carillon.toml");
        let (issuer, callback) = (&self.issuer, format!("{node_url}/api/v1/login/oidc/callback"));
        let text = format!(
            "[auth.oidc]\nissuer = \"{issuer}\"\nclient_id = \"{CLIENT_ID}\"\nclient_secret = \"{CLIENT_SECRET}\"\n\
             redirect_url = \"{callback}\"\nname = \"The company\"\n{grants}"
        );
        std::fs::write(&file, text).expect("write the configuration");
        file
    }
}

async fn serve(listener: TcpListener, state: Arc<Mutex<State>>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let state = Arc::clone(&state);
        connections.spawn(async move {
            let service = service_fn(|request| answer(request, Arc::clone(&state)));
            // The node closes its connections as it likes.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    state: Arc<Mutex<State>>,
) -> Result<Response<Full<Bytes>>, Box<dyn std::error::Error + Send + Sync>> {
    let path = request.uri().path().to_owned();
    let authorization = request.headers().get("authorization").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let body = request.into_body().collect().await?.to_bytes();
    let mut state = state.lock().unwrap();
    let (status, answer) = match path.as_str() {
        "/.well-known/openid-configuration" => (StatusCode::OK, description(&state.issuer)),
        "/jwks" => {
            let keys = CoreJsonWebKeySet::new(vec![state.key.as_verification_key()]);
            (StatusCode::OK, serde_json::to_value(keys)?)
        }
        "/token" => match tokens(&mut state, authorization.as_deref(), &body) {
            Some(answer) => (StatusCode::OK, answer),
            None => (StatusCode::BAD_REQUEST, json!({ "error": "invalid_grant" })),
        },
        _ => (StatusCode::NOT_FOUND, Value::Null),
    };
    let mut text = serde_json::to_vec(&answer)?;
    if state.lie == Lie::Flood && path == "/token" {
        text.resize(64 * 1024 * 1024, b' ');
    }
    let answer = Response::builder().status(status).header("content-type", "application/json");
    Ok(answer.body(Full::new(Bytes::from(text)))?)
}

fn description(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/jwks"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    })
}

/// Tokens for a code, if it is the client who asks, with the verifier of the question.
fn tokens(state: &mut State, authorization: Option<&str>, body: &[u8]) -> Option<Value> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let form = Url::parse(&format!("http://form/?{}", text(body))).ok()?;
    let form: HashMap<String, String> = form.query_pairs().into_owned().collect();
    let encoded = |plain: &str| {
        let pair = Url::parse_with_params("http://form/", [("v", plain)]).expect("an address");
        pair.query().unwrap_or_default().trim_start_matches("v=").to_owned()
    };
    let expected = format!("{}:{}", encoded(CLIENT_ID), encoded(CLIENT_SECRET));
    if authorization != Some(&format!("Basic {}", STANDARD.encode(expected))) {
        return None;
    }
    // A code counts once.
    let asked = state.codes.remove(form.get("code")?)?;
    let verifier = PkceCodeVerifier::new(form.get("code_verifier")?.clone());
    let challenge = PkceCodeChallenge::from_code_verifier_sha256(&verifier);
    if challenge.as_str() != asked.challenge || form.get("redirect_uri") != Some(&asked.redirect_uri) {
        return None;
    }
    let access_token = AccessToken::new("an access token".to_owned());
    let mut answer = json!({ "access_token": access_token.secret(), "token_type": "Bearer", "expires_in": 300 });
    if state.lie != Lie::NoToken {
        answer["id_token"] = Value::String(id_token(state, &asked, &access_token));
    }
    Some(answer)
}

fn id_token(state: &State, asked: &Asked, access_token: &AccessToken) -> String {
    let lie = state.lie;
    let either = |lies: bool, wrong: &str, right: &str| if lies { wrong.to_owned() } else { right.to_owned() };
    let now = chrono::Utc::now();
    let expires =
        if lie == Lie::Expired { now - chrono::TimeDelta::hours(1) } else { now + chrono::TimeDelta::minutes(5) };
    let mut name = LocalizedClaim::new();
    name.insert(None, EndUserName::new(format!("{} of the company", asked.who.username)));
    let standard = StandardClaims::new(SubjectIdentifier::new(asked.who.subject.clone()))
        .set_preferred_username(Some(EndUserUsername::new(asked.who.username.clone())))
        .set_name(Some(name));
    let issuer = either(lie == Lie::Issuer, "http://127.0.0.1:1", &state.issuer);
    let audience = either(lie == Lie::Audience, "somebody-else", CLIENT_ID);
    let nonce = either(lie == Lie::Nonce, "another", &asked.nonce);
    let claims = Claims::new(
        IssuerUrl::new(issuer).expect("an issuer"),
        vec![Audience::new(audience)],
        expires,
        now - chrono::TimeDelta::minutes(if lie == Lie::Expired { 65 } else { 0 }),
        standard,
        Groups { groups: asked.who.groups.clone() },
    )
    .set_nonce(Some(Nonce::new(nonce)));
    let stranger = (lie == Lie::Key).then(|| new_key("one"));
    let key = stranger.as_ref().unwrap_or(&state.key);
    let other = AccessToken::new("another access token".to_owned());
    let hashed = if lie == Lie::AccessToken { &other } else { access_token };
    let algorithm = CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256;
    match lie {
        Lie::Unsigned => {
            let claims = serde_json::to_vec(&claims).expect("write claims");
            format!("{}.{}.", URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#), URL_SAFE_NO_PAD.encode(claims))
        }
        Lie::Symmetric => {
            let key = CoreHmacKey::new(CLIENT_SECRET);
            let token = Token::new(claims, &key, CoreJwsSigningAlgorithm::HmacSha256, Some(hashed), None);
            token.expect("sign a token").to_string()
        }
        _ => Token::new(claims, key, algorithm, Some(hashed), None).expect("sign a token").to_string(),
    }
}
