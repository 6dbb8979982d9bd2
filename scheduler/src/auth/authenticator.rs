//! Authentication for the management API: by session, API token or the configured token.

use super::caller::Caller;
use super::password::{PasswordError, Passwords, check_password, random_password};
use super::secret::{SESSION_PREFIX, TOKEN_PREFIX, csrf_of, hash_of, new_secret};
use super::throttle::Throttle;
use crate::domain::Action;
use crate::domain::UserId;
use crate::domain::access::{Access, PLATFORM, PLATFORM_ADMIN, built_in, is_user_name};
use crate::domain::audit::{Actor, AuditNote, Target};
use crate::store::{NewGrant, SessionView, SqlStore, StoreError, StoreErrorKind, TokenView, UserRow, UserView};
use crate::store::{Result as StoreResult, UserFilter};
use carillon_protocol::sign::matches;
use serde_json::json;
use std::time::Duration;

/// How long sessions last.
#[derive(Debug, Clone, Copy)]
pub struct SessionTimes {
    /// Unused, ms.
    pub idle_ms: i64,
    /// At most, ms.
    pub max_ms: i64,
}

/// Interval between two records of the use of a session or token, ms.
const TOUCH_MS: i64 = 60_000;

/// Tries to sign in to one account: at once, and then one each …
const ACCOUNT_BURST: u32 = 10;
/// … of this.
const ACCOUNT_EVERY: Duration = Duration::from_secs(30);

/// Tries to sign in from one address: at once, and then one each …
const ADDRESS_BURST: u32 = 30;
/// … of this.
const ADDRESS_EVERY: Duration = Duration::from_secs(5);

/// Steps of single sign-on from one address: at once, and then one each …
const SIGN_ON_BURST: u32 = 200;
/// … of this. There is nothing to guess; this limits the requests to the provider.
const SIGN_ON_EVERY: Duration = Duration::from_secs(1);

/// Name of the first account.
pub const FIRST_USER: &str = "admin";

/// Why a caller is not authenticated.
#[derive(Debug, thiserror::Error)]
pub enum Denied {
    /// Nothing shown, or nothing that is valid (any more).
    #[error("sign in, or send `Authorization: Bearer <token>`")]
    Unknown,
    /// The token was valid until that instant, ms.
    #[error("the token has expired")]
    Expired(i64),
    /// Name and password do not belong together, or the account is disabled.
    #[error("the name or the password is wrong, or the account is disabled")]
    WrongPassword,
    /// Too many tries.
    #[error("too many sign-in attempts; wait {} s", .0.as_secs() + 1)]
    TooMany(Duration),
    /// The provider of single sign-on names the user, but they have no account; why.
    #[error("single sign-on: {0}")]
    NoAccount(String),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Hashing.
    #[error(transparent)]
    Password(#[from] PasswordError),
    /// No random bytes.
    #[error("no random bytes for a session: {0}")]
    Random(getrandom::Error),
}

/// A session that has just begun.
#[derive(Debug)]
pub struct SignedIn {
    /// The session's token; shown once, to its owner.
    pub token: String,
    /// Who.
    pub user: UserView,
    /// When it ends unless it is used, ms.
    pub expires_at: i64,
}

/// Authenticates callers.
pub struct Authenticator {
    pub(super) store: SqlStore,
    /// Hash of the configured token, if there is one.
    configured: Option<String>,
    times: SessionTimes,
    /// Hashes passwords.
    pub passwords: Passwords,
    accounts: Throttle,
    addresses: Throttle,
    sign_ons: Throttle,
}

impl Authenticator {
    /// Over the database; `configured` is `api.token`.
    pub fn new(store: SqlStore, configured: &str, times: SessionTimes) -> Self {
        Self {
            store,
            configured: (!configured.is_empty()).then(|| hash_of(configured)),
            times,
            passwords: Passwords::default(),
            accounts: Throttle::new(ACCOUNT_BURST, ACCOUNT_EVERY),
            addresses: Throttle::new(ADDRESS_BURST, ADDRESS_EVERY),
            sign_ons: Throttle::new(SIGN_ON_BURST, SIGN_ON_EVERY),
        }
    }

