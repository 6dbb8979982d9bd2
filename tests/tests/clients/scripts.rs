//! Tasks that are scripts: Java's libraries run them, the others know no scripts.

use crate::Stand;
use carillon_tests::{Library, Status, folder};
use serde_json::{Value, json};

clients!(a_shell_script_is_run: java_2_5_0 java_3_3_2);
clients!(a_class_of_groovy_is_run: java_2_5_0 java_3_3_2);
clients!(who_knows_no_scripts_calls_no_handler: python go node);

/// A task that is this script, by a version that the last one has left.
async fn write(stand: &Stand, task: i64, glue_type: &str, source: &str) -> Value {
    let app = &stand.api.get("/apps?tenant=retail&name=orders").await["items"][0];
    let switch = format!("/apps/{}/scripts", app["id"].as_str().unwrap());
    stand.api.put(&switch, json!({ "allowed": true })).await;
    stand.api.put(&format!("/tasks/{task}/script"), json!({ "glue_type": glue_type, "source": source })).await
}

async fn a_shell_script_is_run(library: Library) {
    let (stand, client) = Stand::with_client(library).await;
    let file = folder::fresh("script").join("said");
    let task = stand.task("echo", json!({ "params": "two words", "max_retries": 0 })).await;
    let said = || std::fs::read_to_string(&file).unwrap_or_default();
    let source = |text: &str, code: i32| format!("echo \"{text} $1 $2 $3\" >> '{}'\nexit {code}\n", file.display());
    write(&stand, task, "GLUE_SHELL", &source("first", 0)).await;
    let row = stand.end(stand.run(task).await).await;
    assert_eq!((row.status, row.attempt), (Status::Succeeded, 1), "{row:?}");
    assert_eq!(said(), "first two words 0 1\n");
    write(&stand, task, "GLUE_SHELL", &source("second", 3)).await;
    let row = stand.end(stand.run(task).await).await;
    assert_eq!((row.status, row.reason.as_str()), (Status::Failed, "handler_failed"), "{row:?}");
    assert!(row.message.contains("script exit value(3)"), "{row:?}");
    assert_eq!(said(), "first two words 0 1\nsecond two words 0 1\n");
    // Its handler again.
    stand.api.put(&format!("/tasks/{task}/script"), json!({ "glue_type": "BEAN" })).await;
    let row = stand.end(stand.run(task).await).await;
    assert_eq!((row.status, row.output.as_str()), (Status::Succeeded, "two words"), "{row:?}");
    assert_eq!(client.starts("echo").len(), 1);
    stand.world.assert_quiet(&[]);
}

async fn a_class_of_groovy_is_run(library: Library) {
    let (stand, _client) = Stand::with_client(library).await;
    let task = stand.task("echo", json!({ "params": "x", "max_retries": 0 })).await;
    for version in ["first", "second"] {
        let source = format!(
            "import com.xxl.job.core.context.XxlJobHelper\n\
             class Report extends com.xxl.job.core.handler.IJobHandler {{\n\
             void execute() {{ XxlJobHelper.handleSuccess(\"{version} of \" + XxlJobHelper.getJobParam()) }}\n\
             }}\n"
        );
        write(&stand, task, "GLUE_GROOVY", &source).await;
        let row = stand.end(stand.run(task).await).await;
        assert_eq!((row.status, row.output), (Status::Succeeded, format!("{version} of x")), "{}", row.message);
    }
    stand.world.assert_quiet(&[]);
}

async fn who_knows_no_scripts_calls_no_handler(library: Library) {
    let (stand, client) = Stand::with_client(library).await;
    let task = stand.task("echo", json!({ "max_retries": 0 })).await;
    write(&stand, task, "GLUE_SHELL", "echo").await;
    let row = stand.end(stand.run(task).await).await;
    assert_eq!((row.status, row.reason.as_str()), (Status::Failed, "not_accepted"), "{row:?}");
    assert!(client.starts("echo").is_empty());
    stand.world.assert_quiet(&[]);
}
