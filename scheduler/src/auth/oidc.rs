//! The provider of single sign-on, by OpenID Connect: authorization code flow with PKCE
//! (OpenID Connect Core 1.0, RFC 7636). The node keeps nothing between the two steps; what it must
//! know again travels in a cookie of the browser, so any node can do the second.

use super::sign_on::{Identity, Pending, SignOnSettings};
use crate::response_body::{Unread, read_within};
use anyhow::{Context, anyhow, bail};
use carillon_protocol::sign::matches;
use openidconnect::core::{
    CoreAuthDisplay, CoreAuthPrompt, CoreAuthenticationFlow, CoreErrorResponseType, CoreGenderClaim, CoreJsonWebKey,
    CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm, CoreProviderMetadata, CoreRevocableToken,
    CoreRevocationErrorResponse, CoreTokenIntrospectionResponse, CoreTokenType,
};
use openidconnect::{
    AccessTokenHash, AdditionalClaims, AuthorizationCode, Client, ClientId, ClientSecret, CsrfToken,
    EmptyExtraTokenFields, EndpointMaybeSet, EndpointNotSet, EndpointSet, HttpRequest, HttpResponse, IdTokenFields,
    IssuerUrl, Nonce, OAuth2TokenResponse, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, Scope,
    StandardErrorResponse, StandardTokenResponse, TokenResponse,
};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// An answer of the provider may take this long …
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// … and have so many bytes.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// Most groups of a user.
const GROUPS_MAX: usize = 10_000;

/// Claims that the standard does not name.
#[derive(Debug, Serialize, Deserialize)]
struct Others {
    #[serde(flatten)]
    all: Map<String, Value>,
}

impl AdditionalClaims for Others {}

type Tokens = StandardTokenResponse<
    IdTokenFields<
        Others,
        EmptyExtraTokenFields,
        CoreGenderClaim,
        CoreJweContentEncryptionAlgorithm,
        CoreJwsSigningAlgorithm,
    >,
    CoreTokenType,
>;

type ProviderClient = Client<
    Others,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    Tokens,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// The provider.
pub struct Provider {
    settings: SignOnSettings,
    issuer: IssuerUrl,
    redirect_url: RedirectUrl,
    http: reqwest::Client,
}

