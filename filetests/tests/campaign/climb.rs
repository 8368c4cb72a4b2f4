//! Searches for the modules that cost the compiler the most for their size, by hill climbing: a genome with a
//! few changed genes replaces one of a small population if it costs more.

use std::fmt;

use slotvm::compiler::Work;
use slotvm_filetests::campaign::cost::genome::{GENE, HEAD};
use slotvm_filetests::campaign::cost::{Cost, measure};

use crate::rng::Rng;

/// Number of genomes in the population of a climb.
const POPULATION: usize = 6;
/// A climb restarts after this many genomes without an improvement.
const PATIENCE: usize = 60;
/// Number of genes initially, and at most.
const GENES: (usize, usize) = (10, 60);

/// The resource that a climb maximises.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    Time,
    Memory,
}

impl Aim {
    pub(crate) fn of(self, cost: &Cost) -> f64 {
        match self {
            _ if !cost.is_promised() => 0.0,
            Aim::Time => cost.of_time(),
            Aim::Memory => cost.of_memory(),
        }
    }
}

/// A genome, and its cost.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) genome: Vec<u8>,
    pub(crate) cost: Cost,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Found { cost, genome } = self;
        let kb = cost.n_bytes as f64 / 1024.0;
        let mib = cost.peak as f64 / f64::from(1 << 20);
        let way = match cost.work {
            Some(Work { effort, cause: Some(cause), .. }) => {
                format!("{effort}, as {}", cause.message())
            }
            Some(work) => work.effort.to_string(),
            None => "refused".to_owned(),
        };
        write!(
            f,
            "{:.2} of the time, {:.2} of the memory: {kb:.1} KB, {:.1} ms/KB, {mib:.1} MiB, mode {}, {way}, {}",
            cost.of_time(),
            cost.of_memory(),
            cost.ms / kb,
            cost.slots,
            hex(genome),
        )
    }
}

/// Measures `n` genomes, and returns the best of each climb, the costliest first.
///
/// # Errors
/// Returns a genome that breaks a promise, or cannot be measured.
pub(crate) fn climb(aim: Aim, seed: u64, n: usize) -> Result<Vec<Found>, String> {
    let mut rng = Rng::new(seed);
    let (mut tops, mut population, mut n_idle) = (Vec::new(), Vec::<Found>::new(), 0);
    for _ in 0..n {
        if n_idle > PATIENCE {
            tops.extend(population.drain(..).next());
            n_idle = 0;
        }
        let genome = match population.len() {
            POPULATION => child(&mut rng, &population),
            _ => random(&mut rng),
        };
        let mut cost = run(&genome)?;
        let worst = population.last().map_or(0.0, |found| aim.of(&found.cost));
        if population.len() == POPULATION && aim.of(&cost) <= worst {
            n_idle += 1;
            continue;
        }
        // Other processes disturb the measurement, too.
        if aim == Aim::Time {
            let again = run(&genome)?;
            cost = if again.ms < cost.ms { again } else { cost };
        }
        let at = population.partition_point(|found| aim.of(&found.cost) >= aim.of(&cost));
        n_idle = if at == 0 { 0 } else { n_idle + 1 };
        population.insert(at, Found { genome, cost });
        population.truncate(POPULATION);
    }
    tops.extend(population.drain(..).next());
    tops.sort_by(|a, b| aim.of(&b.cost).total_cmp(&aim.of(&a.cost)));
    Ok(tops)
}

fn run(genome: &[u8]) -> Result<Cost, String> {
    measure(genome).map_err(|error| format!("{error}\nof the genome {}", hex(genome)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn random(rng: &mut Rng) -> Vec<u8> {
    let n_genes = HEAD + 1 + rng.below(GENES.0);
    (0..n_genes * GENE).map(|_| rng.bits() as u8).collect()
}

/// A genome of the population with a few genes changed, or with some of another one.
fn child(rng: &mut Rng, population: &[Found]) -> Vec<u8> {
    let mut genome = rng.pick(population).genome.clone();
    for _ in 0..rng.few() {
        let n = genome.len() / GENE;
        let at = HEAD + rng.below(n - HEAD);
        let bytes = at * GENE..(at + 1) * GENE;
        match rng.below(8) {
            0 => {
                let in_head = rng.below(HEAD * GENE);
                genome[in_head] = rng.bits() as u8;
            }
            1 => {
                let byte = at * GENE + rng.below(GENE);
                genome[byte] = rng.bits() as u8;
            }
            2 if n > HEAD + 1 => drop(genome.drain(bytes)),
            3 => {
                let gene = genome[bytes].to_vec();
                insert(rng, &mut genome, &gene);
            }
            4 => {
                let other = &rng.pick(population).genome;
                let from = HEAD + rng.below(other.len() / GENE - HEAD);
                let to = (from + 1 + rng.below(6)).min(other.len() / GENE);
                let genes = other[from * GENE..to * GENE].to_vec();
                insert(rng, &mut genome, &genes);
            }
            _ => {
                let gene: Vec<u8> = (0..GENE).map(|_| rng.bits() as u8).collect();
                match rng.one_in(2) {
                    true => genome[bytes].copy_from_slice(&gene),
                    false => insert(rng, &mut genome, &gene),
                }
            }
        }
    }
    genome
}

fn insert(rng: &mut Rng, genome: &mut Vec<u8>, genes: &[u8]) {
    if genome.len() + genes.len() <= GENES.1 * GENE {
        let at = (HEAD + rng.below(genome.len() / GENE - HEAD + 1)) * GENE;
        genome.splice(at..at, genes.iter().copied());
    }
}
