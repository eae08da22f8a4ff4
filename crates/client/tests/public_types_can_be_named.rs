//! A program that depends on this crate alone can name the types that its functions and fields use,
//! and set the options that have them.

use smbeam_client::{
    Capabilities, Cipher, Dialect, Guid, IoSource, Options, SessionInfo, Share, ShareType,
    SigningAlgorithm, Source,
};

#[test]
fn protection_and_dialects_are_set_by_name() {
    let options = Options::default()
        .dialects(vec![Dialect::SMB_3_1_1])
        .ciphers(vec![Cipher::Aes256Gcm])
        .signing_algorithms(vec![SigningAlgorithm::AesCmac]);
    assert_eq!(options.dialects, [Dialect::SMB_3_1_1]);
    assert_eq!(options.ciphers, [Cipher::Aes256Gcm]);
    assert_eq!(options.signing_algorithms, [SigningAlgorithm::AesCmac]);
}

#[test]
fn results_are_named() {
    let _: fn(&SessionInfo) -> Dialect = |info| info.dialect;
    let _: fn(&SessionInfo) -> Option<Cipher> = |info| info.cipher;
    let _: fn(&SessionInfo) -> Guid = |info| info.server_guid;
    let _: fn(&SessionInfo) -> Capabilities = |info| info.capabilities;
    let _: fn(&Share) -> ShareType = Share::share_type;
    let source: Source = Vec::from(&b"bytes"[..]).into_source();
    assert_eq!(Vec::<u8>::from_source(source), b"bytes");
}
