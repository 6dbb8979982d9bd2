//! Searching the audit: newest first, a page at a time, whatever the number of entries.
//!
//! As with task logs ([`super::logs`]): a search goes by the index that fits its filters best
//! ([`SearchIndex`]), and looks step by step, for a bounded time, for what this index does not know. A page
//! that is not full for this reason names the place from which the next one goes on. Ids are in the
//! order of time, so that `from` and `until` bound what is looked at.

use super::audit::COLUMNS;
use super::conditions::Conditions;
use super::logs::{SCAN_STEP, SCAN_STEPS_MAX, SCAN_TIME};
use super::{Result, SqlStore};
use crate::domain::audit::AuditEntry;
use crate::domain::{AccessScope, IdSource, TenantId, UserId};
use std::time::Instant;

/// An id may be ahead of its entry's time: by little where a node makes many at once, and by as much
/// as the cluster clock was set back. What was written while it was further back than that, ms, a
/// search by `until` need not find.
const AHEAD_MS: i64 = 24 * 3_600_000;

/// Which entries to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Only of this tenant; 0 is the platform.
    pub tenant_id: Option<TenantId>,
    /// Only about the thing of this id.
    pub target_id: Option<String>,
    /// Only about this kind of thing.
    pub target_kind: Option<String>,
    /// Only what this user did.
    pub actor_id: Option<UserId>,
    /// Only this operation.
    pub action: Option<String>,
    /// From this instant on, ms.
    pub from: Option<i64>,
    /// Before this instant, ms.
    pub until: Option<i64>,
    /// With a smaller id.
    pub before: Option<i64>,
    /// At most so many.
    pub limit: u64,
}

/// A page of entries.
#[derive(Debug, Clone, Default)]
pub struct AuditPage {
    /// The entries.
    pub entries: Vec<AuditEntry>,
    /// From where the next page goes on (its `before`); nothing when this is the last.
    pub next: Option<i64>,
}

/// The index that a search goes by; each is in the order of ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchIndex<'a> {
    /// What is about one thing.
    Target(&'a str),
    /// What one user did.
    Actor(UserId),
    /// A tenant's.
    Tenant(TenantId),
    /// All.
    All,
}

impl<'a> SearchIndex<'a> {
    fn of(access_scope: &AccessScope, filter: &'a AuditFilter) -> Self {
        let only = match access_scope {
            AccessScope::Of(places) if places.len() == 1 => Some(places[0].tenant_id),
            _ => None,
        };
        match (&filter.target_id, filter.actor_id, filter.tenant_id.or(only)) {
            (Some(target), ..) => Self::Target(target),
            (_, Some(actor), _) => Self::Actor(actor),
            (.., Some(tenant)) => Self::Tenant(tenant),
            _ => Self::All,
        }
    }

    fn bound(self, wanted: &mut Conditions) {
        match self {
            Self::Target(target) => wanted.and("e.target_id = ", Some(target)),
            Self::Actor(actor) => wanted.and("e.actor_id = ", Some(actor)),
            Self::Tenant(tenant) => wanted.and("e.tenant_id = ", Some(tenant)),
            Self::All => {}
        }
    }

    /// Whether there are conditions that its index does not know.
    fn is_narrow(self, access_scope: &AccessScope, filter: &AuditFilter) -> bool {
        let is_whole = match access_scope {
            AccessScope::All => true,
            AccessScope::Of(places) => {
                matches!((self, &places[..]), (Self::Tenant(tenant), [only]) if only.tenant_id == tenant)
            }
        };
        let tenant = filter.tenant_id.filter(|_| !matches!(self, Self::Tenant(_)));
        let actor = filter.actor_id.filter(|_| !matches!(self, Self::Actor(_)));
        !is_whole
            || tenant.is_some()
            || actor.is_some()
            || filter.target_kind.is_some()
            || filter.action.is_some()
            || filter.from.or(filter.until).is_some()
    }
}

