//! Fuzz target: bytes as a binary module, decoded, encoded again, printed and parsed, and verified.

use slotvm_bytecode::{DecodeError, Module, VerifyError, decode, encode, text, verify};
use slotvm_bytecode::{decode::DecodeRule, verify::Rule, verify_in_parallel};

use super::{Verdict, ensure, measured};

/// Limit of the memory for decoding, in bytes for each byte of the input.
pub const DECODE_BYTES_PER_BYTE: u64 = 128;
/// Limit of the memory for verification, in bytes for each byte of a binary module.
pub const VERIFY_BYTES_PER_BYTE: u64 = 512;
/// Inputs from this length on are also verified in parallel; shorter ones would not start threads.
const PARALLEL_BYTES_MIN: usize = 128 << 10;

/// Checks the decoder, the encoder and the verifier.
///
/// # Errors
/// Returns the promise that the input broke.
pub fn check(bytes: &[u8]) -> Result<Verdict, String> {
    let decoded = measured("decoding", bytes.len(), DECODE_BYTES_PER_BYTE, || decode(bytes))?;
    match decoded {
        Ok(module) => {
            let encoded = encode(&module);
            ensure(encoded == bytes, || "the module encodes to different bytes".to_owned())?;
            check_module(module, bytes.len())
        }
        Err(error) => check_decode_error(&error, bytes.len()).map(|()| Verdict::Refused),
    }
}

/// Checks the text and the verification of a module that was loaded from `n_bytes` bytes.
///
/// # Errors
/// Returns the promise that the input broke.
pub fn check_module(module: Module, n_bytes: usize) -> Result<Verdict, String> {
    let as_text = check_text(&module);
    let in_parallel = (n_bytes >= PARALLEL_BYTES_MIN).then(|| verify_in_parallel(module.clone()));
    let verified = measured("verifying", n_bytes, VERIFY_BYTES_PER_BYTE, || verify(module))?;
    if let Some(in_parallel) = in_parallel {
        let same = match (&in_parallel, &verified) {
            (Err(found), Err(expected)) => found == expected,
            (Ok(found), Ok(expected)) => format!("{found:?}") == format!("{expected:?}"),
            _ => false,
        };
        ensure(same, || "verification in several threads has another result".to_owned())?;
    }
    // The assembler enforces the limits, too.
    if !verified.as_ref().is_err_and(|error| error.rule() == Rule::Limit) {
        as_text?;
    }
    match verified {
        Ok(_) => Ok(Verdict::Accepted),
        Err(error) => check_verify_error(&error).map(|()| Verdict::Loaded),
    }
}

/// Checks that the printed text of a module parses as the same module, if its code decodes.
fn check_text(module: &Module) -> Result<(), String> {
    let Ok(source) = text::print(module) else { return Ok(()) };
    let parsed = text::parse(&source).map_err(|error| format!("its text: {error}"))?;
    ensure(parsed == *module, || format!("its text parses as another module:\n{source}"))
}

fn check_decode_error(error: &DecodeError, n_bytes: usize) -> Result<(), String> {
    let message = error.to_string();
    let names_all = error.offset() <= n_bytes
        && !error.detail().is_empty()
        && message.starts_with(&format!("byte {:#x}", error.offset()))
        && message.contains(error.rule().name());
    ensure(names_all, || format!("the error lacks a place or a rule: {message}"))
}

fn check_verify_error(error: &VerifyError) -> Result<(), String> {
    let message = error.to_string();
    let names_all = message.starts_with(&error.place().to_string())
        && !error.detail().is_empty()
        && message.contains(error.rule().name());
    ensure(names_all, || format!("the error lacks a place or a rule: {message}"))
}

/// Checks a module of a loader whose modules always verify if they are within the limits.
///
/// # Errors
/// Returns the promise that the input broke.
pub fn check_valid_module(module: Module, n_bytes: usize) -> Result<Verdict, String> {
    let encoded = encode(&module);
    match decode(&encoded) {
        Ok(decoded) => {
            ensure(decoded == module, || "its binary form decodes to another module".to_owned())?;
        }
        // The verifier refuses it by the same rule.
        Err(error) if error.rule() == DecodeRule::Limit => {}
        Err(error) => return Err(format!("its binary form: {error}")),
    }
    match check_module(module.clone(), n_bytes)? {
        Verdict::Accepted => Ok(Verdict::Accepted),
        verdict => match verify(module) {
            Err(error) if error.rule() == Rule::Limit => Ok(verdict),
            Err(error) => Err(format!("it does not verify: {error}")),
            Ok(_) => Err("expected the verifier to refuse the module; it verifies".to_owned()),
        },
    }
}
