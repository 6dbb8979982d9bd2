//! Signing in somewhere else: what a browser keeps while it is led there and back, how it is led on, and what it learns of a
//! failure. A browser that shows a page learns of it on the console's sign-in page, other clients by a problem document.

use super::Api;
use super::account::cookie;
use super::console::Console;
use super::problem::Problem;
use super::refusal::RequestRefusal;
use crate::auth::{Denied, LoginContext};
use crate::domain::audit::AuditNote;
use crate::store::UserView;
use actix_web::cookie::time::Duration;
use actix_web::cookie::{Cookie, SameSite};
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use carillon_protocol::sign::matches;
use url::form_urlencoded;

/// Time for all steps.
const STEPS_MAX: Duration = Duration::minutes(10);

/// Longest return path, characters.
const RETURN_CHARS_MAX: usize = 500;

/// What a browser keeps between the steps: four words, of which the first one is the state.
pub struct PendingSignIn {
    /// Name of the cookie.
    pub cookie: &'static str,
    /// Path of all steps; the cookie goes nowhere else.
    pub path: &'static str,
    /// Which of the words is the return path, from 0.
    pub place_of_return_path: usize,
}

impl PendingSignIn {
    /// Keeps the words.
    pub fn keep(&self, api: &Api, words: [&str; 4]) -> Cookie<'static> {
        // Cookies are read unescaped. Neither a return path nor what is drawn at random has a `~`.
        let words = words.map(|word| form_urlencoded::byte_serialize(word.as_bytes()).collect::<String>());
        self.of(api, words.join("~"), STEPS_MAX)
    }

    fn of(&self, api: &Api, value: String, age: Duration) -> Cookie<'static> {
        Cookie::build(self.cookie, value)
            .path(self.path)
            .http_only(true)
            // Another site's page leads back here.
            .same_site(SameSite::Lax)
            .secure(api.secure_cookie)
            .max_age(age)
            .finish()
    }

    /// The words that this browser was sent away with. An answer to another browser's request is refused, so that no one is signed
    /// in as someone else without noticing.
    pub fn kept(&self, request: &HttpRequest, state: Option<&str>) -> Result<[String; 4], Failure> {
        let gone = |word| {
            let detail =
                "this browser did not start this sign-in, or started it more than ten minutes ago; begin again";
            move || Failure::new(word, refused(detail))
        };
        let kept = request.cookie(self.cookie).ok_or_else(gone("expired"))?;
        let another = gone("state");
        let words: Vec<String> = kept.value().splitn(4, '~').map(str::to_owned).collect();
        let words: [String; 4] = words.try_into().map_err(|_| another())?;
        let leads_here = words.get(self.place_of_return_path).is_some_and(|path| is_here(path));
        if words[0].is_empty() || !matches(&words[0], state.unwrap_or_default()) || !leads_here {
            return Err(another());
        }
        Ok(words)
    }

    /// Starts a session of `user`, of whom `note` tells, and leads to the return path.
    pub async fn end(
        &self,
        api: &Api,
        request: &HttpRequest,
        (address, return_to): (&str, String),
        user: UserView,
        note: AuditNote,
    ) -> Result<HttpResponse, Failure> {
        let agent = request.headers().get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        let now = api.engine.clock.now_ms();
        let visit = LoginContext { address, agent: agent.unwrap_or_default(), number: api.engine.ids.next(now) };
        let signed_in = api.authenticator.begin(user, &visit, note, now).await?;
        Ok(HttpResponse::SeeOther()
            .cookie(cookie(api, signed_in.token))
            .cookie(self.of(api, String::new(), Duration::ZERO))
            .insert_header((header::LOCATION, return_to))
            .finish())
    }
}

/// Why a user is not signed in: the word in `/sign-in?error=…` (the OpenAPI document lists them; pages know them),
/// and the problem for other clients.
pub struct Failure {
    word: &'static str,
    problem: Problem,
}

impl Failure {
    /// Of a word and a problem.
    pub fn new(word: &'static str, problem: Problem) -> Self {
        Self { word, problem }
    }

    /// A redirect for a browser that shows a page, if there is a console; otherwise the problem.
    pub fn answer(self, console: &Console, request: &HttpRequest, address: &str) -> HttpResponse {
        let Self { word, problem } = self;
        if !console.is_there() || !shows_a_page(request) {
            return problem.error_response();
        }
        if word != TOO_MANY {
            tracing::info!(address, word, detail = %problem, "single sign-on failed");
        }
        HttpResponse::SeeOther().insert_header((header::LOCATION, format!("/sign-in?error={word}"))).finish()
    }
}

const TOO_MANY: &str = "too_many";

impl From<Denied> for Failure {
    fn from(denied: Denied) -> Self {
        let word = match denied {
            Denied::TooMany(_) => TOO_MANY,
            Denied::Unknown | Denied::Expired(_) | Denied::WrongPassword | Denied::NoAccount(_) => "not_allowed",
            Denied::Store(_) | Denied::Password(_) | Denied::Random(_) => "unavailable",
        };
        Self::new(word, denied.into())
    }
}

/// Why nobody is signed in, in words.
pub fn refused(detail: &str) -> Problem {
    RequestRefusal::SignOnRefused { detail: detail.to_owned() }.into()
}

/// Whether the browser will show the response as a page.
fn shows_a_page(request: &HttpRequest) -> bool {
    let says = |name: &str, words: &str| {
        request.headers().get(name).and_then(|value| value.to_str().ok()).is_some_and(|value| value.contains(words))
    };
    says("sec-fetch-mode", "navigate") || says(header::ACCEPT.as_str(), "text/html")
}

/// Whether a path stays on this node: browsers take `//` and `/\` for another host.
pub fn is_here(path: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "/-._?=&%#+:@!".contains(c);
    path.starts_with('/')
        && !path.starts_with("//")
        && path.chars().count() <= RETURN_CHARS_MAX
        && path.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::is_here;

    #[test]
    fn the_way_back_leads_nowhere_else() {
        for path in ["/", "/tasks", "/tasks?tenant=retail&name=a%20b#log"] {
            assert!(is_here(path), "{path}");
        }
        let long = format!("/{}", "a".repeat(500));
        for path in ["", "tasks", "//evil.example", "/\\evil.example", "https://evil.example", "/a~b", "/a\r\nb", &long]
        {
            assert!(!is_here(path), "{path}");
        }
    }
}
