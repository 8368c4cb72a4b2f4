// Counts words and finds the pairs that stand beside each other more often than chance would have it, then plays
// the text again as a chain of likely words. In Rust: collections, sorting by closures, iterators, strings, boxed
// traits.
//
// stdin: json.c
// arg: 12

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::fmt::Write as _;
use std::io::{self, Read, Write as _};

/// Splits text in some way.
trait Splitter {
    fn name(&self) -> &'static str;
    fn split<'t>(&self, text: &'t str) -> Vec<&'t str>;
}

struct Words;
struct Runs;

impl Splitter for Words {
    fn name(&self) -> &'static str {
        "words"
    }

    fn split<'t>(&self, text: &'t str) -> Vec<&'t str> {
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
    }
}

/// Runs of characters of one class.
impl Splitter for Runs {
    fn name(&self) -> &'static str {
        "runs"
    }

    fn split<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let class = |c: char| (c.is_alphabetic(), c.is_numeric(), c.is_whitespace());
        let (mut runs, mut start) = (Vec::new(), 0);
        let mut indices = text.char_indices().peekable();
        while let Some((_, c)) = indices.next() {
            let end = indices.peek().map_or(text.len(), |&(i, _)| i);
            if indices.peek().map_or(true, |&(_, next)| class(next) != class(c)) {
                runs.push(&text[start..end]);
                start = end;
            }
        }
        runs
    }
}

/// The parts of a text by number, the numbers in their order, and how often each follows each.
struct Counts<'t> {
    parts: Vec<&'t str>,
    order: Vec<usize>,
    totals: Vec<u64>,
    pairs: BTreeMap<(usize, usize), u64>,
}

impl<'t> Counts<'t> {
    fn of(parts: &[&'t str]) -> Counts<'t> {
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let mut counts = Counts {
            parts: Vec::new(),
            order: Vec::new(),
            totals: Vec::new(),
            pairs: BTreeMap::new(),
        };
        for &part in parts {
            let number = *numbers.entry(part).or_insert_with(|| {
                counts.parts.push(part);
                counts.totals.push(0);
                counts.parts.len() - 1
            });
            counts.totals[number] += 1;
            counts.order.push(number);
        }
        for pair in counts.order.windows(2) {
            *counts.pairs.entry((pair[0], pair[1])).or_default() += 1;
        }
        counts
    }

    /// The pairs that are most frequent beyond what their parts make likely.
    fn strongest(&self, n: usize) -> Vec<(u64, String)> {
        let total = self.order.len() as f64;
        let mut heap = BinaryHeap::new();
        for (&(a, b), &count) in &self.pairs {
            let expected = self.totals[a] as f64 * self.totals[b] as f64 / total;
            let score = ((count as f64 - expected) / expected.sqrt() * 1000.0).round() as i64;
            heap.push(Reverse((score, Reverse((a, b)), count)));
            if heap.len() > n {
                heap.pop();
            }
        }
        let mut pairs: Vec<_> = heap.into_iter().map(|Reverse(pair)| pair).collect();
        pairs.sort_by(|a, b| b.cmp(a));
        let text = |(a, b): (usize, usize)| format!("{:?} {:?}", self.parts[a], self.parts[b]);
        pairs.into_iter().map(|(_, Reverse(pair), count)| (count, text(pair))).collect()
    }

    /// Goes on from a part to one that followed it, for a number of steps.
    fn walk(&self, steps: usize) -> u64 {
        let mut followers: Vec<Vec<(usize, u64)>> = vec![Vec::new(); self.parts.len()];
        for (&(a, b), &count) in &self.pairs {
            followers[a].push((b, count));
        }
        let (mut state, mut at, mut hash) = (0x9e37_79b9u64, 0, 0xcbf2_9ce4_8422_2325u64);
        for _ in 0..steps {
            for byte in self.parts[at].bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let sum: u64 = followers[at].iter().map(|&(_, count)| count).sum();
            let mut left = if sum == 0 { 0 } else { (state >> 33) % sum };
            let chosen = followers[at].iter().find(|&&(_, count)| {
                let found = left < count;
                left = left.saturating_sub(count);
                found
            });
            at = chosen.map_or(0, |&(next, _)| next);
        }
        hash
    }
}

fn main() -> io::Result<()> {
    let steps: usize = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(10);
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let splitters: Vec<Box<dyn Splitter>> = vec![Box::new(Words), Box::new(Runs)];
    let mut report = String::new();
    for splitter in &splitters {
        let parts = splitter.split(&text);
        let counts = Counts::of(&parts);
        let longest = parts.iter().map(|part| part.chars().count()).max().unwrap_or(0);
        let name = splitter.name();
        writeln!(
            report,
            "{name}: {} of {} kinds, at most {longest} long",
            parts.len(),
            counts.parts.len()
        )
        .expect("it is memory");
        for (count, pair) in counts.strongest(8) {
            writeln!(report, "{count:>6} {pair}").expect("it is memory");
        }
        writeln!(report, "walk: {:016x}", counts.walk(steps * 1000)).expect("it is memory");
    }
    io::stdout().write_all(report.as_bytes())
}
