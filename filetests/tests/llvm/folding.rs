//! Compares functions in LLVM's text, up to the names of phis and the phis that LLVM folds.
//!
//! `mem2reg` places the phis of pruned SSA form, as we do. It then removes phis whose operands, except the
//! phi itself, are all one value, until none is left. Here ours are removed likewise, and counted: those that
//! always have the same constant (often the initial zero, or one stored in several branches), and those with
//! the same computed value on all paths (stored twice, or stored to where it came from). The rest must be
//! equal.

use std::collections::HashMap;
use std::fmt;

use slotvm_filetests::opt::LlvmFunction;

/// Counts of compared functions and phis.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) n_functions: usize,
    /// Number of phis that we place.
    pub(crate) n_phis: usize,
    /// Number of those that LLVM folds to a constant, and to another value.
    pub(crate) n_constant: usize,
    pub(crate) n_value: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { n_functions, n_phis, n_constant, n_value } = self;
        write!(
            f,
            "{n_functions} functions, {n_phis} phis, of which LLVM folds {n_constant} to a constant and \
             {n_value} to another value; the other {} are equal",
            n_phis - n_constant - n_value
        )
    }
}

/// Compares a function that we have promoted with LLVM's.
pub(crate) fn compare(
    ours: &LlvmFunction<'_>,
    llvms: &LlvmFunction<'_>,
    counts: &mut Counts,
) -> Result<(), String> {
    let places = |f: &LlvmFunction<'_>| f.blocks.iter().map(|b| b.name.to_owned()).collect();
    let (names, other): (Vec<String>, Vec<String>) = (places(ours), places(llvms));
    if ours.name != llvms.name || names != other {
        return Err(format!("{} has blocks {names:?}, {} has {other:?}", ours.name, llvms.name));
    }
    counts.n_functions += 1;
    counts.n_phis += ours.blocks.iter().map(|block| block.phis.len()).sum::<usize>();
    let ours = Phis::new(ours).fold(counts);
    let llvms = Phis::new(llvms);
    let [ours_classes, llvms_classes] = classes([&ours, &llvms]);
    for (i, name) in names.iter().enumerate() {
        let lines = |phis: &Phis<'_>, classes| phis.block_with_classes(i, classes);
        let (ours, llvms) = (lines(&ours, &ours_classes), lines(&llvms, &llvms_classes));
        if ours != llvms {
            return Err(format!("{name}: we have\n{ours:#?}\nLLVM has\n{llvms:#?}"));
        }
    }
    Ok(())
}

