//! The examples that Microsoft published with its explanation of SMB's keys ("SMB 2 and SMB 3
//! security in Windows 10: the anatomy of signing and cryptographic keys", "SMB 3.1.1 Encryption
//! in Windows 10", "Encryption in SMB 3.0: A protocol perspective").

use smbeam_crypto::derive::{KeySchedule, SessionKeys, channel_signing_key, session_keys};
use smbeam_crypto::{
    Cipher, EncryptionKey, PreauthHash, SigningAlgorithm, SigningKey, SigningNonce,
};

#[test]
fn preauth_hash_follows_the_messages_of_a_session_setup() {
    let mut hash = PreauthHash::new();
    for (message, value) in MESSAGES {
        hash.update(&bytes(message));
        assert_eq!(hash.as_bytes().as_slice(), bytes(value));
    }
}

#[test]
fn dialect_3_0_derives_the_keys_of_both_channels() {
    let keys = keys_3_0("7cd451825d0450d235424e44ba6e78cc");
    assert_eq!(keys.signing, array("0b7e9c5cac36c0f6ea9ab275298cedce"));
    assert_eq!(keys.application, array("bb23a4575aa26c721af525af15a87b4f"));
    let encryption = keys.encryption.as_ref().expect("3.0 has a cipher");
    assert_eq!(
        encryption.client_to_server.as_bytes(),
        bytes("fad27796665b313ebb578f388632b4f7")
    );
    assert_eq!(
        encryption.server_to_client.as_bytes(),
        bytes("b0f0427f7ceb416d1d9dcc0cd4f99447")
    );

    let bound = array("4e01a2b313bcf660cc250bef021aede6");
    assert_eq!(
        channel_signing_key(KeySchedule::Smb30, &bound),
        array("ba1a17dbbfec349bca105563d598952f")
    );
}

#[test]
fn dialect_3_1_1_derives_its_keys_from_the_preauth_hash() {
    let keys = keys_3_1_1("270e1ba896585eeb7af3472d3b4c75a7", MESSAGES[4].1);
    assert_eq!(keys.signing, array("73fe7a9a77bef0bde49c650d8ccb5f76"));
    assert_eq!(keys.application, array("6d7ad7954e9ec61e907b4d473dc178ff"));
    let encryption = keys.encryption.as_ref().expect("a cipher was negotiated");
    assert_eq!(
        encryption.client_to_server.as_bytes(),
        bytes("629bcbc54422a0f572b97f45989b6073")
    );
    assert_eq!(
        encryption.server_to_client.as_bytes(),
        bytes("e2af0dcefac68da71a0dfbd0d1350d74")
    );
}

#[test]
fn last_session_setup_response_carries_the_cmac_signature() {
    let keys = keys_3_1_1("270e1ba896585eeb7af3472d3b4c75a7", MESSAGES[4].1);
    let key = SigningKey::new(SigningAlgorithm::AesCmac, &keys.signing);
    let nonce = SigningNonce {
        message_id: 3,
        from_server: true,
        is_cancel: false,
    };
    let mut message = bytes(SIGNED_RESPONSE);
    let signature = message[48..64].try_into().expect("16 bytes");
    assert!(key.verify(nonce, &[&message], &signature));
    assert!(key.verify(nonce, &[&message[..64], &message[64..]], &signature));
    message[70] ^= 1;
    assert!(!key.verify(nonce, &[&message], &signature));
}

#[test]
fn dialect_3_0_encrypts_and_decrypts_with_ccm() {
    let keys = keys_3_0("b4546771b515f766a86735532dd6c4f0");
    let encryption = keys.encryption.as_ref().expect("3.0 has a cipher");
    assert_eq!(
        encryption.client_to_server.as_bytes(),
        bytes("261b72350558f2e9dcf613070383edbf")
    );
    assert_eq!(
        encryption.server_to_client.as_bytes(),
        bytes("8fe2b57ec34d2db5b1a9727f526bbdb5")
    );
    let key = EncryptionKey::new(Cipher::Aes128Ccm, encryption.client_to_server.as_bytes());
    encrypts_and_decrypts(&key, CCM_WRITE_PLAIN, CCM_WRITE_ENCRYPTED);
    let key = EncryptionKey::new(Cipher::Aes128Ccm, encryption.server_to_client.as_bytes());
    encrypts_and_decrypts(&key, CCM_RESPONSE_PLAIN, CCM_RESPONSE_ENCRYPTED);
}

