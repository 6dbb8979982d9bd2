//! Clusters that the command knows by a name.

use super::installation::{Installation, Ran, TOKEN, run};
use std::os::unix::fs::PermissionsExt as _;

/// Runs the command with a file of contexts; without an address in the environment unless `variables` has one.
fn run_with(here: &Installation, contexts: &str, args: &[&str], variables: &[(&str, &str)]) -> Ran {
    std::fs::create_dir_all(here.folder().join("config/carillon")).unwrap();
    here.write("config/carillon/contexts.toml", contexts);
    let mut command = here.stranger();
    command.env_remove("CARILLON_URL").args(args).envs(variables.iter().copied());
    run(&mut command, "")
}

#[tokio::test]
async fn a_context_names_a_node_and_its_token() {
    let here = Installation::new().await;
    let token = here.write("token", TOKEN);
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    let contexts = format!(
        "[contexts.home]\nurl = \"{url}\"\ntoken_file = \"{token}\"\n[contexts.nowhere]\nurl = \"http://127.0.0.1:9\"\n",
        url = here.url,
        token = token.display()
    );
    let list = ["apps", "list", "--tenant", "retail", "--output", "json"];
    let with = |more: &[&'static str]| [&list[..], more].concat();
    for ran in [
        run_with(&here, &contexts, &with(&["--context", "home"]), &[]),
        run_with(&here, &contexts, &list, &[("CARILLON_CONTEXT", "home")]),
    ] {
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.out.contains("retail"), "{}", ran.out);
    }
    let ran = run_with(&here, &contexts, &with(&["--context", "nowhere"]), &[("CARILLON_TOKEN", TOKEN)]);
    assert!(ran.code == 5 && ran.err.contains("no node answers at http://127.0.0.1:9"), "{}", ran.err);
    let ran = run_with(&here, &contexts, &with(&["--context", "away"]), &[]);
    assert!(ran.code == 1 && ran.err.contains("no context `away`") && ran.err.contains("home, nowhere"), "{}", ran.err);
    // Nothing goes to the wrong cluster.
    let url = here.url.clone();
    let ran = run_with(&here, &contexts, &with(&["--context", "home"]), &[("CARILLON_URL", &url)]);
    assert!(ran.code == 1 && ran.err.contains("both given"), "{}", ran.err);
    let ran = run_with(&here, "[contexts.home]\nurl = \"x\"\ntokn_file = \"y\"\n", &with(&["--context", "home"]), &[]);
    assert!(ran.code == 1 && ran.err.contains("contexts.toml") && ran.err.contains("tokn_file"), "{}", ran.err);
}
