//! The interface of xxl-job's admin that portals and scripts call.

mod forms;
mod portal;
mod refusals;

use carillon_tests::job_admin::{EVERYTHING, JobAdmin, token_of};
use carillon_tests::people::Person;
use carillon_tests::{Api, App, Kind, World};
use serde_json::{Value, json};

/// A tenant `retail` with an app `orders`, and ann, who manages its jobs.
struct Stand {
    world: World,
    admin: Api,
    app: App,
    ann: Person,
    portal: JobAdmin,
}

async fn stand(kind: Kind) -> Stand {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let admin = world.api();
    let app = admin.make_app("retail", "orders").await;
    let ann = admin.make_person("ann", Some("retail")).await;
    admin.grant(&ann, "tenant admin", Some("retail")).await;
    let token = token_of(&ann, &EVERYTHING, Some("retail")).await;
    let portal = JobAdmin::new(&node.url, &token);
    Stand { world, admin, app, ann, portal }
}

impl Stand {
    /// The portal with another token.
    fn with(&self, token: &str) -> JobAdmin {
        JobAdmin::new(&self.world.node_urls()[0], token)
    }
}

/// The paper's example.
fn job() -> Value {
    json!({
        "jobGroup": 1,
        "jobDesc": "测试任务1",
        "executorRouteStrategy": "FIRST",
        "jobCron": "0/5 * * * * ? *",
        "glueType": "BEAN",
        "executorHandler": "springCloudDemoJobHandler",
        "executorBlockStrategy": "SERIAL_EXECUTION",
        "childJobId": "",
        "executorTimeout": 0,
        "executorFailRetryCount": 0,
        "author": "warrior",
        "alarmEmail": "",
        "executorParam": ""
    })
}

#[allow(clippy::needless_pass_by_value)] // `json!` where it is called
fn job_with(fields: Value) -> Value {
    let mut job = job();
    job.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    job
}

fn done() -> Value {
    json!({ "code": 200, "msg": null, "content": null })
}

/// What a refusal says.
fn refused(answer: &Value) -> String {
    assert_eq!((&answer["code"], &answer["content"]), (&json!(500), &Value::Null), "{answer}");
    answer["msg"].as_str().unwrap().to_owned()
}

/// The one task that there is.
async fn only_task(api: &Api) -> Value {
    let mut tasks = api.tasks().await;
    assert_eq!(tasks.len(), 1, "{tasks:?}");
    tasks.remove(0)
}
