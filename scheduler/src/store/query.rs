//! Statements that sea-orm's query builder makes go the same way as those that are written out: counted, bounded in
//! time, errors classified once.

use super::sql_store::{Transaction, read_all};
use super::{Result, SqlStore};
use sea_orm::sea_query::{Asterisk, ExprTrait, Func, OnConflict};
use sea_orm::{
    DatabaseBackend, DbErr, FromQueryResult, IntoActiveModel, ModelTrait, PartialModelTrait, QueryResult, Select,
    Statement, TryGetable,
};

// What a file with such queries needs.
pub(super) use sea_orm::sea_query::Expr;
pub(super) use sea_orm::{
    ColumnTrait, Condition, DerivePartialModel, EntityTrait, JoinType, QueryFilter, QueryOrder, QuerySelect,
    QueryTrait, RelationTrait, Set,
};

/// One more than what is there.
pub(super) fn next<C: ColumnTrait>(column: C) -> Expr {
    Expr::col(column).add(1)
}

/// The text that is there, or none.
pub(super) fn or_empty<C: ColumnTrait>(column: C) -> Expr {
    Func::coalesce([column.into_expr(), Expr::val("")]).into()
}

/// A row that is there already is left alone; `key` says which.
pub(super) fn unless_there<C: ColumnTrait>(key: impl IntoIterator<Item = C> + Clone) -> OnConflict {
    OnConflict::columns(key.clone()).do_nothing_on(key).to_owned()
}

/// Where statements go: into a transaction, or each by itself ([`SqlStore::at`]).
pub(super) trait Queries {
    fn backend(&self) -> DatabaseBackend;

    /// Rows of a statement.
    async fn rows<T>(
        &self,
        statement: Statement,
        read: impl Fn(&QueryResult) -> std::result::Result<T, DbErr>,
    ) -> Result<Vec<T>>;

    /// Rows affected by a statement.
    async fn send(&self, statement: Statement) -> Result<u64>;

    /// Rows affected by an INSERT, UPDATE or DELETE.
    async fn run(&self, change: &impl QueryTrait) -> Result<u64> {
        self.send(change.build(self.backend())).await
    }

    /// Writes a new row.
    async fn insert<M>(&self, row: M) -> Result<()>
    where
        M: ModelTrait + IntoActiveModel<<M::Entity as EntityTrait>::ActiveModel>,
    {
        self.run(&M::Entity::insert(row.into_active_model())).await.map(drop)
    }

    /// What `select` selects.
    async fn read<M: FromQueryResult>(&self, select: &impl QueryTrait) -> Result<Vec<M>> {
        self.rows(select.build(self.backend()), |row| M::from_query_result(row, "")).await
    }

    /// The columns of `M`.
    async fn all<M: PartialModelTrait, E: EntityTrait>(&self, select: Select<E>) -> Result<Vec<M>> {
        self.read(&M::select_cols(select.select_only())).await
    }

    /// The columns of `M`, of the first row.
    async fn one<M: PartialModelTrait, E: EntityTrait>(&self, select: Select<E>) -> Result<Option<M>> {
        Ok(self.all(select.limit(1)).await?.pop())
    }

    /// One column.
    async fn column<T: TryGetable, E: EntityTrait>(
        &self,
        select: Select<E>,
        column: impl ColumnTrait,
    ) -> Result<Vec<T>> {
        let select = select.select_only().column(column);
        self.rows(select.build(self.backend()), |row| row.try_get_by_index(0)).await
    }

    /// Whether there is any row.
    async fn any<E: EntityTrait>(&self, select: Select<E>) -> Result<bool> {
        let select = select.select_only().expr(Expr::val(1)).limit(1);
        Ok(!self.rows(select.build(self.backend()), |_| Ok(())).await?.is_empty())
    }

    /// How many rows there are.
    async fn count<E: EntityTrait>(&self, select: Select<E>) -> Result<i64> {
        let select = select.select_only().expr(Func::count(Expr::col(Asterisk)));
        let counted = self.rows(select.build(self.backend()), |row| row.try_get_by_index(0)).await?;
        Ok(counted.into_iter().next().unwrap_or(0))
    }
}

/// Statements outside of a transaction, for one purpose.
pub(super) struct At<'a> {
    store: &'a SqlStore,
    action: &'static str,
}

impl SqlStore {
    /// Statements outside of a transaction; `action` says in errors what was being done.
    pub(super) fn at(&self, action: &'static str) -> At<'_> {
        At { store: self, action }
    }
}

impl Queries for At<'_> {
    fn backend(&self) -> DatabaseBackend {
        self.store.backend.backend()
    }

    async fn rows<T>(
        &self,
        statement: Statement,
        read: impl Fn(&QueryResult) -> std::result::Result<T, DbErr>,
    ) -> Result<Vec<T>> {
        read_all(self.action, &self.store.fetch(self.action, statement).await?, read)
    }

    async fn send(&self, statement: Statement) -> Result<u64> {
        self.store.execute_raw(self.action, statement).await
    }
}

impl Queries for Transaction<'_> {
    fn backend(&self) -> DatabaseBackend {
        self.store.backend.backend()
    }

    async fn rows<T>(
        &self,
        statement: Statement,
        read: impl Fn(&QueryResult) -> std::result::Result<T, DbErr>,
    ) -> Result<Vec<T>> {
        read_all(self.action(), &self.fetch(statement).await?, read)
    }

    async fn send(&self, statement: Statement) -> Result<u64> {
        self.execute_raw(statement).await
    }
}
