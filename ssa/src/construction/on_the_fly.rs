//! The construction of [`crate::construction::braun`] for a function whose accesses are logged and whose blocks are
//! numbered in preorder of the dominator tree. It replaces phi placement ([`crate::construction::sites`]) and
//! renaming ([`crate::construction::rename`]), and returns its results in the same form.

use crate::construction::accesses::AccessLog;
use crate::construction::braun::{Braun, BraunOptions, BraunReport, PHI};
use crate::construction::options::{TooLarge, UNDEF};
use crate::construction::rename::{PhiOperands, Phis};
use crate::graphs::cfg::{Cfg, ControlFlow};
use crate::graphs::ids::Slot;

/// The number of [`UNDEF`] among values that have to be below [`PHI`].
const UNDEF_BELOW_PHI: u32 = PHI - 1;

/// Memory of the construction, to be reused from function to function.
#[derive(Clone, Debug, Default)]
pub(crate) struct OnTheFly {
    braun: Braun,
    /// The in-edges of each block whose source is not filled.
    n_unfilled: Vec<u32>,
    /// Block, variable and value of each phi, in the order of blocks, then of variables.
    phis: Vec<(u32, u32, u32)>,
    /// The place in `phis` of each phi that was made and stays.
    places: Vec<u32>,
    /// Block and slot of each phi.
    pub(crate) sites: Vec<(u32, Slot)>,
}

impl OnTheFly {
    /// Finds the phis, and the values of logged reads, as [`Braun`] numbers them. `initial` gives the
    /// initial value of a slot.
    pub(crate) fn construct(
        &mut self,
        cfg: &Cfg,
        log: &mut AccessLog,
        options: BraunOptions,
        phi_operands_max: usize,
        mut initial: impl FnMut(Slot) -> u32,
    ) -> Result<BraunReport, TooLarge> {
        let too_large = TooLarge::Entries(options.entries_max);
        if log.replacements.len() >= UNDEF_BELOW_PHI as usize {
            return Err(too_large);
        }
        let OnTheFly { braun, n_unfilled, phis, places, sites } = self;
        let n_blocks = cfg.n_blocks() as u32;
        let mut undefined = |variable| initial(Slot(variable)).min(UNDEF_BELOW_PHI);
        braun.start(options);
        n_unfilled.clear();
        n_unfilled.extend((0..n_blocks).map(|block| cfg.preds(block).len() as u32));
        braun.seal_block(cfg.entry(), [], &mut undefined);
        for block in 0..n_blocks {
            let (reads, writes, replacements) = log.of_block(block);
            for read in reads {
                let value = braun.read_variable(read.slot.0, block, &mut undefined);
                replacements[read.value as usize] = value;
            }
            // A written value may be what a logged read of this very block makes.
            for write in writes {
                braun.write_variable(write.slot.0, block, replacements[write.value as usize]);
            }
            for &succ in cfg.succs(block) {
                n_unfilled[succ as usize] -= 1;
                if n_unfilled[succ as usize] == 0 {
                    braun.seal_block(succ, cfg.preds(succ).iter().copied(), &mut undefined);
                }
            }
        }
        let report = braun.finish(&mut undefined);
        if braun.is_exhausted() {
            return Err(too_large);
        }
        if braun.phis().map(|phi| phi.operands.len()).sum::<usize>() > phi_operands_max {
            return Err(TooLarge::PhiOperands(phi_operands_max));
        }
        phis.clear();
        phis.extend(braun.phis().map(|phi| (phi.block, phi.variable, phi.value)));
        phis.sort_unstable();
        let n_places = phis.iter().map(|&(_, _, value)| (value & !PHI) as usize + 1).max();
        places.clear();
        places.resize(n_places.unwrap_or(0), UNDEF);
        for (place, &(_, _, value)) in (0..).zip(&*phis) {
            places[(value & !PHI) as usize] = place;
        }
        sites.clear();
        sites.extend(phis.iter().map(|&(block, variable, _)| (block, Slot(variable))));
        Ok(report)
    }

    /// Gives each logged read its value, and each phi its operands. The phis are those of the sites.
    pub(crate) fn fill(
        &mut self,
        log: &mut AccessLog,
        phis: &Phis<'_>,
        operands: &mut impl PhiOperands,
    ) {
        for value in &mut log.replacements {
            *value = self.number(*value, phis);
        }
        for block in 0..log.n_blocks() as u32 {
            operands.fill(block, |_, slot| {
                let mut undefined = |_| unreachable!("the operand was read when the phi was made");
                let value = self.braun.read_variable(slot.0, block, &mut undefined);
                self.number(value, phis)
            });
        }
    }

    /// The value as the caller numbers it.
    fn number(&mut self, value: u32, phis: &Phis<'_>) -> u32 {
        match self.braun.resolve(value) {
            UNDEF_BELOW_PHI => UNDEF,
            value if value & PHI == 0 => value,
            phi => phis.first_value() + self.places[(phi & !PHI) as usize],
        }
    }
}