    /// The caller with this token; `is_cookie`: the browser sent it automatically as a cookie. Records
    /// its use.
    pub async fn identify(&self, secret: &str, is_cookie: bool, address: &str, now: i64) -> Result<Caller, Denied> {
        self.find_caller(secret, is_cookie, address, now, true).await
    }

    /// The same for a caller that was authenticated before and is idle: it does not count as a use.
    pub async fn look_again(&self, secret: &str, is_cookie: bool, address: &str, now: i64) -> Result<Caller, Denied> {
        self.find_caller(secret, is_cookie, address, now, false).await
    }

    async fn find_caller(
        &self,
        secret: &str,
        is_cookie: bool,
        address: &str,
        now: i64,
        is_use: bool,
    ) -> Result<Caller, Denied> {
        let hash = hash_of(secret);
        if secret.starts_with(SESSION_PREFIX) {
            let (session, caller) = self.by_session(&hash, secret, is_cookie, address, now).await?;
            if is_use && now - session.used_at >= TOUCH_MS {
                let until = (now + self.times.idle_ms).min(session.created_at + self.times.max_ms);
                self.store.touch_session(&hash, now, until).await?;
            }
            return Ok(caller);
        }
        if is_cookie {
            return Err(Denied::Unknown);
        }
        if self.configured.as_ref().is_some_and(|configured| matches(configured, &hash)) {
            let actor =
                Actor { kind: "setting", id: UserId::NONE, name: "api.token".to_owned(), address: address.to_owned() };
            let access = Access::everything();
            return Ok(Caller { actor, access, home_id: PLATFORM, session: None, must_change: false, csrf: None });
        }
        if secret.starts_with(TOKEN_PREFIX) {
            return self.by_token(&hash, address, now, is_use).await;
        }
        Err(Denied::Unknown)
    }

    async fn by_session(
        &self,
        hash: &str,
        secret: &str,
        is_cookie: bool,
        address: &str,
        now: i64,
    ) -> Result<(SessionView, Caller), Denied> {
        let (session, user) = self.store.session(hash, now).await?.ok_or(Denied::Unknown)?;
        let actor = Actor { kind: "user", id: user.id, name: user.name.clone(), address: address.to_owned() };
        let caller = Caller {
            actor,
            access: user.access(),
            home_id: user.tenant_id,
            session: Some(session.hash.clone()),
            must_change: user.must_change,
            csrf: is_cookie.then(|| csrf_of(secret)),
        };
        Ok((session, caller))
    }

    async fn by_token(&self, hash: &str, address: &str, now: i64, is_use: bool) -> Result<Caller, Denied> {
        let (token, user) = self.store.token(hash).await?.ok_or(Denied::Unknown)?;
        // Only who has the secret learns that it was valid.
        if token.expires_at != 0 && token.expires_at <= now {
            return Err(Denied::Expired(token.expires_at));
        }
        if is_use && now - token.used_at >= TOUCH_MS {
            self.store.touch_token(token.id, now).await?;
        }
        let TokenView { name, tenant_id, permissions, .. } = token;
        let name = format!("{} ({name})", user.name);
        let actor = Actor { kind: "token", id: user.id, name, address: address.to_owned() };
        let access = user.access().narrowed(permissions, tenant_id);
        Ok(Caller { actor, access, home_id: user.tenant_id, session: None, must_change: user.must_change, csrf: None })
    }

    /// Lets one more step of a single sign-on pass from that address.
    pub fn admit_sign_on(&self, address: &str) -> Result<(), Denied> {
        self.sign_ons.admit_address(address).map_err(Denied::TooMany)
    }

    /// The user with that name and password, if they may sign in.
    pub async fn by_password(&self, name: &str, password: &str, address: &str) -> Result<UserView, Denied> {
        self.addresses.admit_address(address).map_err(Denied::TooMany)?;
        self.accounts.admit(name).map_err(Denied::TooMany)?;
        let user = if is_user_name(name) { self.find(name).await? } else { None };
        // Asked in any case, so that it takes as long.
        let hash = self.store.password_hash(user.as_ref().map_or(UserId::NONE, |user| user.id)).await?;
        let is_right = self.passwords.matches(password, &hash).await?;
        user.filter(|user| is_right && !user.disabled).ok_or(Denied::WrongPassword)
    }

