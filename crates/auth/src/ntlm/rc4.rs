//! RC4, which encrypts the session key and the checksums of NTLM. [MS-NLMP] 3.4.3

use zeroize::Zeroize;

/// An RC4 key stream, with its position.
pub(crate) struct Rc4 {
    state: [u8; 256],
    i: u8,
    j: u8,
}

impl Rc4 {
    pub(crate) fn new(key: &[u8]) -> Self {
        assert!(!key.is_empty() && key.len() <= 256);
        let mut state = std::array::from_fn(|index| index as u8);
        let mut j = 0_u8;
        for index in 0..256 {
            j = j
                .wrapping_add(state[index])
                .wrapping_add(key[index % key.len()]);
            state.swap(index, usize::from(j));
        }
        Self { state, i: 0, j: 0 }
    }

    /// Adds the key stream to `data` in place and advances it.
    pub(crate) fn apply(&mut self, data: &mut [u8]) {
        for byte in data {
            self.i = self.i.wrapping_add(1);
            let at_i = self.state[usize::from(self.i)];
            self.j = self.j.wrapping_add(at_i);
            self.state.swap(usize::from(self.i), usize::from(self.j));
            let sum = at_i.wrapping_add(self.state[usize::from(self.i)]);
            *byte ^= self.state[usize::from(sum)];
        }
    }
}

impl Drop for Rc4 {
    fn drop(&mut self) {
        self.state.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6229, 2: the first 16 bytes of key stream of the 40-bit and the 128-bit key.
    #[test]
    fn key_stream_is_that_of_rfc_6229() {
        let key: Vec<u8> = (1..=16).collect();
        for (len, expected) in [
            (5, 0xb2396305_f03dc027_ccc3524a_0a1118a8_u128),
            (16, 0x9ac7cc9a_609d1ef7_b2932899_cde41b97),
        ] {
            let mut stream = [0; 16];
            Rc4::new(&key[..len]).apply(&mut stream);
            assert_eq!(u128::from_be_bytes(stream), expected);
        }
    }
}
