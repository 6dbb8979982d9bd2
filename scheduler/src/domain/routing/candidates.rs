//! Who may take a run at all.

use super::{NoExecutor, Tags};
use crate::domain::executor::Executor;
use std::sync::Arc;

/// The executors among `online` (of one app) that may take a run of `handler` under `tags`, each
/// once, in the order of (address, id).
///
/// # Errors
/// Why there is none.
pub fn candidates(online: &[Arc<Executor>], handler: &str, tags: &Tags) -> Result<Vec<Arc<Executor>>, NoExecutor> {
    let mut fitting: Vec<_> = online.iter().filter(|executor| executor.fits(handler, tags)).cloned().collect();
    if fitting.is_empty() {
        return Err(why(online, handler, tags));
    }
    fitting.sort_by(|a, b| (&a.address, a.id).cmp(&(&b.address, b.id)));
    fitting.dedup_by_key(|executor| executor.id);
    Ok(fitting)
}

/// The first filter that leaves no executor.
fn why(online: &[Arc<Executor>], handler: &str, tags: &Tags) -> NoExecutor {
    if online.is_empty() {
        return NoExecutor::NoneOnline;
    }
    let handler = handler.to_owned();
    let able: Vec<_> = online.iter().filter(|executor| executor.handlers.contains(&handler)).collect();
    if able.is_empty() {
        return NoExecutor::NoHandler { handler, online: online.len() };
    }
    let closed: Vec<_> = able.iter().filter(|executor| tags.fits(&executor.tags)).collect();
    if closed.is_empty() {
        return NoExecutor::NoTags { handler, tags: tags.clone(), able: able.len() };
    }
    let disabled = closed.iter().filter(|executor| executor.disabled).count();
    let draining = closed.iter().filter(|executor| !executor.disabled && executor.draining).count();
    NoExecutor::AllClosed { handler, disabled, draining, weightless: closed.len() - disabled - draining }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::executor;
    use super::*;

    #[track_caller]
    fn check(online: &[Executor], handler: &str, tags: &[&str], expect: Result<&[i64], &str>) {
        let online: Vec<_> = online.iter().cloned().map(Arc::new).collect();
        let tags = Tags { all: tags.iter().map(ToString::to_string).collect(), ..Tags::default() };
        let found = candidates(&online, handler, &tags);
        let ids = found.map(|found| found.iter().map(|executor| executor.id.0).collect::<Vec<_>>());
        assert_eq!(
            ids.map_err(|no_executor| no_executor.to_string()),
            expect.map(<[i64]>::to_vec).map_err(ToOwned::to_owned)
        );
    }

    #[test]
    fn candidates_stand_in_the_order_of_addresses_whatever_their_ids() {
        let online = [executor(1, "http://c:1"), executor(2, "http://a:1"), executor(3, "http://b:1")];
        check(&online, "h", &[], Ok(&[2, 3, 1]));
        let twice = [executor(9, "http://a:1"), executor(4, "http://a:1"), executor(9, "http://a:1")];
        check(&twice, "h", &[], Ok(&[4, 9]));
    }

    #[test]
    fn unsuitable_executors_are_left_out() {
        let base = || executor(1, "http://a:1");
        let gpu = Executor { tags: ["gpu".to_owned()].into(), ..executor(2, "http://b:1") };
        check(&[base(), gpu.clone()], "h", &["gpu"], Ok(&[2]));
        let others = [
            Executor { handlers: ["H".to_owned()].into(), ..base() },
            Executor { disabled: true, ..base() },
            Executor { draining: true, ..base() },
            Executor { weight: 0, ..base() },
            Executor { weight: -5, ..base() },
        ];
        for other in others {
            check(&[other, gpu.clone()], "h", &[], Ok(&[2]));
        }
    }

    #[test]
    fn the_reason_names_the_first_filter_that_leaves_no_executor() {
        let at = |id| executor(id, "http://a:1");
        check(&[], "h", &[], Err("no executor of the app is online"));
        check(&[at(1), at(2)], "other", &["gpu"], Err("2 online, but none has handler `other`"));
        let text = "1 online with handler `h`, but none has the tags: all of [gpu]";
        check(&[at(1), Executor { handlers: ["g".to_owned()].into(), ..at(2) }], "h", &["gpu"], Err(text));
        let closed = [
            Executor { disabled: true, draining: true, weight: 0, ..at(1) },
            Executor { draining: true, weight: 0, ..at(2) },
            Executor { weight: 0, ..at(3) },
        ];
        let text = "all executors that fit handler `h` are closed: 1 disabled manually, 1 draining, 1 with weight 0";
        check(&closed, "h", &[], Err(text));
        // What a closed one lacks is the better answer.
        check(&closed, "h", &["gpu"], Err("3 online with handler `h`, but none has the tags: all of [gpu]"));
    }
}
