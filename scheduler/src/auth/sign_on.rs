//! Single sign-on: the user that the provider names, the account that belongs to them, and the
//! permissions of their groups. `oidc` talks to the provider.

use super::authenticator::{Authenticator, Denied};
use crate::domain::access::{BUILT_IN, BY_GROUP, PLATFORM, is_user_name};
use crate::domain::audit::{Actor, AuditNote, Target};
use crate::domain::{AccessScope, Action, AppId, GrantId, RoleId, TenantId, UserId};
use crate::store::{AppFilter, GrantView, NewGrant, RoleFilter, StoreErrorKind, UserFilter, UserRow, UserView};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use url::{Host, Url};

/// Longest stored issuer with subject, characters.
const SUBJECT_CHARS_MAX: usize = 191;

/// `[auth.oidc]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignOnSettings {
    /// The provider's issuer URL; empty: no single sign-on.
    pub issuer: String,
    /// Id of this client at the provider.
    pub client_id: String,
    /// Secret of this client.
    pub client_secret: SecretString,
    /// Where it sends people back to: `https://…/api/v1/login/oidc/callback`.
    pub redirect_url: String,
    /// Name shown on the sign-in page.
    pub name: String,
    /// Asked for besides `openid`.
    pub scopes: Vec<String>,
    /// The claim that names a new account.
    pub user_claim: String,
    /// The claim that lists groups.
    pub groups_claim: String,
    /// What groups may do.
    pub grants: Vec<GroupGrant>,
}

/// What a group is granted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupGrant {
    /// As the provider calls the group.
    pub group: String,
    /// Name of the role.
    pub role: String,
    /// Name of the tenant where it holds; on the whole platform when absent.
    #[serde(default)]
    pub tenant: Option<String>,
    /// Only in these apps of the tenant; none are all.
    #[serde(default)]
    pub apps: Vec<String>,
}

impl SignOnSettings {
    /// Whether there is single sign-on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.issuer.is_empty()
    }

    /// Whether browsers come back over TLS, and so reach this node by it.
    #[must_use]
    pub fn leads_back_over_tls(&self) -> bool {
        self.is_on() && self.redirect_url.starts_with("https:")
    }

    /// What of the settings cannot be used.
    #[must_use]
    pub fn contradiction(&self) -> Option<&'static str> {
        if !self.is_on() {
            return None;
        }
        let rules = [
            (is_safe(&self.issuer), "auth.oidc.issuer must be an https:// URL (http:// on loopback only)"),
            (
                is_safe(&self.redirect_url) && self.redirect_url.ends_with("/api/v1/login/oidc/callback"),
                "auth.oidc.redirect_url must be https://<where browsers find this node>/api/v1/login/oidc/callback",
            ),
            (!self.client_id.is_empty(), "auth.oidc.client_id must be given"),
            (!self.client_secret.expose_secret().is_empty(), "auth.oidc.client_secret must be given"),
            (
                !self.user_claim.is_empty() && !self.groups_claim.is_empty(),
                "auth.oidc.user_claim and groups_claim must name claims",
            ),
            (
                self.grants.iter().all(|grant| grant.tenant.is_some() || grant.apps.is_empty()),
                "auth.oidc.grants: apps need the tenant that they belong to",
            ),
        ];
        rules.iter().find(|(holds, _)| !holds).map(|(_, rule)| *rule)
    }
}

/// Whether what is sent there stays secret on its way.
fn is_safe(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let is_near = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    url.scheme() == "https" || (url.scheme() == "http" && is_near)
}

/// The user that the provider names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Issuer and subject: permanent and unique to the user.
    pub subject: String,
    /// What a new account would be called.
    pub name: String,
    /// Display name.
    pub display_name: String,
    /// The user's groups.
    pub groups: Vec<String>,
}

/// What the browser keeps between the two steps.
#[derive(Debug)]
pub struct Pending {
    /// What the provider sends back.
    pub state: String,
    /// What the identity must contain.
    pub nonce: String,
    /// What shows that it is still us.
    pub verifier: String,
}

/// Where and when a user signs on.
pub struct SignOnContext<'a> {
    /// Address of the browser.
    pub address: &'a str,
    /// Cluster ms.
    pub now: i64,
    /// Makes ids.
    pub next_id: &'a (dyn Fn() -> i64 + Sync),
}

/// A grant that follows from a group: role, tenant, apps.
type Wanted = (RoleId, TenantId, Vec<AppId>);

