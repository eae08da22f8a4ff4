//! The AES functions of aws-lc that aws-lc-rs does not expose: CBC chaining, counter mode, and GCM
//! over scattered buffers.
//!
//! aws-lc-rs offers no CCM, and its GCM requires one contiguous buffer. Every type of this module
//! has a safe interface.

use core::ffi::{c_int, c_uint};
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use aws_lc_sys::{
    AES_KEY, AES_cbc_encrypt, AES_ctr128_encrypt, AES_encrypt, AES_set_encrypt_key, EVP_CIPHER_CTX,
    EVP_CIPHER_CTX_copy, EVP_CIPHER_CTX_ctrl, EVP_CIPHER_CTX_free, EVP_CIPHER_CTX_new,
    EVP_CTRL_AEAD_GET_TAG, EVP_CTRL_AEAD_SET_TAG, EVP_CipherFinal_ex, EVP_CipherInit_ex,
    EVP_CipherUpdate, EVP_aes_128_gcm, EVP_aes_256_gcm,
};
use zeroize::Zeroize;

/// Length of an AES block in bytes.
pub(crate) const BLOCK: usize = 16;

/// Bytes of CBC output that one call discards: few enough for the level-1 cache.
const SCRATCH: usize = 1024;

/// Bytes for one call of EVP_CipherUpdate: its length is a C int. A multiple of the block.
const UPDATE_MAX: usize = 1 << 30;

/// An AES key schedule for encryption.
pub(crate) struct AesKey(AES_KEY);

/// The position of a counter-mode stream.
pub(crate) struct Counter {
    block: [u8; BLOCK],
    keystream: [u8; BLOCK],
    used: c_uint,
}

impl AesKey {
    /// `key` has 16 or 32 bytes.
    pub(crate) fn new(key: &[u8]) -> Self {
        assert!(key.len() == 16 || key.len() == 32);
        let bits = if key.len() == 16 { 128 } else { 256 };
        let mut schedule = MaybeUninit::<AES_KEY>::zeroed();
        // SAFETY: `key` is readable for `bits` / 8 bytes, as asserted; `schedule` is writable and
        // ours alone.
        let result = unsafe { AES_set_encrypt_key(key.as_ptr(), bits, schedule.as_mut_ptr()) };
        assert_eq!(result, 0);
        // SAFETY: AES_KEY is plain integers; zeroed and then written, it is initialised.
        Self(unsafe { schedule.assume_init() })
    }

    /// Encrypts one block in place.
    pub(crate) fn encrypt_block(&self, block: &mut [u8; BLOCK]) {
        let data = block.as_mut_ptr();
        // SAFETY: `data` is one block, and aws-lc allows input and output to be the same; the key
        // schedule is only read.
        unsafe { AES_encrypt(data, data, &raw const self.0) };
    }

    /// Runs CBC over `blocks` and leaves the last ciphertext block in `state`: CBC-MAC.
    pub(crate) fn cbc_mac(&self, state: &mut [u8; BLOCK], blocks: &[u8]) {
        assert_eq!(blocks.len() % BLOCK, 0);
        let mut scratch = [0_u8; SCRATCH];
        for chunk in blocks.chunks(SCRATCH) {
            // SAFETY: `chunk` is readable and `scratch` writable for `chunk.len()` bytes, a
            // multiple of the block no longer than SCRATCH; they do not overlap. `state` is one
            // writable block. The key schedule is only read.
            unsafe {
                AES_cbc_encrypt(
                    chunk.as_ptr(),
                    scratch.as_mut_ptr(),
                    chunk.len(),
                    &raw const self.0,
                    state.as_mut_ptr(),
                    aws_lc_sys::AES_ENCRYPT,
                );
            }
        }
    }

    /// Adds the key stream to `data` in place, from the position of `counter`, and advances it.
    pub(crate) fn counter_mode(&self, counter: &mut Counter, data: &mut [u8]) {
        assert!(counter.used < 16);
        let bytes = data.as_mut_ptr();
        // SAFETY: `data` is readable and writable for its length, and aws-lc allows input and
        // output to be the same. The counter and key stream blocks are 16 bytes each and `used`
        // is below 16, as the function asks for. The key schedule is only read.
        unsafe {
            AES_ctr128_encrypt(
                bytes,
                bytes,
                data.len(),
                &raw const self.0,
                counter.block.as_mut_ptr(),
                counter.keystream.as_mut_ptr(),
                &raw mut counter.used,
            );
        }
    }
}

impl Drop for AesKey {
    fn drop(&mut self) {
        self.0.rd_key.zeroize();
    }
}

impl Counter {
    /// A stream; its first block of key stream is the encryption of `block`.
    pub(crate) fn new(block: [u8; BLOCK]) -> Self {
        Self {
            block,
            keystream: [0; BLOCK],
            used: 0,
        }
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.keystream.zeroize();
    }
}

/// An AES-GCM key with its GHASH tables.
pub(crate) struct GcmKey(Context);

/// A GCM message in progress: the caller passes the associated data, then the text, and takes the
/// tag.
pub(crate) struct Gcm(Context);

/// Whether GCM encrypts or decrypts a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Encrypt,
    Decrypt,
}

struct Context(NonNull<EVP_CIPHER_CTX>);

// SAFETY: the context is a plain heap object without thread affinity, and we own it alone.
unsafe impl Send for GcmKey {}
// SAFETY: through `&GcmKey` the context is only read, as the source of EVP_CIPHER_CTX_copy, which
// copies its bytes and those of the cipher's state and writes to the destination alone.
unsafe impl Sync for GcmKey {}

