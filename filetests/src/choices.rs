//! A stream of choices made from bytes.
//!
//! Property tests and fuzzers provide bytes and shrink them; generators ask for choices. After the bytes have
//! run out, every choice is the first one, which generators make the simplest. So shorter inputs make
//! smaller cases.

/// Makes choices from bytes.
#[derive(Clone, Debug)]
pub struct Choices<'a> {
    bytes: &'a [u8],
}

impl<'a> Choices<'a> {
    /// Choices from these bytes.
    pub fn new(bytes: &'a [u8]) -> Choices<'a> {
        Choices { bytes }
    }

    /// Whether the bytes have run out.
    pub fn is_exhausted(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Splits off the next bytes as a stream of their own, so that later choices do not depend on how many
    /// of them are used.
    pub fn split(&mut self, n_bytes: usize) -> Choices<'a> {
        let (taken, rest) = self.bytes.split_at(n_bytes.min(self.bytes.len()));
        self.bytes = rest;
        Choices { bytes: taken }
    }

    /// The next byte, or 0.
    pub fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((&byte, rest)) => {
                self.bytes = rest;
                byte
            }
            None => 0,
        }
    }

    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        (0..8).fold(0, |bits, _| bits << 8 | u64::from(self.byte()))
    }

    /// A number below `n`.
    ///
    /// # Panics
    /// Panics if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        assert!(n > 0, "n must not be 0");
        let mut value = usize::from(self.byte());
        if n > 256 {
            value = value << 8 | usize::from(self.byte());
        }
        value % n
    }

    /// Returns true with this probability, and never after the bytes have run out.
    pub fn percent(&mut self, chance: usize) -> bool {
        // Counted from the top, so that byte 0 means no.
        99 - self.below(100) < chance
    }

    /// Chooses one of the options.
    ///
    /// # Panics
    /// Panics if there are no options.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Pseudo-random bytes (splitmix64), the same for the same seed on every machine.
pub fn random_bytes(seed: u64, n: usize) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(n + 8);
    while bytes.len() < n {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend_from_slice(&(z ^ (z >> 31)).to_le_bytes());
    }
    bytes.truncate(n);
    bytes
}