#[test]
fn dialect_3_1_1_encrypts_and_decrypts_with_gcm() {
    let keys = keys_3_1_1("419fddf34c1e001909d362ae7fb6af79", GCM_PREAUTH);
    let encryption = keys.encryption.as_ref().expect("a cipher was negotiated");
    assert_eq!(
        encryption.client_to_server.as_bytes(),
        bytes("a2f5e80e5d59103034f32e52f698e5ec")
    );
    assert_eq!(
        encryption.server_to_client.as_bytes(),
        bytes("748c50868c90f302962a5c35f5f9a8bf")
    );
    let key = EncryptionKey::new(Cipher::Aes128Gcm, encryption.client_to_server.as_bytes());
    encrypts_and_decrypts(&key, GCM_WRITE_PLAIN, GCM_WRITE_ENCRYPTED);
    let key = EncryptionKey::new(Cipher::Aes128Gcm, encryption.server_to_client.as_bytes());
    encrypts_and_decrypts(&key, GCM_RESPONSE_PLAIN, GCM_RESPONSE_ENCRYPTED);
}

/// `encrypted` is a transform header (52 bytes) and the ciphertext. [MS-SMB2] 2.2.41
fn encrypts_and_decrypts(key: &EncryptionKey, plain: &str, encrypted: &str) {
    let (plain, encrypted) = (bytes(plain), bytes(encrypted));
    let (header, text) = encrypted.split_at(52);
    let tag = header[4..20].try_into().expect("16 bytes");
    let nonce = &header[20..20 + key.cipher().nonce_len()];
    let aad = &header[20..];

    let mut message = text.to_vec();
    key.decrypt_in_place(nonce, aad, &mut message, &tag)
        .expect("the published tag matches");
    assert_eq!(message, plain);
    assert_eq!(key.encrypt_in_place(nonce, aad, &mut message), tag);
    assert_eq!(message, text);
}

fn keys_3_0(session_key: &str) -> SessionKeys {
    let key = array(session_key);
    session_keys(KeySchedule::Smb30, &key, &key, Some(Cipher::Aes128Ccm))
}

fn keys_3_1_1(session_key: &str, preauth: &str) -> SessionKeys {
    let key = array(session_key);
    let hash = PreauthHash::from(array::<64>(preauth));
    session_keys(
        KeySchedule::Smb311(&hash),
        &key,
        &key,
        Some(Cipher::Aes128Gcm),
    )
}

fn array<const N: usize>(hex: &str) -> [u8; N] {
    bytes(hex)
        .try_into()
        .expect("the constant has the right length")
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).expect("a constant in hex") as u8;
    hex.as_bytes()
        .chunks(2)
        .map(|pair| digit(&pair[0]) << 4 | digit(&pair[1]))
        .collect()
}

/// Each message of NEGOTIATE and SESSION_SETUP, and the hash after it.
const MESSAGES: [(&str, &str); 5] = [
    (NEGOTIATE_REQUEST, HASH_1),
    (NEGOTIATE_RESPONSE, HASH_2),
    (SESSION_SETUP_REQUEST_1, HASH_3),
    (SESSION_SETUP_RESPONSE_1, HASH_4),
    (SESSION_SETUP_REQUEST_2, HASH_5),
];
const NEGOTIATE_REQUEST: &str = "\
    fe534d4240000100000000000000800000000000000000000100000000000000fffe00000000000000000000\
    000000000000000000000000000000000000000024000500000000003f000000ecd86f326276024f9f7752b8\
    9bb33f3a70000000020000000202100200030203110300000100260000000000010020000100fa49e6578f1f\
    3a9f4cd3e9cc14a67aa884b3d05844e0e5a118225c15887f32ff00000200060000000000020002000100";