impl GcmKey {
    /// `key` has 16 or 32 bytes.
    pub(crate) fn new(key: &[u8]) -> Self {
        let cipher = match key.len() {
            16 => {
                // SAFETY: takes nothing and returns a static.
                unsafe { EVP_aes_128_gcm() }
            }
            32 => {
                // SAFETY: takes nothing and returns a static.
                unsafe { EVP_aes_256_gcm() }
            }
            _ => unreachable!("AES keys of SMB have 16 or 32 bytes"),
        };
        let context = Context::new();
        // SAFETY: the context is initialised and ours; `cipher` is a static; `key` has the length
        // of that cipher; with a null nonce the context waits for a later one.
        let ok = unsafe {
            EVP_CipherInit_ex(
                context.0.as_ptr(),
                cipher,
                ptr::null_mut(),
                key.as_ptr(),
                ptr::null(),
                1,
            )
        };
        assert_eq!(ok, 1);
        Self(context)
    }

    /// Starts a message.
    pub(crate) fn start(&self, direction: Direction, nonce: &[u8; 12]) -> Gcm {
        let context = Context::new();
        // SAFETY: both contexts are initialised; the source is only read (see Sync above), the
        // destination is ours alone.
        let copied = unsafe { EVP_CIPHER_CTX_copy(context.0.as_ptr(), self.0.0.as_ptr()) };
        assert_eq!(copied, 1, "out of memory");
        // SAFETY: the context has its cipher and key; the nonce has the 12 bytes that GCM takes by
        // default; null cipher and key keep the present ones.
        let ok = unsafe {
            EVP_CipherInit_ex(
                context.0.as_ptr(),
                ptr::null(),
                ptr::null_mut(),
                ptr::null(),
                nonce.as_ptr(),
                c_int::from(direction == Direction::Encrypt),
            )
        };
        assert_eq!(ok, 1);
        Gcm(context)
    }
}

impl Gcm {
    /// Adds associated data. The caller adds all of it before the text.
    pub(crate) fn associated(&mut self, data: &[u8]) {
        for chunk in data.chunks(UPDATE_MAX) {
            self.update(ptr::null_mut(), chunk.as_ptr(), chunk.len());
        }
    }

    /// Encrypts or decrypts the next piece of text in place.
    pub(crate) fn text(&mut self, data: &mut [u8]) {
        for chunk in data.chunks_mut(UPDATE_MAX) {
            let bytes = chunk.as_mut_ptr();
            self.update(bytes, bytes, chunk.len());
        }
    }

    /// Encrypts or decrypts the next piece of text into memory of the same length.
    pub(crate) fn text_into(&mut self, from: &[u8], to: &mut [u8]) {
        assert_eq!(from.len(), to.len());
        for (from, to) in from.chunks(UPDATE_MAX).zip(to.chunks_mut(UPDATE_MAX)) {
            self.update(to.as_mut_ptr(), from.as_ptr(), from.len());
        }
    }

    /// `input` must be readable for `len` bytes. `output` must be null, or writable for `len`
    /// bytes and either the same as `input` or disjoint from it.
    fn update(&mut self, output: *mut u8, input: *const u8, len: usize) {
        let len = c_int::try_from(len).expect("chunks are at most UPDATE_MAX");
        let mut written = 0;
        // SAFETY: `input` and `output` come from slices that the caller borrows across this call,
        // `len` is their length; the context is started and ours alone.
        let ok =
            unsafe { EVP_CipherUpdate(self.0.0.as_ptr(), output, &raw mut written, input, len) };
        assert_eq!(ok, 1, "a GCM message is shorter than 64 GiB");
    }

    /// Ends an encryption and returns its tag.
    pub(crate) fn tag(mut self) -> [u8; 16] {
        assert!(self.finish());
        let mut tag = [0_u8; 16];
        self.control(EVP_CTRL_AEAD_GET_TAG, &mut tag);
        tag
    }

    /// Ends a decryption. Whether `tag` is the tag of the message; compares in constant time.
    pub(crate) fn matches(mut self, tag: &[u8; 16]) -> bool {
        let mut expected = *tag;
        self.control(EVP_CTRL_AEAD_SET_TAG, &mut expected);
        self.finish()
    }

    fn finish(&mut self) -> bool {
        let mut unused = [0_u8; 32];
        let mut written = 0;
        // SAFETY: the context is started and ours alone; GCM writes no text at the end, and a
        // block of 32 bytes is the most that any cipher would.
        let ok =
            unsafe { EVP_CipherFinal_ex(self.0.0.as_ptr(), unused.as_mut_ptr(), &raw mut written) };
        ok == 1
    }

    fn control(&mut self, command: c_int, tag: &mut [u8; 16]) {
        let tag = tag.as_mut_ptr().cast();
        // SAFETY: both commands copy 16 bytes, from or to `tag`, which has 16; the context is
        // started and ours alone.
        let ok = unsafe { EVP_CIPHER_CTX_ctrl(self.0.0.as_ptr(), command, 16, tag) };
        assert_eq!(ok, 1);
    }
}

impl Context {
    fn new() -> Self {
        // SAFETY: takes nothing; returns a fresh initialised context or null.
        let context = unsafe { EVP_CIPHER_CTX_new() };
        Self(NonNull::new(context).expect("out of memory"))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: EVP_CIPHER_CTX_new made the context, this is its only owner, and it is freed
        // once. aws-lc overwrites the memory that it frees.
        unsafe { EVP_CIPHER_CTX_free(self.0.as_ptr()) };
    }
}
