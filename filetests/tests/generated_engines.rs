//! All engines agree on generated modules.

use slotvm_filetests::check::check;
use slotvm_filetests::choices::random_bytes;
use slotvm_filetests::generate::generate;

#[test]
fn engines_agree() {
    for seed in 0..300 {
        let case = generate(&random_bytes(seed, 100 + seed as usize % 1_500));
        if let Err(difference) = check(&case) {
            panic!("seed {seed}: {difference}");
        }
    }
}
