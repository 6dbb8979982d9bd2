//! Caches database answers to questions that anyone may ask: each is kept for a moment, so many
//! requests cost no more than one.

use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// How long an answer is kept.
const KEPT: Duration = Duration::from_secs(1);

/// The last answer to one question.
pub struct ShortCache<T> {
    kept: Duration,
    /// Held during a lookup: other callers wait for its result. The lookup must be bounded in time.
    last: Mutex<Option<(Instant, T)>>,
}

impl<T> Default for ShortCache<T> {
    fn default() -> Self {
        Self { kept: KEPT, last: Mutex::new(None) }
    }
}

impl<T: Clone> ShortCache<T> {
    /// The last answer, if it is recent enough; otherwise the result of `look`.
    pub async fn or(&self, look: impl Future<Output = T>) -> T {
        let mut last = self.last.lock().await;
        if let Some((at, answer)) = &*last
            && at.elapsed() < self.kept
        {
            return answer.clone();
        }
        let answer = look.await;
        *last = Some((Instant::now(), answer.clone()));
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test]
    async fn of_many_callers_at_once_one_queries() {
        let recent = Arc::new(ShortCache { kept: Duration::from_hours(1), ..ShortCache::default() });
        let looks = Arc::new(AtomicU32::new(0));
        let asked = (0..100).map(|_| {
            let (recent, looks) = (Arc::clone(&recent), Arc::clone(&looks));
            tokio::spawn(async move {
                let look = async {
                    tokio::task::yield_now().await;
                    looks.fetch_add(1, Ordering::Relaxed) + 1
                };
                recent.or(look).await
            })
        });
        for answer in asked.collect::<Vec<_>>() {
            assert_eq!(answer.await.unwrap(), 1);
        }
    }

    #[tokio::test]
    async fn old_entries_do_not_count() {
        let recent = ShortCache { kept: Duration::ZERO, ..ShortCache::default() };
        assert_eq!(recent.or(async { 1 }).await, 1);
        assert_eq!(recent.or(async { 2 }).await, 2);
    }

    #[tokio::test]
    async fn a_reader_that_disconnects_blocks_no_one() {
        let recent = ShortCache::default();
        let gone = tokio::time::timeout(Duration::from_millis(1), recent.or(std::future::pending())).await;
        assert!(gone.is_err());
        assert_eq!(recent.or(async { 7 }).await, 7);
    }
}
