//! Conditions that filters and the caller's access scope put on queries: on those of sea-orm's builder ([`within`],
//! [`holds`]), and on those that are written out ([`Conditions`]).

use super::SqlStore;
use super::statement::Sql;
use crate::domain::AccessScope;
use crate::domain::access::TenantScope;
use sea_orm::sea_query::{BinOper, Expr, ExprTrait, Func};
use sea_orm::{ColumnTrait, Condition, Statement, Value};

/// Only rows within the scope ([`AccessScope::alternatives`]).
pub(super) fn within<C: ColumnTrait>(access_scope: &AccessScope, tenant: C, app: Option<C>) -> Condition {
    let Some(scopes) = access_scope.alternatives(app.is_some()) else { return Condition::all() };
    any(scopes.into_iter().map(|scope| {
        let tenant = tenant.eq(scope.tenant_id);
        match app {
            Some(app) if !scope.apps.is_empty() => tenant.and(app.is_in(scope.apps.iter().copied())),
            _ => tenant,
        }
    }))
}

/// Only tenants of which some part lies within reach.
pub(super) fn touching<C: ColumnTrait>(access_scope: &AccessScope, tenant: C) -> Condition {
    let AccessScope::Of(scopes) = access_scope else { return Condition::all() };
    any(scopes.iter().map(|scope| tenant.eq(scope.tenant_id)))
}

/// One of these holds; of none, none does.
fn any(conditions: impl Iterator<Item = Expr>) -> Condition {
    let any = conditions.fold(Condition::any(), Condition::add);
    if any.is_empty() { any.add(Expr::val(1).eq(0)) } else { any }
}

/// One of these columns has this text in it, whatever the case.
pub(super) fn holds<C: ColumnTrait>(columns: &[C], part: &str) -> Condition {
    let part = format!("%{}%", without_wildcards(part));
    let like = |column: &C| {
        let pattern = Expr::expr(Func::lower(part.as_str())).binary(BinOper::Escape, Expr::Constant('!'.into()));
        Expr::expr(Func::lower(column.into_expr())).binary(BinOper::Like, pattern)
    };
    any(columns.iter().map(like))
}

/// A query put together from the filters that are set.
pub(super) struct Conditions {
    pub text: String,
    values: Vec<Value>,
}

impl Conditions {
    pub fn new(text: String, values: Vec<Value>) -> Self {
        Self { text, values }
    }

    pub fn push(&mut self, value: impl Into<Value>) -> usize {
        self.values.push(value.into());
        self.values.len()
    }

    pub fn and<V: Into<Value>>(&mut self, condition: &str, value: Option<V>) {
        if let Some(value) = value {
            let at = self.push(value);
            self.text = format!("{} AND {condition}{{{at}}}", self.text);
        }
    }

    /// Only rows within the scope ([`AccessScope::alternatives`]).
    pub fn within(&mut self, access_scope: &AccessScope, tenant: &str, app: Option<&str>) {
        let Some(scopes) = access_scope.alternatives(app.is_some()) else { return };
        let any: Vec<String> = scopes.into_iter().map(|scope| self.of_scope(scope, tenant, app)).collect();
        let any = if any.is_empty() { "1 = 0".to_owned() } else { any.join(" OR ") };
        self.text = format!("{} AND ({any})", self.text);
    }

    fn of_scope(&mut self, scope: &TenantScope, tenant: &str, app: Option<&str>) -> String {
        let tenant = format!("{tenant} = {{{}}}", self.push(scope.tenant_id));
        match app {
            Some(app) if !scope.apps.is_empty() => {
                let apps: Vec<String> = scope.apps.iter().map(|id| format!("{{{}}}", self.push(*id))).collect();
                format!("{tenant} AND {app} IN ({})", apps.join(", "))
            }
            _ => tenant,
        }
    }

    /// The values, in the order of their markers.
    pub fn into_values(self) -> Vec<Value> {
        self.values
    }

    /// One of these columns has this text in it, whatever the case; nothing narrows nothing.
    pub fn and_holds(&mut self, columns: &[&str], part: Option<&str>) {
        let Some(part) = part else { return };
        let at = self.push(format!("%{}%", without_wildcards(part)));
        let like = |column: &&str| format!("LOWER({column}) LIKE LOWER({{{at}}}) ESCAPE '!'");
        let any: Vec<String> = columns.iter().map(like).collect();
        self.text = format!("{} AND ({})", self.text, any.join(" OR "));
    }

    /// Text and values with an end to how many rows there are.
    pub fn limited(mut self, order: &str, limit: u64) -> (String, Vec<Value>) {
        let at = self.push(limit);
        (format!("{} {order} LIMIT {{{at}}}", self.text), self.values)
    }

    /// The statement as it stands, with `end` at its end.
    pub fn finish_as(self, store: &SqlStore, end: &str) -> Statement {
        Sql::new(store.backend, &format!("{} {end}", self.text)).bind_all(self.values)
    }

    pub fn finish(self, store: &SqlStore, order: &str, limit: u64) -> Statement {
        let (text, values) = self.limited(order, limit);
        Sql::new(store.backend, &text).bind_all(values)
    }
}

/// Text that `LIKE … ESCAPE '!'` takes as it stands; PostgreSQL refuses NUL.
fn without_wildcards(text: &str) -> String {
    super::values::clean(text).replace('!', "!!").replace('%', "!%").replace('_', "!_")
}
