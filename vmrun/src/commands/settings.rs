//! `vmrun settings`: the machine, the features of it and of this build that are used, the limits, and the versions.

use std::fmt::Write as _;

use serde::Serialize;
use slotvm::{Config, Engine, Limits, SlotMode, Tier};
use slotvm_bytecode::limits;

use crate::cli::SettingsArgs;
use crate::error::CliError;
use crate::output::{print, print_json};
use crate::table::table;

/// All settings.
#[derive(Serialize)]
struct Settings {
    vmrun: &'static str,
    slotvm: &'static str,
    /// `null` in a build without native code.
    cranelift: Option<&'static str>,
    target: String,
    build_features: Vec<Feature>,
    tiers: Vec<&'static str>,
    default_tier: &'static str,
    slot_modes: Vec<&'static str>,
    default_slot_mode: &'static str,
    cpu_features: Vec<Feature>,
    limits: Vec<Limit>,
}

/// A feature, and whether it is there.
#[derive(Serialize)]
struct Feature {
    name: &'static str,
    is_used: bool,
}

#[derive(Serialize)]
struct Limit {
    /// The thing that is limited: a module, a store, or the requests of a WASI program.
    of: &'static str,
    name: &'static str,
    max: u64,
}

pub(super) fn settings(args: &SettingsArgs) -> Result<(), CliError> {
    let settings = Settings::new()?;
    if args.json.is_asked { print_json(&settings) } else { print(&settings.text()) }
}

impl Settings {
    fn new() -> Result<Settings, CliError> {
        let engine = Engine::new(Config::new().tier(Tier::BEST))?;
        let feature = |(name, is_used)| Feature { name, is_used };
        let cranelift = slotvm::CRANELIFT_VERSION;
        Ok(Settings {
            vmrun: env!("CARGO_PKG_VERSION"),
            slotvm: slotvm::VERSION,
            cranelift: (!cranelift.is_empty()).then_some(cranelift),
            target: slotvm::host_target(),
            build_features: build_features().map(feature).into(),
            tiers: Tier::ALL.iter().map(|tier| tier.name()).collect(),
            default_tier: Tier::default().name(),
            slot_modes: SlotMode::ALL.iter().map(|mode| mode.name()).collect(),
            default_slot_mode: SlotMode::default().name(),
            cpu_features: engine.machine_features().into_iter().map(feature).collect(),
            limits: all_limits(),
        })
    }

    fn text(&self) -> String {
        let names = |features: &[Feature], is_used: bool| {
            let features = features.iter().filter(|feature| feature.is_used == is_used);
            list(&features.map(|feature| feature.name).collect::<Vec<_>>())
        };
        let mut text = String::new();
        for (name, value) in [
            ("vmrun", self.vmrun.to_owned()),
            ("slotvm", self.slotvm.to_owned()),
            ("Cranelift", self.cranelift.unwrap_or("none").to_owned()),
            ("target", self.target.clone()),
            ("features of this build", names(&self.build_features, true)),
            ("features left out", names(&self.build_features, false)),
            ("tiers", format!("{} (default: {})", list(&self.tiers), self.default_tier)),
            (
                "slot modes",
                format!("{} (default: {})", list(&self.slot_modes), self.default_slot_mode),
            ),
            ("CPU features in use", names(&self.cpu_features, true)),
            ("CPU features not found", names(&self.cpu_features, false)),
        ] {
            let _ = writeln!(text, "{name:24}{value}");
        }
        let mut limits = table(2, ["limit of", "name", "max"]);
        for limit in &self.limits {
            limits.add_row([limit.of, limit.name, &limit.max.to_string()]);
        }
        let _ = writeln!(text, "\n{limits}");
        text
    }
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The features of this build, of `vmrun` and of what it is built on.
fn build_features() -> [(&'static str, bool); 4] {
    [
        ("charts", cfg!(feature = "charts")),
        ("explain", cfg!(feature = "explain")),
        ("jit", Tier::ALL.contains(&Tier::Jit)),
        ("wat", cfg!(feature = "wat")),
    ]
}

fn all_limits() -> Vec<Limit> {
    let limit = |of| move |name, max| Limit { of, name, max };
    let (module, store, wasi) = (limit("module"), limit("store"), limit("WASI"));
    let of_module = limits::ALL.iter().map(|&(name, max, _)| module(name, max));
    let of_store = Limits::default().all().map(|(name, max)| store(name, max));
    let of_wasi = slotvm_wasi::limits::ALL.map(|(name, max)| wasi(name, max));
    of_module.chain(of_store).chain(of_wasi).collect()
}
