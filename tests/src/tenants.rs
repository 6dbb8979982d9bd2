//! Tenants and apps, made past the API.

use carillon::domain::{AccessScope, AppId, Owner, TenantId};
use carillon::store::{AppView, KeyWords, SqlStore, TenantView};
use carillon_protocol::sign::Key;

/// Makes an app, and its tenant if that is new.
pub async fn make_app(store: &SqlStore, [tenant_id, app_id]: [i64; 2], tenant: &str, app: &str) -> Owner {
    let known = store.list_tenants(&AccessScope::All, Some(tenant), "", 1).await.expect("look for the tenant");
    let tenant_id = if let Some(known) = known.first() {
        known.id
    } else {
        let tenant = TenantView {
            id: TenantId(tenant_id),
            name: tenant.to_owned(),
            description: String::new(),
            max_concurrent: 0,
            revision: 1,
            created_at: 1,
        };
        store.create_tenant(&tenant).await.expect("make the tenant");
        TenantId(tenant_id)
    };
    let key = Key { id: format!("key-{app_id}"), secret: "secret".repeat(8) };
    let app = AppView {
        id: AppId(app_id),
        tenant_id,
        tenant: tenant.to_owned(),
        name: app.to_owned(),
        description: String::new(),
        max_concurrent: 0,
        sign_method: None,
        scripts: false,
        revision: 1,
        created_at: 1,
    };
    store.create_app(&app, &key, KeyWords { is_token: false, note: "", created_by: "" }).await.expect("make the app");
    Owner { tenant_id, app_id: AppId(app_id) }
}
