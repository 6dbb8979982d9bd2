//! Stories of statements that fail within the transactions of what ships, on SQLite.

use crate::faults::Fault;
use crate::promises;
use crate::report::report;
use crate::settings::Shape;
use crate::stories::at;
use crate::world::Setup;

#[test]
fn statements_that_are_given_up_midway_break_no_promise() {
    let given_up = |node, from| at(from, Fault::GivenUp { node, per_mille: 200, down: 15_000 });
    let mut later_ones = 0;
    for seed in 1..4 {
        let faults = Some(vec![given_up(0, 8_000), given_up(1, 20_000)]);
        let shape = Shape::default();
        let world = crate::simulate(&Setup { shape, faults, over_sqlite: true, ..Setup::of(seed) });
        let broken = promises::check(&world);
        assert!(broken.is_empty(), "{}", report(&world, &broken));
        later_ones +=
            (2..10).flat_map(|number| world.trace.about(&format!("gives up statement {number} of"), 1)).count();
    }
    assert!(later_ones > 2 * 3, "statements within transactions were given up: {later_ones}");
}