const NEGOTIATE_RESPONSE: &str = "\
    fe534d4240000100000000000000010001000000000000000100000000000000fffe00000000000000000000\
    0000000000000000000000000000000000000000410001001103020039cbcaf329714942bdce5d60f09ab3fb\
    2f000000000080000000800000008000d8dae5adcbaed00109094ab095aed00180004001c00100006082013c\
    06062b0601050502a08201303082012ca01a3018060a2b06010401823702021e060a2b06010401823702020a\
    a282010c048201084e45474f45585453010000000000000060000000700000007c7cc0fd06d6362d02dde1cf\
    343bfe292900f49750b4aa97934d9c4296b26e51fd370471b235e15a50dae15bd5489c870000000000000000\
    600000000100000000000000000000005c33530deaf90d4db2ec4ae3786ec3084e45474f4558545303000000\
    0100000040000000980000007c7cc0fd06d6362d02dde1cf343bfe295c33530deaf90d4db2ec4ae3786ec308\
    40000000580000003056a05430523027802530233121301f06035504031318546f6b656e205369676e696e67\
    205075626c6963204b65793027802530233121301f06035504031318546f6b656e205369676e696e67205075\
    626c6963204b6579010026000000000001002000010060a3c3b95c3c7ccd51ec536648d9b3ac74c483ca5b65\
    385a251117beb30712e50000020004000000000001000200";
const SESSION_SETUP_REQUEST_1: &str = "\
    fe534d4240000100000000000100800000000000000000000200000000000000fffe00000000000000000000\
    000000000000000000000000000000000000000019000001010000000000000058004a000000000000000000\
    604806062b0601050502a03e303ca00e300c060a2b06010401823702020aa22a04284e544c4d535350000100\
    0000978208e200000000000000000000000000000000060380250000000f";
const SESSION_SETUP_RESPONSE_1: &str = "\
    fe534d4240000100160000c00100010001000000000000000200000000000000fffe00000000000019000000\
    0010000000000000000000000000000000000000090000004800b300a181b03081ada0030a0101a10c060a2b\
    06010401823702020aa281970481944e544c4d53535000020000000c000c003800000015828ae20d1d8ba311\
    79d008000000000000000050005000440000000a0092270000000f53005500540033003100310002000c0053\
    005500540033003100310001000c0053005500540033003100310004000c0053005500540033003100310003\
    000c0053005500540033003100310007000800a1a1f5adcbaed00100000000";
const SESSION_SETUP_REQUEST_2: &str = "\
    fe534d4240000100000000000100800000000000000000000300000000000000fffe00000000000019000000\
    00100000000000000000000000000000000000001900000101000000000000005800cf010000000000000000\
    a18201cb308201c7a0030a0101a28201aa048201a64e544c4d53535000030000001800180090000000ee00ee\
    00a80000000c000c00580000001a001a0064000000120012007e0000001000100096010000158288e2060380\
    250000000fecac77a5f385a8bf9c38c706eeeddcd3530055005400330031003100610064006d0069006e0069\
    00730074007200610074006f0072004400520049005600450052003300310031000000000000000000000000\
    0000000000000000000000000063078eb639fe03e20a231c3ae3bf23080101000000000000a1a1f5adcbaed0\
    01bc4ad05f223cc90f0000000002000c0053005500540033003100310001000c005300550054003300310031\
    0004000c0053005500540033003100310003000c0053005500540033003100310007000800a1a1f5adcbaed0\
    0106000400020000000800300030000000000000000000000000300000b61fefcaa857ea57bf1edcebf8974b\
    8e0eba5a6dfd9d07a31d11b548f8c9d0cc0a0010000000000000000000000000000000000009001600630069\
    00660073002f005300550054003300310031000000000000000000000000003b9bdff38f5ee8f9663f11a0f4\
    c03a78a31204100100000063775a9a5fd97f0600000000";
const HASH_1: &str = "\
    dd94efc5321bb618a2e208ba8920d2f422992526947a409b5037de1e0fe8c7362b8c47122594cde0ce26aa9d\
    fc8bcdbde0621957672623351a7540f1e54a0426";
const HASH_2: &str = "\
    324bfa92a4f3a190e466ebea08d9c110dc88bfed758d9846ecc6f541cc1d02ae3c94a79f36011e997e13f841\
    b91b50957ad07b19c8e2539c0b23fdae09d2c513";
const HASH_3: &str = "\
    ac0b0f2b9986257700365e416d142a6edc96df03594a19e52a15f6bd0d041cd5d432f8ed42c55e33197a50c9\
    ec00f1462b50c592211b1471a04b56088fdfd5f9";
const HASH_4: &str = "\
    2729e3440dfddd839e37193f6e8f20c20cefb3469e453a70cd980eec06b8835740a73760085633364c898989\
    5ece81bf102deeb14d4b7d48afa76901a7a38387";
