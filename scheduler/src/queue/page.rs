//! Who takes up a page of claimable rows.

use crate::domain::{Run, TenantId};
use crate::store::{LEFT_OUT_MAX, LeftOut};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// What one page of claimable rows brought.
#[derive(Debug, Default)]
pub struct Page {
    /// To be claimed.
    pub tried: usize,
    /// Claimed, and in the queue now.
    pub claimed: usize,
    /// Not claimed, because their tenants have enough in memory.
    pub refused: usize,
    /// Rows wanted.
    pub limit: usize,
    /// Rows found.
    pub found: usize,
    /// Whom to leave out, so that the others come in.
    pub heavy: Heavy,
    /// Nothing was claimed: there are missed runs among them, which end in a cheaper way first.
    pub has_missed: bool,
}

/// Tenants that take up pages, each with its rows in them.
#[derive(Debug, Default, Clone)]
pub struct Heavy {
    tenants: BTreeMap<TenantId, usize>,
    /// The highest priority among their rows.
    priority: i32,
}

impl Page {
    /// Whether there may be more behind it.
    pub fn is_full(&self) -> bool {
        self.found >= self.limit
    }

    /// Whether others were faster with all of them, or the database gives nothing to this node: of a restored one that does not know
    /// it, the next page would be the same.
    pub fn is_refused(&self) -> bool {
        self.tried > 0 && self.claimed == 0
    }

    /// Whether the next one would be mostly the same rows.
    pub fn is_stuck(&self) -> bool {
        self.refused * 2 > self.limit
    }
}

impl Heavy {
    /// The tenants of a page that have more of it than the fair share of all tenants that can be left
    /// out and the rest, and those that were refused rows.
    pub fn of(admitted: &[Run], refused: &[Run]) -> Self {
        let mut tenants: BTreeMap<TenantId, usize> = BTreeMap::new();
        for run in admitted.iter().chain(refused) {
            *tenants.entry(run.tenant_id).or_default() += 1;
        }
        let part = (admitted.len() + refused.len()) / (LEFT_OUT_MAX + 1);
        let too_many: BTreeSet<TenantId> = refused.iter().map(|run| run.tenant_id).collect();
        tenants.retain(|tenant, rows| *rows > part || too_many.contains(tenant));
        let theirs = admitted.iter().chain(refused).filter(|run| tenants.contains_key(&run.tenant_id));
        let priority = theirs.map(|run| run.priority).max().unwrap_or_default();
        Self { tenants, priority }
    }

    /// Whether no tenant takes up more than a fair part.
    pub fn is_empty(&self) -> bool {
        self.tenants.is_empty()
    }

    /// Whether all of them can be left out at once.
    pub fn fits(&self) -> bool {
        self.tenants.len() <= LEFT_OUT_MAX
    }

    /// Adds those of another page; returns whether that changes what is left out.
    pub fn join(&mut self, other: &Self) -> bool {
        let before = self.left_out();
        for (tenant, rows) in &other.tenants {
            *self.tenants.entry(*tenant).or_default() += rows;
        }
        self.priority = self.priority.max(other.priority);
        self.left_out() != before
    }

    /// The heaviest of them.
    pub fn left_out(&self) -> LeftOut {
        let mut heaviest: Vec<(TenantId, usize)> = self.tenants.iter().map(|(tenant, rows)| (*tenant, *rows)).collect();
        heaviest.sort_by_key(|(tenant, rows)| (Reverse(*rows), *tenant));
        let mut tenants: Vec<TenantId> = heaviest.into_iter().take(LEFT_OUT_MAX).map(|(tenant, _)| tenant).collect();
        tenants.sort_unstable();
        LeftOut { tenants, priority: self.priority }
    }
}
