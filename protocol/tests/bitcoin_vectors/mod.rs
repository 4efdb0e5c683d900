//! Reads the vectors of the BIPs; decides nothing.

use serde_json::Value;

/// One example of a PSBT.
pub(crate) struct Example {
    /// The BIP, such as `bip0174`.
    pub(crate) bip: String,
    /// The heading that it stands under.
    pub(crate) section: String,
    /// What it is an example of.
    pub(crate) case: String,
    /// The PSBT.
    pub(crate) bytes: Vec<u8>,
}

/// All examples of BIP-174, BIP-370 and BIP-371.
pub(crate) fn psbt_examples() -> Vec<Example> {
    let file: Value = serde_json::from_str(include_str!("../data/bip-psbt.json")).unwrap();
    let mut examples = Vec::new();
    for (bip, list) in file.as_object().unwrap() {
        for example in list.as_array().unwrap() {
            let text = |key: &str| example[key].as_str().unwrap().to_owned();
            examples.push(Example {
                bip: bip.clone(),
                section: text("section"),
                case: text("case"),
                bytes: base64(&text("psbt_base64")),
            });
        }
    }
    examples
}

fn base64(text: &str) -> Vec<u8> {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = Vec::new();
    let (mut buffer, mut bits) = (0_u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        let number = alphabet.iter().position(|known| *known == byte).unwrap();
        buffer = (buffer << 6 | u32::try_from(number).unwrap()) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push(u8::try_from(buffer >> bits & 0xff).unwrap());
        }
    }
    out
}
