//! The keys: sequential, random and clustered, words and strings, always the same.

/// A well-mixed word for each number (Steele, Lea and Flood's SplitMix64).
pub fn mix(number: u64) -> u64 {
    let x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// How the keys lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    Sequential,
    Random,
    Clustered,
}

impl Pattern {
    pub const ALL: [Pattern; 3] = [Pattern::Sequential, Pattern::Random, Pattern::Clustered];

    pub fn parse(name: &str) -> Result<Pattern, String> {
        Self::ALL
            .into_iter()
            .find(|pattern| pattern.name() == name)
            .ok_or(format!("no pattern {name}"))
    }

    pub fn name(self) -> &'static str {
        match self {
            Pattern::Sequential => "sequential",
            Pattern::Random => "random",
            Pattern::Clustered => "clustered",
        }
    }

    /// Sequential: 0, 1, …; random: any 64 bits; clustered: runs of 64 neighbours, anywhere.
    pub fn word(self, at: u64) -> u64 {
        match self {
            Pattern::Sequential => at,
            Pattern::Random => mix(at),
            Pattern::Clustered => (mix(at / 64) & !0xff) | (at % 64),
        }
    }

    /// Sequential: a counter of ten digits; random: 8 to 23 letters and digits; clustered: files in
    /// folders. With a zero byte at the end.
    pub fn string(self, at: u64) -> Vec<u8> {
        let mut text = match self {
            Pattern::Sequential => format!("key{at:010}").into_bytes(),
            Pattern::Random => {
                let letters = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
                let length = 8 + mix(at ^ 0x5eed) % 16;
                (0..length)
                    .map(|i| letters[(mix(at * 32 + i) % 64) as usize])
                    .collect()
            }
            Pattern::Clustered => {
                let (folder, group) = (mix(at / 64) % 1_000_000_000, mix(at / 4096) % 100_000);
                format!("/home/group{group}/folder{folder}/file{:03}.txt", at % 64).into_bytes()
            }
        };
        text.push(0);
        text
    }
}

/// An order to visit things in: their own, or a shuffled one.
pub fn order(pattern: Pattern, count: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    if pattern != Pattern::Sequential {
        for at in (1..count).rev() {
            order.swap(at, (mix(at as u64 ^ 0xface) % (at as u64 + 1)) as usize);
        }
    }
    order
}
