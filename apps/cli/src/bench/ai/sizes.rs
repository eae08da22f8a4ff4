//! The lengths of generated samples, equal to those of DLIO.
//!
//! DLIO draws two dimensions for each file from a normal distribution, with NumPy's generator and
//! the seed 10. A sample has as many bytes as their product. So the standard deviation of the
//! lengths is about 0.7 of the configured one.

use super::workload::Data;

/// The seed of DLIO's generators of data.
const SEED: u32 = 10;

/// The dimensions of the samples, file by file.
#[derive(Debug)]
pub(crate) struct Dimensions {
    normal: Normal,
    mean: f64,
    stdev: f64,
}

impl Dimensions {
    /// The dimensions of the first file and of those behind it.
    pub(crate) fn of(data: Data) -> Self {
        let root = data.record_bytes.sqrt();
        Self {
            normal: Normal::new(SEED),
            mean: root.floor().max(1.0),
            stdev: data.record_stdev / 2.0 / root,
        }
    }

    fn draw(&mut self) -> u64 {
        match self.stdev > 0.0 {
            true => (self.mean + self.stdev * self.normal.next()).max(1.0) as u64,
            false => self.mean as u64,
        }
    }
}

impl Iterator for Dimensions {
    type Item = [u64; 2];

    fn next(&mut self) -> Option<[u64; 2]> {
        Some([self.draw(), self.draw()])
    }
}

/// Normally distributed numbers: the polar method over a Mersenne Twister, as
/// `numpy.random.RandomState.normal` computes them.
#[derive(Debug)]
struct Normal {
    uniform: MersenneTwister,
    second: Option<f64>,
}

impl Normal {
    fn new(seed: u32) -> Self {
        let uniform = MersenneTwister::new(seed);
        Self {
            uniform,
            second: None,
        }
    }

    fn next(&mut self) -> f64 {
        if let Some(second) = self.second.take() {
            return second;
        }
        loop {
            let first = 2.0 * self.uniform.double() - 1.0;
            let second = 2.0 * self.uniform.double() - 1.0;
            let square = first * first + second * second;
            if square > 0.0 && square < 1.0 {
                let factor = (-2.0 * square.ln() / square).sqrt();
                self.second = Some(factor * first);
                return factor * second;
            }
        }
    }
}

/// Words of the state of MT19937.
const WORDS: usize = 624;
/// Distance of the words that a step combines.
const DISTANCE: usize = 397;

/// MT19937 (Matsumoto and Nishimura, 1998).
#[derive(Debug)]
struct MersenneTwister {
    state: Box<[u32; WORDS]>,
    next: usize,
}

impl MersenneTwister {
    fn new(seed: u32) -> Self {
        let mut state = Box::new([seed; WORDS]);
        for index in 1..WORDS {
            let last = state[index - 1];
            let mixed = (last ^ (last >> 30)).wrapping_mul(1_812_433_253);
            state[index] = mixed.wrapping_add(index as u32);
        }
        Self { state, next: WORDS }
    }

    fn renew(&mut self) {
        for index in 0..WORDS {
            let low = self.state[(index + 1) % WORDS];
            let joined = (self.state[index] & 0x8000_0000) | (low & 0x7FFF_FFFF);
            let odd = match joined & 1 {
                1 => 0x9908_B0DF,
                _ => 0,
            };
            self.state[index] = self.state[(index + DISTANCE) % WORDS] ^ (joined >> 1) ^ odd;
        }
        self.next = 0;
    }

    fn word(&mut self) -> u32 {
        if self.next == WORDS {
            self.renew();
        }
        let mut word = self.state[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9D2C_5680;
        word ^= (word << 15) & 0xEFC6_0000;
        word ^ (word >> 18)
    }

    /// A number from 0 to 1 with 53 bits.
    fn double(&mut self) -> f64 {
        let (high, low) = (self.word() >> 5, self.word() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::workload::Workload;
    use super::*;

    #[test]
    fn the_twister_is_the_published_one() {
        // The first outputs for the seed 5489, and the 10,000th one, which the C++ standard gives.
        let mut twister = MersenneTwister::new(5489);
        assert_eq!(twister.word(), 3_499_211_612);
        let last = (1..10_000).map(|_| twister.word()).last();
        assert_eq!(last, Some(4_123_659_995));
    }

    #[test]
    fn normal_numbers_are_those_of_numpy() {
        // numpy.random.seed(10); numpy.random.normal(size=3)
        let mut normal = Normal::new(10);
        for expected in [1.331_586_504, 0.715_278_974, -1.545_400_292] {
            let drawn = normal.next();
            assert!((drawn - expected).abs() < 1e-8, "{drawn}");
        }
    }

    #[test]
    fn lengths_are_spread_like_those_of_dlio() {
        let data = Workload::Unet3d.data().scaled(0.1);
        let first: Vec<_> = Dimensions::of(data).take(3).collect();
        assert_eq!(first, [[5016, 4466], [2448, 3820], [4382, 3185]]);
        let lengths = Dimensions::of(data).take(20_000);
        let lengths: Vec<f64> = lengths.map(|[a, b]| (a * b) as f64).collect();
        let mean = lengths.iter().sum::<f64>() / 20_000.0;
        assert!((mean / data.record_bytes - 1.0).abs() < 0.01, "{mean}");
        let squares = lengths.iter().map(|length| (length - mean).powi(2));
        let stdev = (squares.sum::<f64>() / 20_000.0).sqrt();
        assert!((stdev / 4.83e6 - 1.0).abs() < 0.03, "{stdev}");
    }

    #[test]
    fn lengths_without_spread_are_squares() {
        let mut dimensions = Dimensions::of(Workload::Retinanet.data());
        assert_eq!(dimensions.next(), Some([568, 568]));
    }
}