impl SqlStore {
    /// Entries within reach, newest first. The entries of a tenant are the tenant's, whatever app
    /// they are about: who holds the permission in some apps only finds none.
    pub async fn search_audit(&self, access_scope: &AccessScope, filter: &AuditFilter) -> Result<AuditPage> {
        let mut page = AuditPage::default();
        let Some(access_scope) = whole_tenants(access_scope, filter.tenant_id) else { return Ok(page) };
        let way = SearchIndex::of(&access_scope, filter);
        let is_narrow = way.is_narrow(&access_scope, filter);
        let begun = Instant::now();
        let mut rest = filter.clone();
        for _ in 0..SCAN_STEPS_MAX {
            let found = self.look_at_audit(way, &access_scope, &rest, is_narrow).await?;
            rest.limit = rest.limit.saturating_sub(found.len() as u64);
            page.entries.extend(found);
            page.next = match page.entries.last().filter(|_| rest.limit == 0) {
                Some(last) => Some(last.id),
                None if is_narrow => self.audit_scanned_to(way, &rest).await?,
                None => None,
            };
            if rest.limit == 0 || page.next.is_none() || begun.elapsed() > SCAN_TIME {
                break;
            }
            rest.before = page.next;
        }
        Ok(page)
    }

    /// Those of the next entries of a way that fit.
    async fn look_at_audit(
        &self,
        way: SearchIndex<'_>,
        access_scope: &AccessScope,
        filter: &AuditFilter,
        is_narrow: bool,
    ) -> Result<Vec<AuditEntry>> {
        let most = if is_narrow { SCAN_STEP } else { filter.limit };
        let (found, values) = scan(way, filter).limited("ORDER BY e.id DESC", most);
        // First the index, then the entries.
        let join = self.backend.join_in_order();
        let text = format!(
            "SELECT {COLUMNS} FROM (SELECT e.id FROM audit_entry e WHERE {found}) s {join} audit_entry e ON e.id = s.id \
             WHERE 1 = 1"
        );
        let mut wanted = Conditions::new(text, values);
        wanted.within(access_scope, "e.tenant_id", None);
        wanted.and("e.tenant_id = ", filter.tenant_id);
        wanted.and("e.target_kind = ", filter.target_kind.clone());
        wanted.and("e.actor_id = ", filter.actor_id);
        wanted.and("e.action = ", filter.action.clone());
        wanted.and("e.at >= ", filter.from);
        wanted.and("e.at < ", filter.until);
        let statement = wanted.finish(self, "ORDER BY e.id DESC", filter.limit);
        self.query_raw("search the audit", statement).await
    }

    /// Where a bounded look ended; nothing when it saw everything there is.
    async fn audit_scanned_to(&self, way: SearchIndex<'_>, filter: &AuditFilter) -> Result<Option<i64>> {
        let scan = scan(way, filter);
        let head = format!("SELECT e.id FROM audit_entry e WHERE {}", scan.text);
        let last = Conditions::new(head, scan.into_values());
        let statement = last.finish_as(self, &format!("ORDER BY e.id DESC LIMIT 1 OFFSET {}", SCAN_STEP - 1));
        Ok(self.query_raw("search the audit", statement).await?.into_iter().next())
    }
}

/// The entries that the way's index finds from the filter's place on.
fn scan(way: SearchIndex<'_>, filter: &AuditFilter) -> Conditions {
    let mut scan = Conditions::new("1 = 1".to_owned(), Vec::new());
    way.bound(&mut scan);
    scan.and("e.id >= ", filter.from.map(IdSource::first_at::<i64>));
    scan.and(
        "e.id < ",
        filter.until.map(|until| IdSource::first_at::<i64>(until.saturating_add(AHEAD_MS)).saturating_add(1)),
    );
    scan.and("e.id < ", filter.before);
    scan
}

/// The reach without tenants of which it holds only some apps, and with none but the one that is
/// asked for; nothing when no tenant is left.
fn whole_tenants(access_scope: &AccessScope, tenant_id: Option<TenantId>) -> Option<AccessScope> {
    let AccessScope::Of(places) = access_scope else { return Some(AccessScope::All) };
    let is_asked = |id: TenantId| tenant_id.is_none_or(|tenant| tenant == id);
    let whole: Vec<_> =
        places.iter().filter(|place| place.apps.is_empty() && is_asked(place.tenant_id)).cloned().collect();
    (!whole.is_empty()).then_some(AccessScope::Of(whole))
}