const HASH_5: &str = "\
    0dd13628cc3ed218ef9df9772d436d0887ab9814bfae63a80aa845f36909db7928622dddad522d9751640a45\
    9762c5a9d6bb084cbb3ce6bdadef5d5bce3c6c01";
const SIGNED_RESPONSE: &str = "\
    fe534d4240000100000000000100800009000000000000000300000000000000fffe00000000000019000000\
    00100000ebe146da120ba25fc3376a49dfe31bc10900000048001d00a11b3019a0030a0100a3120410010000\
    003b453cdc3524164200000000";
const CCM_WRITE_PLAIN: &str = "\
    fe534d4240000100000000000900400008000000000000000400000000000000fffe00000100000011000014\
    00e4080000000000000000000000000000000000310070001700000000000000000000001501000039000002\
    010000003902000000000000000000007000000000000000536d623320656e6372797074696f6e2074657374\
    696e67";
const CCM_WRITE_ENCRYPTED: &str = "\
    fd534d4281a286535415445dae393921e44fa42e66e69a111892584fb5ed524a744da3ee8700000000000100\
    1100001400e4080025c8fee16605a437832d1cd52da9f4645333482a175fe5384563f45fcdafaef38bc62ba4\
    d5c62897996625a44c29be5658de2e6117585779e7b59ffd971278d08580d7fa899e410e910eabf5aa1db430\
    50b33b49182637759ac15d84bfcdf5b6b238993c0f4cf4d6012023f6c627297075d84b7803912d0a96396344\
    53595ef3e33ffe4e7ac2ab";
const CCM_RESPONSE_PLAIN: &str = "\
    fe534d4240000100000000000900210009000000000000000400000000000000fffe00000100000011000014\
    00e408000000000000000000000000000000000011000000170000000000000000000000";
const CCM_RESPONSE_ENCRYPTED: &str = "\
    fd534d42a6015530a18f6d9affe22afae8e6648486000000000000001100001400e408005000000000000100\
    1100001400e40800dbf46435c5f14169293ce079e344479bf670227e49873f458672c3098dac467dd5809f36\
    9d674091665157871483e01f7becd02064eac3e235f913668bbc2f097980d4b378f1993eff6e60d177309e5b";
const GCM_PREAUTH: &str = "\
    b23f3cbfd69487d9832b79b1594a367cdd950909b774c3a4c412b4fcea9edddba7db256ba2ea30e977f11f9b\
    113247578e0e915c6d2a513b8f2fca5707dc8770";
const GCM_WRITE_PLAIN: &str = "\
    fe534d4240000100000000000900010008000000000000000500000000000000fffe00000100000025000000\
    0010000000000000000000000000000000000000310070001700000000000000000000000600000004000000\
    010000000400000000000000000000007000000000000000536d623320656e6372797074696f6e2074657374\
    696e67";
const GCM_WRITE_ENCRYPTED: &str = "\
    fd534d42bd73d97d2bc9001bcafac0fdff5feebcc7d6822d269caf48904c664c000000008700000000000100\
    25000000001000006ecdd2a7afc7b47763057a041b8fd4daffe990b70c9e09d36c084e02d14ef247f8bde38a\
    cf6256f8b1d3b56f77fbdeb312fea5e92cbcc1ed8fb2ebbfaa75e49a4a394bb44576545567c24d4c014d47c9\
    fbdfdafd2c4f9b72f8d256452620a299f48e29e53d6b61d1c13a19e91af013f00d17e3abc2fc3d36c8c1b6b9\
    3973253852dbd442e46ee8";
const GCM_RESPONSE_PLAIN: &str = "\
    fe534d4240000100000000000900010001000000000000000500000000000000fffe00000100000025000000\
    001000000000000000000000000000000000000011000000170000000000000000000000";
const GCM_RESPONSE_ENCRYPTED: &str = "\
    fd534d42acbe1cb7ed343adf1725ef144d90d4b0e06831dd2e8eb7b400000000000000005000000000000100\
    250000000010000026bbbf949983a6c1c796559d0f2c510cb651d1f7b6ac8ded32a2a0b8f2d793a815c6f6b8\
    48d69767a215841a42d400ae6ddb5f0b44173a014973321fdd7950da6179159b82e03c9e18a050ff0ea1c967";
