use super::*;
use crate::domain::{AppId, TenantId};
use proptest::prelude::*;

fn app_ids(apps: &[i64]) -> Vec<AppId> {
    apps.iter().copied().map(AppId).collect()
}

fn holds(access: &Access, permission: Permission, tenant_id: i64, app_id: i64) -> bool {
    access.holds(permission, TenantId(tenant_id), AppId(app_id))
}

fn grant(words: &[&str], tenant_id: i64, apps: &[i64]) -> Grant {
    let permissions = PermissionSet::parse(words.iter().copied()).unwrap();
    Grant { permissions, tenant_id: TenantId(tenant_id), apps: app_ids(apps) }
}

#[test]
fn the_table_is_in_the_order_of_the_permissions_and_its_words_are_its_own() {
    for (at, (permission, word, ..)) in PERMISSIONS.iter().enumerate() {
        assert_eq!(*permission as usize, at);
        assert_eq!(Permission::parse(word), Some(*permission));
    }
}

#[test]
fn ungranted_permissions_are_denied() {
    let access = Access::new(vec![grant(&["tasks.read"], 7, &[])]);
    assert!(holds(&access, Permission::TasksRead, 7, 70));
    assert!(!holds(&access, Permission::TasksRead, 8, 70));
    assert!(!holds(&access, Permission::TasksEdit, 7, 70));
    assert!(!holds(&access, Permission::TasksRead, PLATFORM.0, 0));
    assert_eq!(Access::default().access_scope(Permission::TasksRead), None);
}

#[test]
fn a_tenant_grants_nothing_of_the_platform() {
    let all = PermissionSet::all();
    let access = Access::new(vec![Grant { permissions: all, tenant_id: TenantId(7), apps: Vec::new() }]);
    assert_eq!(access.access_scope(Permission::NodesRead), None);
    assert!(holds(&access, Permission::UsersEdit, 7, 0));
    assert_eq!(
        access.lacks(&grant(&["tasks.read", "nodes.read"], PLATFORM.0, &[])).words(),
        ["tasks.read", "nodes.read"]
    );
}

#[test]
fn apps_narrow_and_add_up() {
    let access = Access::new(vec![grant(&["tasks.read"], 7, &[71]), grant(&["tasks.read"], 7, &[72])]);
    assert_eq!(
        access.access_scope(Permission::TasksRead),
        Some(AccessScope::Of(vec![TenantScope { tenant_id: TenantId(7), apps: app_ids(&[71, 72]) }]))
    );
    assert!(holds(&access, Permission::TasksRead, 7, 72));
    assert!(!holds(&access, Permission::TasksRead, 7, 73));
    // What belongs to the tenant as a whole is no app's.
    assert!(!holds(&access, Permission::TasksRead, 7, 0));
    assert!(access.lacks(&grant(&["tasks.read"], 7, &[71])).is_empty());
    assert!(!access.lacks(&grant(&["tasks.read"], 7, &[71, 73])).is_empty());
    assert!(!access.lacks(&grant(&["tasks.read"], 7, &[])).is_empty());
}

#[test]
fn a_token_is_never_more_than_its_owner() {
    let owner = Access::everything();
    let token = owner.narrowed(PermissionSet::parse(["tasks.read", "nodes.read"]).unwrap(), TenantId(7));
    assert!(holds(&token, Permission::TasksRead, 7, 1));
    assert!(!holds(&token, Permission::TasksRead, 8, 1));
    assert_eq!(token.access_scope(Permission::NodesRead), None);
    let elsewhere = Access::new(vec![grant(&["tasks.read"], 8, &[])]);
    assert_eq!(elsewhere.narrowed(PermissionSet::all(), TenantId(7)), Access::default());
}

#[test]
fn each_built_in_role_holds_what_the_next_one_holds() {
    for pair in BUILT_IN.windows(2) {
        assert!(pair[1].permissions().without(pair[0].permissions()).is_empty(), "{}", pair[1].name);
    }
    assert_eq!(built_in(PLATFORM_ADMIN).map(BuiltIn::permissions), Some(PermissionSet::all()));
}

fn any_grant() -> impl Strategy<Value = Grant> {
    let set = prop::collection::vec(0..PERMISSIONS.len(), 0..8);
    (set, 0i64..3, prop::collection::vec(1i64..4, 0..3)).prop_map(|(permissions, tenant_id, apps)| Grant {
        permissions: permissions.into_iter().map(|at| PERMISSIONS[at].0).collect(),
        tenant_id: TenantId(tenant_id),
        apps: if tenant_id == PLATFORM.0 { Vec::new() } else { app_ids(&apps) },
    })
}

proptest! {
    #[test]
    fn granting_never_adds_permissions_to_the_granter(
        giver in prop::collection::vec(any_grant(), 0..4),
        given in any_grant(),
    ) {
        let giver = Access::new(giver);
        if giver.lacks(&given).is_empty() {
            let taker = Access::new(vec![given]);
            for (permission, ..) in PERMISSIONS {
                for tenant in 0..3 {
                    for app in 0..4 {
                        prop_assert!(!holds(&taker, *permission, tenant, app) || holds(&giver, *permission, tenant, app));
                    }
                }
            }
        }
    }
}