    /// Starts a session for an authenticated user, and records it in the audit. It is always a new
    /// one: no earlier session of the caller is reused.
    pub async fn begin(
        &self,
        user: UserView,
        from: &LoginContext<'_>,
        note: AuditNote,
        now: i64,
    ) -> Result<SignedIn, Denied> {
        let token = new_secret(SESSION_PREFIX).map_err(Denied::Random)?;
        let session = SessionView {
            hash: hash_of(&token),
            user_id: user.id,
            number: from.number,
            created_at: now,
            used_at: now,
            expires_at: now + self.times.idle_ms.min(self.times.max_ms),
            address: from.address.to_owned(),
            agent: from.agent.chars().take(100).collect(),
        };
        self.store.noting(vec![note]).create_session(&session).await?;
        Ok(SignedIn { token, user, expires_at: session.expires_at })
    }

    /// Whether it is the user's password; throttled like signing in.
    pub async fn is_password_of(&self, user: &UserView, password: &str) -> Result<bool, Denied> {
        self.accounts.admit(&user.name).map_err(Denied::TooMany)?;
        let hash = self.store.password_hash(user.id).await?;
        Ok(self.passwords.matches(password, &hash).await?)
    }

    async fn find(&self, name: &str) -> StoreResult<Option<UserView>> {
        let filter = UserFilter { name: Some(name.to_owned()), limit: 1, ..UserFilter::default() };
        Ok(self.store.list_users(&crate::domain::AccessScope::All, &filter).await?.into_iter().next())
    }

    /// Makes the first account when there is none; returns its password, if it was generated here.
    /// Of several nodes that start at once one makes it; `maker` is this one.
    pub async fn first_user(
        &self,
        configured: &str,
        maker: &Actor,
        new_id: &(dyn Fn() -> i64 + Sync),
        now: i64,
    ) -> StoreResult<Option<String>> {
        let invalid = |detail: String| StoreError::new(StoreErrorKind::Invalid, "make the first user", detail);
        if self.store.has_users().await? {
            return Ok(None);
        }
        let random = random_password().map_err(|error| invalid(error.to_string()))?;
        let password = if configured.is_empty() { &random } else { configured };
        check_password(password, FIRST_USER).map_err(|why| invalid(format!("auth.admin_password: {why}")))?;
        let password_hash = self.passwords.hash(password).await.map_err(|error| invalid(error.to_string()))?;
        let user = UserRow {
            id: new_id().into(),
            name: FIRST_USER.to_owned(),
            display_name: "Administrator".to_owned(),
            tenant_id: PLATFORM,
            password_hash,
            must_change: true,
            disabled: false,
            subject: String::new(),
        };
        let grant = NewGrant {
            id: new_id().into(),
            user_id: user.id,
            role_id: PLATFORM_ADMIN,
            tenant_id: PLATFORM,
            apps: Vec::new(),
            created_by: UserId::NONE,
        };
        let note = |action, after: serde_json::Value| AuditNote {
            id: new_id(),
            tenant_id: PLATFORM,
            at: now,
            actor: maker.clone(),
            action,
            target: Target { kind: "user", id: user.id.to_string(), name: user.name.clone() },
            before: None,
            after: Some(after.to_string()),
        };
        let role = built_in(PLATFORM_ADMIN).map(|role| role.name);
        let notes = vec![
            note(Action::CreateUser, json!({ "name": user.name, "display_name": user.display_name })),
            note(Action::CreateGrant, json!({ "role": role, "tenant": null, "apps": [] })),
        ];
        match self.store.noting(notes).create_user(&user, &[grant], now).await {
            Ok(()) => Ok(configured.is_empty().then_some(random)),
            Err(error) if error.kind() == StoreErrorKind::Duplicate => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Where a session is begun, and with what.
#[derive(Debug, Clone, Copy)]
pub struct LoginContext<'a> {
    /// Address of the caller.
    pub address: &'a str,
    /// Its program.
    pub agent: &'a str,
    /// What the user will call the session by.
    pub number: i64,
}
