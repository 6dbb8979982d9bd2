//! People who use the management API: made by an admin, signed in by themselves.

use crate::api::{Api, id_of};
use reqwest::Method;
use serde_json::{Value, json};

/// The password of everybody in the tests.
pub const PASSWORD: &str = "five quiet bells at noon";

/// The first password of everybody in the tests, which must be changed.
pub const FIRST_PASSWORD: &str = "two loud horns at night";

/// A user.
#[derive(Debug, Clone)]
pub struct Person {
    /// Id.
    pub id: i64,
    /// Name to sign in with.
    pub name: String,
    /// A client with a session of the user.
    pub api: Api,
}

impl Api {
    /// Begins a session; the client that has it, and what the node answered.
    pub async fn sign_in(&self, name: &str, password: &str) -> (Self, Value) {
        let body = json!({ "name": name, "password": password });
        let answer = self.expect(200, Method::POST, "/login", Some(&body)).await;
        let token = answer["token"].as_str().unwrap_or_else(|| panic!("no token in {answer}"));
        (self.carrying(token), answer)
    }

    /// Makes a user of `tenant` (of the platform when absent), who still has to change their password.
    pub async fn make_new_person(&self, name: &str, tenant: Option<&str>) -> Person {
        let body = json!({ "name": name, "tenant": tenant, "password": FIRST_PASSWORD });
        let made = self.expect(201, Method::POST, "/users", Some(&body)).await;
        let id = id_of(&made["id"]).unwrap_or_else(|| panic!("no id in {made}"));
        let (api, _) = self.sign_in(name, FIRST_PASSWORD).await;
        Person { id, name: name.to_owned(), api }
    }

    /// Makes a user of `tenant` (of the platform when absent) who is granted nothing.
    pub async fn make_person(&self, name: &str, tenant: Option<&str>) -> Person {
        let person = self.make_new_person(name, tenant).await;
        let body = json!({ "current": FIRST_PASSWORD, "new": PASSWORD });
        person.api.expect(204, Method::PUT, "/account/password", Some(&body)).await;
        person
    }

    /// The id of a role by its name.
    pub async fn role(&self, name: &str) -> String {
        let roles = self.get("/roles?limit=500").await;
        let found = roles["items"].as_array().into_iter().flatten().find(|role| role["name"] == name);
        let id = found.and_then(|role| role["id"].as_str());
        id.unwrap_or_else(|| panic!("no role `{name}` in {roles}")).to_owned()
    }

    /// Grants a role in `tenant`, or on the platform; the grant's id.
    pub async fn grant(&self, person: &Person, role: &str, tenant: Option<&str>) -> i64 {
        let body = json!({ "role": self.role(role).await, "tenant": tenant });
        let user = self.expect(201, Method::POST, &format!("/users/{}/grants", person.id), Some(&body)).await;
        let grants = user["grants"].as_array().into_iter().flatten();
        grants.filter_map(|grant| id_of(&grant["id"])).max().unwrap_or_else(|| panic!("no grant in {user}"))
    }

    /// Makes a role of `tenant`, or of all; its id.
    pub async fn make_role(&self, name: &str, tenant: Option<&str>, permissions: &[&str]) -> String {
        let body = json!({ "name": name, "tenant": tenant, "permissions": permissions });
        let made = self.expect(201, Method::POST, "/roles", Some(&body)).await;
        made["id"].as_str().unwrap_or_else(|| panic!("no id in {made}")).to_owned()
    }
}
