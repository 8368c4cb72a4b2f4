//! `vmrun settings`.

use serde_json::Value;
use slotvm_bytecode::limits;

use crate::binary::vmrun;

#[test]
fn settings_tell_the_target_the_features_the_limits_and_the_versions() {
    let text = vmrun(&["settings"]).output();
    for (name, value) in [
        ("vmrun", env!("CARGO_PKG_VERSION")),
        ("slotvm", slotvm::VERSION),
        ("Cranelift", slotvm::CRANELIFT_VERSION),
        ("target", &slotvm::host_target()),
        ("features of this build", "charts, explain, jit, wat"),
        ("features left out", "none"),
        ("tiers", "interpreter, auto, jit (default: auto)"),
    ] {
        assert!(text.contains(&format!("{name:24}{value}\n")), "{name}: {text}");
    }
    let json: Value = serde_json::from_str(&vmrun(&["settings", "--json"]).output()).expect("JSON");
    assert_eq!(json["cranelift"], slotvm::CRANELIFT_VERSION);
    let listed = json["limits"].as_array().expect("there are limits");
    for &(name, max, _) in limits::ALL {
        let found = listed.iter().find(|limit| limit["of"] == "module" && limit["name"] == name);
        assert_eq!(found.expect("each limit is listed")["max"], max, "{name}");
        assert!(text.contains(&format!("| {name} ")), "{name}");
    }
    for (name, max) in slotvm::Limits::default().all() {
        assert!(listed.iter().any(|limit| limit["name"] == name && limit["max"] == max), "{name}");
    }
    let wasi = listed.iter().filter(|limit| limit["of"] == "WASI");
    assert_eq!(wasi.count(), slotvm_wasi::limits::ALL.len());
    let features = json["cpu_features"].as_array().expect("there are features");
    let is_used = |name: &str| {
        let feature = features.iter().find(|feature| feature["name"] == name);
        feature.expect("Cranelift knows it")["is_used"] == true
    };
    #[cfg(target_arch = "x86_64")]
    assert_eq!(is_used("has_sse3"), std::arch::is_x86_feature_detected!("sse3"));
    #[cfg(target_arch = "aarch64")]
    assert_eq!(is_used("has_lse"), std::arch::is_aarch64_feature_detected!("lse"));
}