impl Provider {
    /// Of these settings; nothing is asked yet.
    ///
    /// # Errors
    /// When the settings or the machine's certificates cannot be used.
    pub fn new(settings: SignOnSettings) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(ANSWER_MAX)
            // A connection belongs to the runtime that opened it; handlers run on several.
            .pool_max_idle_per_host(0)
            .build()
            .context("a client for auth.oidc.issuer cannot be created")?;
        Ok(Self {
            issuer: IssuerUrl::new(settings.issuer.clone()).context("auth.oidc.issuer")?,
            redirect_url: RedirectUrl::new(settings.redirect_url.clone()).context("auth.oidc.redirect_url")?,
            settings,
            http,
        })
    }

    /// As it was set up.
    pub fn settings(&self) -> &SignOnSettings {
        &self.settings
    }

    /// Where to send the browser, and what it must keep.
    ///
    /// # Errors
    /// When the provider cannot be reached.
    pub async fn begin(&self) -> anyhow::Result<(String, Pending)> {
        let client = self.client().await?;
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let mut request =
            client.authorize_url(CoreAuthenticationFlow::AuthorizationCode, CsrfToken::new_random, Nonce::new_random);
        for scope in &self.settings.scopes {
            request = request.add_scope(Scope::new(scope.clone()));
        }
        let (url, state, nonce) = request.set_pkce_challenge(challenge).url();
        let pending =
            Pending { state: state.into_secret(), nonce: nonce.secret().clone(), verifier: verifier.into_secret() };
        Ok((url.into(), pending))
    }

    /// Whom the provider names for that code.
    ///
    /// # Errors
    /// When the provider cannot be reached, or its response cannot be trusted.
    pub async fn finish(&self, code: String, pending: Pending) -> anyhow::Result<Identity> {
        // Its keys are fetched every time: they change.
        let client = self.client().await?;
        let http = |request| self.call(request);
        let answer = client
            .exchange_code(AuthorizationCode::new(code))
            .context("the provider has no token endpoint")?
            .set_pkce_verifier(PkceCodeVerifier::new(pending.verifier))
            .request_async(&http)
            .await
            .map_err(|error| anyhow!(error))
            .context("the provider does not accept the code")?;
        let token = answer.id_token().context("the provider answered no ID token")?;
        let verifier = client.id_token_verifier();
        let claims = token.claims(&verifier, &Nonce::new(pending.nonce)).context("the ID token cannot be trusted")?;
        if let Some(expected) = claims.access_token_hash() {
            let (algorithm, key) = (token.signing_alg()?, token.signing_key(&verifier)?);
            let actual = AccessTokenHash::from_token(answer.access_token(), algorithm, key)?;
            if !matches(expected, &actual) {
                bail!("the access token is not the one that the ID token names");
            }
        }
        let claims = serde_json::to_value(claims).context("the claims cannot be read")?;
        self.identity(&claims)
    }

    fn identity(&self, claims: &Value) -> anyhow::Result<Identity> {
        let text = |name: &str| claim(claims, name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let groups: Vec<String> = match claim(claims, &self.settings.groups_claim) {
            Some(Value::Array(groups)) => groups.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect(),
            Some(Value::String(group)) => vec![group.clone()],
            _ => Vec::new(),
        };
        if groups.len() > GROUPS_MAX {
            bail!("more than {GROUPS_MAX} groups");
        }
        Ok(Identity {
            subject: format!("{} {}", self.issuer.as_str(), text("sub")),
            name: text(&self.settings.user_claim),
            display_name: text("name"),
            groups,
        })
    }

    /// The provider as it describes itself now.
    async fn client(&self) -> anyhow::Result<ProviderClient> {
        let http = |request| self.call(request);
        let metadata = CoreProviderMetadata::discover_async(self.issuer.clone(), &http)
            .await
            .with_context(|| format!("{} does not describe itself (auth.oidc.issuer)", self.issuer.as_str()))?;
        let secret = ClientSecret::new(self.settings.client_secret.expose_secret().to_owned());
        Ok(Client::from_provider_metadata(metadata, ClientId::new(self.settings.client_id.clone()), Some(secret))
            .set_redirect_uri(self.redirect_url.clone()))
    }

    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, CallError> {
        let mut answer = self.http.execute(reqwest::Request::try_from(request)?).await?;
        let body = read_within(&mut answer, ANSWER_BYTES_MAX).await.map_err(|unread| match unread {
            Unread::TooLong => CallError::TooLong,
            Unread::Broken(error) => error.into(),
        })?;
        let mut response = HttpResponse::new(body);
        *response.status_mut() = answer.status();
        *response.headers_mut() = std::mem::take(answer.headers_mut());
        Ok(response)
    }
}

/// Why the provider did not answer.
#[derive(Debug, thiserror::Error)]
enum CallError {
    #[error(transparent)]
    Http(#[from] reqwest::Error),
    #[error("the answer has more than {ANSWER_BYTES_MAX} bytes")]
    TooLong,
}

/// A claim by its name, or by the way to it (`realm_access.roles`).
fn claim<'a>(claims: &'a Value, name: &str) -> Option<&'a Value> {
    claims.get(name).or_else(|| name.split('.').try_fold(claims, |value, part| value.get(part)))
}

#[cfg(test)]
mod tests {
    use super::claim;
    use serde_json::json;

    #[test]
    fn a_claim_has_a_name_or_a_way_to_it() {
        let claims = json!({ "https://a.example/groups": ["x"], "realm_access": { "roles": ["y"] }, "groups": "z" });
        assert_eq!(claim(&claims, "https://a.example/groups"), Some(&json!(["x"])));
        assert_eq!(claim(&claims, "realm_access.roles"), Some(&json!(["y"])));
        assert_eq!(claim(&claims, "groups"), Some(&json!("z")));
        assert_eq!(claim(&claims, "realm_access.none"), None);
    }
}