/// The phis of a function, by number.
struct Phis<'t> {
    function: &'t LlvmFunction<'t>,
    /// The block of each phi, and its operands by the name of the block that they come from.
    phis: Vec<(usize, Vec<(&'t str, Operand<'t>)>)>,
    numbers: HashMap<&'t str, usize>,
    /// The value that a phi was folded to.
    folded: Vec<Option<Operand<'t>>>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Operand<'t> {
    Phi(usize),
    Other(&'t str),
}

impl<'t> Phis<'t> {
    fn new(function: &'t LlvmFunction<'t>) -> Phis<'t> {
        let all = || {
            let blocks = function.blocks.iter().enumerate();
            blocks.flat_map(|(i, block)| block.phis.iter().map(move |phi| (i, phi)))
        };
        let numbers: HashMap<&str, usize> = all().map(|(_, phi)| phi.name).zip(0..).collect();
        let operand =
            |value| numbers.get(value).map_or(Operand::Other(value), |&n| Operand::Phi(n));
        let operands = |phi: &'t slotvm_filetests::opt::LlvmPhi<'t>| {
            phi.operands.iter().map(|&(value, from)| (from, operand(value))).collect()
        };
        let phis: Vec<_> = all().map(|(block, phi)| (block, operands(phi))).collect();
        let folded = vec![None; phis.len()];
        Phis { function, phis, numbers, folded }
    }

    /// The replacement of an operand after all folding so far.
    fn resolve(&self, mut operand: Operand<'t>) -> Operand<'t> {
        while let Operand::Phi(phi) = operand
            && let Some(value) = self.folded[phi]
        {
            operand = value;
        }
        operand
    }

    /// Folds phis with one value until none is left.
    fn fold(mut self, counts: &mut Counts) -> Phis<'t> {
        loop {
            let mut has_changed = false;
            for phi in 0..self.phis.len() {
                if self.folded[phi].is_none()
                    && let Some(value) = self.only_value(phi)
                {
                    self.folded[phi] = Some(value);
                    has_changed = true;
                }
            }
            if !has_changed {
                break;
            }
        }
        for &value in self.folded.iter().flatten() {
            match self.resolve(value) {
                Operand::Other(value) if !value.starts_with('%') => counts.n_constant += 1,
                _ => counts.n_value += 1,
            }
        }
        self
    }

    /// The single operand of a phi besides itself, if there is only one.
    fn only_value(&self, phi: usize) -> Option<Operand<'t>> {
        let operands = self.phis[phi].1.iter().map(|&(_, operand)| self.resolve(operand));
        let mut others = operands.filter(|&operand| operand != Operand::Phi(phi));
        let value = others.next()?;
        others.all(|other| other == value).then_some(value)
    }

    /// The phis and instructions of a block, with classes instead of the names of phis.
    fn block_with_classes(&self, block: usize, classes: &[usize]) -> (Vec<usize>, Vec<String>) {
        let of_block = |&phi: &usize| self.phis[phi].0 == block && self.folded[phi].is_none();
        let mut phis: Vec<usize> =
            (0..self.phis.len()).filter(of_block).map(|phi| classes[phi]).collect();
        phis.sort_unstable();
        let rest = self.function.blocks[block].rest.iter();
        (phis, rest.map(|line| self.line_with_classes(line, classes)).collect())
    }

    fn line_with_classes(&self, line: &str, classes: &[usize]) -> String {
        let mut out = String::new();
        let mut rest = line;
        while let Some(start) = rest.find('%') {
            let end = start + 1 + name_length(&rest[start + 1..]);
            out.push_str(&rest[..start]);
            match self.numbers.get(&rest[start..end]).map(|&phi| self.resolve(Operand::Phi(phi))) {
                Some(Operand::Phi(phi)) => out.push_str(&format!("%class {}", classes[phi])),
                Some(Operand::Other(value)) => out.push_str(value),
                None => out.push_str(&rest[start..end]),
            }
            rest = &rest[end..];
        }
        out + rest
    }
}

/// The length of the name that a text starts with.
fn name_length(text: &str) -> usize {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-$._".contains(c);
    match text.strip_prefix('"') {
        Some(quoted) => quoted.find('"').map_or(text.len(), |end| end + 2),
        None => text.find(|c| !is_of_name(c)).unwrap_or(text.len()),
    }
}

/// The classes of the phis of two functions: the coarsest in which phis of a class have the same block,
/// and operands of the same class from each block before it. Two phis of one block and one class have
/// the same value, so either may replace the other.
fn classes(functions: [&Phis<'_>; 2]) -> [Vec<usize>; 2] {
    let mut classes = functions.map(|f| f.phis.iter().map(|&(block, _)| block).collect::<Vec<_>>());
    let mut n_classes = 0;
    loop {
        let mut numbers = HashMap::new();
        let next = [0, 1].map(|i| {
            let class = |operand| match functions[i].resolve(operand) {
                Operand::Phi(phi) => Err(classes[i][phi]),
                Operand::Other(value) => Ok(value),
            };
            let phis = functions[i].phis.iter().zip(&classes[i]);
            let key = phis.map(|((_, operands), &own)| {
                let mut key: Vec<_> =
                    operands.iter().map(|&(from, operand)| (from, class(operand))).collect();
                key.sort_unstable();
                (own, key)
            });
            key.map(|key| {
                let n = numbers.len();
                *numbers.entry(key).or_insert(n)
            })
            .collect::<Vec<_>>()
        });
        let n = numbers.len();
        classes = next;
        if n == n_classes {
            return classes;
        }
        n_classes = n;
    }
}
