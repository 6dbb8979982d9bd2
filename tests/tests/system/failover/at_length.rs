//! Of `./scripts/test --long`.
