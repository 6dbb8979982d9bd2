//! Signing in with name and password, for scripts that do as the admin's page did: a session of ours in the cookie that they
//! send back.

use super::asked::Asked;
use super::reply::{Dialect, Refused};
use super::visitor::{COOKIES, Visitor};
use crate::api::Api;
use crate::api::account::{begin_session, caller, end_own_session, known_user};
use crate::api::client_address::client_address;
use actix_web::HttpRequest;
use actix_web::cookie::time::Duration;
use actix_web::cookie::{Cookie, SameSite};

/// Where scripts sign in.
pub const PATHS: [(&str, Dialect); 2] = [("/login", Dialect::Content), ("/auth/doLogin", Dialect::Data)];

/// Where they sign out.
pub const PATHS_OUT: [(&str, Dialect); 2] = [("/logout", Dialect::Content), ("/auth/logout", Dialect::Data)];

/// Begins a session for a user of a tenant; answers its token.
pub async fn sign_in(api: &Api, request: &HttpRequest, asked: &Asked) -> Result<String, Refused> {
    let required = |name: &'static str| {
        let text = asked.text(name)?.filter(|text| !text.is_empty());
        text.ok_or_else(|| Refused::field(name, "it is required"))
    };
    let (name, password) = (required("userName")?, required("password")?);
    let user = known_user(api, request, &name, &password).await?;
    Visitor::of(caller(&user, &client_address(api, request))).may_ask(request)?;
    Ok(begin_session(api, request, user).await?.token)
}

/// Ends the session that the visitor has signed in with.
pub async fn sign_out(api: &Api, visitor: &Visitor) -> Result<(), Refused> {
    Ok(end_own_session(api, &visitor.caller).await?)
}

/// The cookie of a session. Pages of other sites never have it sent: a form of theirs changes nothing.
pub fn cookie(api: &Api, dialect: Dialect, token: String) -> Cookie<'static> {
    let name = match dialect {
        Dialect::Content => COOKIES[0],
        Dialect::Data => COOKIES[1],
    };
    Cookie::build(name, token).path("/").http_only(true).same_site(SameSite::Strict).secure(api.secure_cookie).finish()
}

/// Has it forgotten.
pub fn no_cookie(api: &Api, dialect: Dialect) -> Cookie<'static> {
    let mut cookie = cookie(api, dialect, String::new());
    cookie.set_max_age(Duration::ZERO);
    cookie
}