impl Authenticator {
    /// The account of the user that the provider names, with the current grants of their groups: grants
    /// from groups that they have left are revoked, those by an admin stay. A user without any grant is
    /// refused.
    pub async fn by_identity(
        &self,
        identity: &Identity,
        settings: &SignOnSettings,
        occasion: &SignOnContext<'_>,
    ) -> Result<UserView, Denied> {
        if identity.subject.chars().count() > SUBJECT_CHARS_MAX {
            return Err(Denied::NoAccount(format!("issuer and subject have more than {SUBJECT_CHARS_MAX} characters")));
        }
        let wanted = self.granted(settings, &identity.groups).await?;
        let user = match self.by_subject(&identity.subject).await? {
            Some(user) => user,
            None if wanted.is_empty() => return Err(Denied::NoAccount(no_group(settings))),
            None => match self.make_account(identity, settings, &wanted, occasion).await {
                // Another node has just made it, or another user has the name.
                Err(Denied::Store(error)) if error.kind() == StoreErrorKind::Duplicate => {
                    self.by_subject(&identity.subject).await?.ok_or_else(|| Denied::NoAccount(taken(&identity.name)))?
                }
                made => made?,
            },
        };
        if user.disabled {
            return Err(Denied::NoAccount("the account is disabled".to_owned()));
        }
        let user = self.follow_groups(user, settings, wanted, occasion).await?;
        if user.grants.is_empty() {
            return Err(Denied::NoAccount(no_group(settings)));
        }
        Ok(user)
    }

    async fn by_subject(&self, subject: &str) -> Result<Option<UserView>, Denied> {
        let filter = UserFilter { subject: Some(subject.to_owned()), limit: 1, ..UserFilter::default() };
        Ok(self.store.list_users(&AccessScope::All, &filter).await?.into_iter().next())
    }

    /// What these groups are granted: of what no longer exists the log tells, and nothing is granted.
    async fn granted(&self, settings: &SignOnSettings, groups: &[String]) -> Result<Vec<Wanted>, Denied> {
        let mut wanted: Vec<Wanted> = Vec::new();
        for grant in settings.grants.iter().filter(|grant| groups.contains(&grant.group)) {
            let Some((role_id, tenant_id, apps)) = self.resolve(grant).await? else {
                tracing::error!(?grant, "auth.oidc.grants names a role, tenant or app that does not exist");
                continue;
            };
            match wanted.iter_mut().find(|(role, tenant, _)| (*role, *tenant) == (role_id, tenant_id)) {
                None => wanted.push((role_id, tenant_id, apps)),
                // No apps are all of them.
                Some((.., all)) if all.is_empty() || apps.is_empty() => all.clear(),
                Some((.., others)) => others.extend(apps),
            }
        }
        for (.., apps) in &mut wanted {
            apps.sort_unstable();
            apps.dedup();
        }
        Ok(wanted)
    }

    async fn resolve(&self, grant: &GroupGrant) -> Result<Option<Wanted>, Denied> {
        let tenant_id = match &grant.tenant {
            None => PLATFORM,
            Some(name) => match self.store.list_tenants(&AccessScope::All, Some(name), "", 1).await?.first() {
                Some(tenant) => tenant.id,
                None => return Ok(None),
            },
        };
        let mut apps = Vec::new();
        for name in &grant.apps {
            let filter = AppFilter { name: Some(name.clone()), limit: 1, ..AppFilter::default() };
            match self.store.list_apps(&AccessScope::tenant(tenant_id), &filter).await?.first() {
                Some(app) => apps.push(app.id),
                None => return Ok(None),
            }
        }
        let built_in = BUILT_IN.iter().find(|role| role.name == grant.role).map(|role| role.id);
        let role_id = match built_in {
            Some(id) => Some(id),
            None => self.role_of(tenant_id, &grant.role).await?,
        };
        Ok(role_id.map(|role_id| (role_id, tenant_id, apps)))
    }

    /// The role of that name that can be granted there, the tenant's own first.
    async fn role_of(&self, tenant_id: TenantId, name: &str) -> Result<Option<RoleId>, Denied> {
        // One of the tenant and one of the platform have it at most.
        let filter = RoleFilter { name: Some(name.to_owned()), limit: 2, ..RoleFilter::default() };
        let roles = self.store.list_roles(&AccessScope::tenant(tenant_id), &filter).await?;
        Ok(roles.iter().max_by_key(|role| role.tenant_id == tenant_id).map(|role| role.id))
    }

