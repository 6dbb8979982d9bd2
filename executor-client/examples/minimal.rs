//! The smallest executor: one handler, settings from the environment.
//!
//! ```sh
//! CARILLON_SCHEDULERS=http://127.0.0.1:8526 CARILLON_TENANT=default CARILLON_APP=demo \
//! CARILLON_KEY_ID=… CARILLON_KEY_SECRET=… cargo run --example minimal
//! ```

use carillon_executor::{Executor, Output, TaskContext, TaskError};

async fn close_books(ctx: TaskContext) -> Result<Output, TaskError> {
    let day = ctx.fire_time() / 86_400_000;
    if ctx.params() == "refuse" {
        // Another attempt would not help; for everything else use `?`.
        return Err(TaskError::fatal("told to refuse"));
    }
    Ok(Output::text(format!("closed day {day}, shard {}", ctx.shard_index())))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().init();
    let executor = Executor::builder()
        .from_env()?
        .version(env!("CARGO_PKG_VERSION"))
        .handler("close-books", close_books)
        .build()?;
    executor.run().await?; // until SIGTERM or SIGINT, then drains
    Ok(())
}
