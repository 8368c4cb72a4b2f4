//! The functions to measure: cells of families, sizes and slots, and functions from files.

use slotvm_benches::families::{Family, Plan};

/// Blocks of the cells, in each family.
const BLOCKS: [u32; 4] = [1_000, 10_000, 100_000, 1_000_000];
/// Slots of the cells, with the densities at which they are measured; `--quick` takes the first.
const SLOTS: [(u32, &[f64]); 4] =
    [(10, &[1.0, 0.1]), (100, &[1.0, 0.1]), (1_000, &[1.0]), (5_000, &[1.0])];

/// A cell has at most so many blocks times slots; the slowest contenders take about so many steps, and
/// gigabytes.
const PRODUCT_MAX: u64 = 10_000_000;
/// The same limit with `--quick`.
const PRODUCT_MAX_QUICK: u64 = 100_000;

/// The cells of a run. A test only has to see that it works.
pub(crate) fn cells(is_quick: bool, is_test: bool) -> Vec<Plan> {
    if is_test {
        let plan = |family| Plan { family, n_blocks: 60, n_slots: 10, density: 1.0 };
        return Family::ALL.map(plan).to_vec();
    }
    let product_max = if is_quick { PRODUCT_MAX_QUICK } else { PRODUCT_MAX };
    let n_densities_max = if is_quick { 1 } else { usize::MAX };
    let mut cells = Vec::new();
    for family in Family::ALL {
        for (n_slots, densities) in SLOTS {
            for &density in densities.iter().take(n_densities_max) {
                let plans = BLOCKS.map(|n_blocks| Plan { family, n_blocks, n_slots, density });
                let product = |plan: &Plan| u64::from(plan.n_blocks) * u64::from(n_slots);
                cells.extend(plans.into_iter().filter(|plan| product(plan) <= product_max));
            }
        }
    }
    cells
}