    async fn make_account(
        &self,
        identity: &Identity,
        settings: &SignOnSettings,
        wanted: &[Wanted],
        occasion: &SignOnContext<'_>,
    ) -> Result<UserView, Denied> {
        if !is_user_name(&identity.name) {
            let (claim, name) = (&settings.user_claim, &identity.name);
            let why =
                format!("`{name}` (claim {claim}) cannot be an account's name; auth.oidc.user_claim names another");
            return Err(Denied::NoAccount(why));
        }
        // A user with grants in one tenant only is managed by its admins.
        let tenant_id = match wanted {
            [(_, only, _), others @ ..] if others.iter().all(|(_, tenant, _)| tenant == only) => *only,
            _ => PLATFORM,
        };
        let row = UserRow {
            id: (occasion.next_id)().into(),
            name: identity.name.clone(),
            display_name: identity.display_name.chars().filter(|c| !c.is_control()).take(100).collect(),
            tenant_id,
            password_hash: String::new(),
            must_change: false,
            disabled: false,
            subject: identity.subject.clone(),
        };
        let grants: Vec<NewGrant> = wanted.iter().map(|wanted| new_grant(row.id, wanted, occasion)).collect();
        let about = Target { kind: "user", id: row.id.to_string(), name: row.name.clone() };
        let after = serde_json::json!({ "name": row.name, "subject": row.subject }).to_string();
        let mut notes = vec![note(settings, occasion, Action::CreateUser, tenant_id, &about, (None, Some(after)))];
        notes.extend(grants.iter().map(|grant| {
            note(settings, occasion, Action::CreateGrant, grant.tenant_id, &about, (None, Some(told_new(grant))))
        }));
        self.store.noting(notes).create_user(&row, &grants, occasion.now).await?;
        self.by_subject(&row.subject).await?.ok_or(Denied::Unknown)
    }

    /// Revokes what no group of the user grants any more, and grants what one does.
    async fn follow_groups(
        &self,
        user: UserView,
        settings: &SignOnSettings,
        mut wanted: Vec<Wanted>,
        occasion: &SignOnContext<'_>,
    ) -> Result<UserView, Denied> {
        let mut taken: Vec<&GrantView> = Vec::new();
        for grant in &user.grants {
            let same = wanted.iter().position(|(role, tenant, apps)| {
                (*role, *tenant) == (grant.role_id, grant.tenant_id) && (!grant.by_group || *apps == grant.apps)
            });
            match same {
                // What an admin granted stays unchanged.
                Some(at) => drop(wanted.swap_remove(at)),
                None if grant.by_group => taken.push(grant),
                None => {}
            }
        }
        if taken.is_empty() && wanted.is_empty() {
            return Ok(user);
        }
        let about = Target { kind: "user", id: user.id.to_string(), name: user.name.clone() };
        let given: Vec<NewGrant> = wanted.iter().map(|wanted| new_grant(user.id, wanted, occasion)).collect();
        let mut notes = Vec::new();
        for grant in &taken {
            let before = told(grant.role_id, &grant.apps);
            notes.push(note(settings, occasion, Action::DeleteGrant, grant.tenant_id, &about, (Some(before), None)));
        }
        for grant in &given {
            let after = told_new(grant);
            notes.push(note(settings, occasion, Action::CreateGrant, grant.tenant_id, &about, (None, Some(after))));
        }
        let taken: Vec<GrantId> = taken.iter().map(|grant| grant.id).collect();
        match self.store.noting(notes).regrant(user.id, &taken, &given, occasion.now).await {
            // Another login of the same user was faster.
            Err(error) if error.kind() == StoreErrorKind::Duplicate => {}
            done => done?,
        }
        self.by_subject(&user.subject).await?.ok_or(Denied::Unknown)
    }
}

fn new_grant(user_id: UserId, (role_id, tenant_id, apps): &Wanted, occasion: &SignOnContext<'_>) -> NewGrant {
    NewGrant {
        id: (occasion.next_id)().into(),
        user_id,
        role_id: *role_id,
        tenant_id: *tenant_id,
        apps: apps.clone(),
        created_by: BY_GROUP,
    }
}

fn told_new(grant: &NewGrant) -> String {
    told(grant.role_id, &grant.apps)
}

/// What the audit says of a grant.
fn told(role_id: RoleId, apps: &[AppId]) -> String {
    let apps: Vec<String> = apps.iter().map(ToString::to_string).collect();
    serde_json::json!({ "role_id": role_id.to_string(), "apps": apps, "from_group": true }).to_string()
}

/// It is the provider who says so.
fn note(
    settings: &SignOnSettings,
    occasion: &SignOnContext<'_>,
    action: Action,
    tenant_id: TenantId,
    target: &Target,
    (before, after): (Option<String>, Option<String>),
) -> AuditNote {
    let name: String = settings.issuer.chars().take(SUBJECT_CHARS_MAX).collect();
    let actor = Actor { kind: "oidc", id: UserId::NONE, name, address: occasion.address.to_owned() };
    let id = (occasion.next_id)();
    AuditNote { id, tenant_id, at: occasion.now, actor, action, target: target.clone(), before, after }
}

fn no_group(settings: &SignOnSettings) -> String {
    format!("none of your groups (claim {}) is granted anything here (auth.oidc.grants)", settings.groups_claim)
}

fn taken(name: &str) -> String {
    format!("there is another account `{name}`, which signs in with a password; an admin can delete it")
}
