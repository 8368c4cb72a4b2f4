//! `vmrun crosscheck`: the interpreter beside native code, in lockstep of calls and effects.
//!
//! A program runs in the interpreter with its real host functions, whose answers are recorded (`tape`). Native code
//! gets the same answers, in a process of its own (`native`), and is compared at each call of a host function and at
//! the end of each call from the host (`points`): calls and their parameters, memory, globals, tables, results,
//! traps with their places, and fuel. The first difference is searched for in functions and passes (`bisect`), and
//! the program is reduced while it still shows it (`reduce`).

mod bisect;
mod difference;
mod guest;
mod native;
mod points;
mod reduce;
mod run;
mod subject;
mod tape;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use slotvm::{PassSet, SlotMode, TrapCode};
use slotvm_bytecode::printable::Printable;
use slotvm_bytecode::{VerifiedModule, encode, text};

use bisect::Culprit;
use native::{Patience, Verdict, Workshop};
use reduce::Reducer;
use run::{Plan, STACK_CELLS};
use subject::Subject;
use vmrun_base::error::{CliError, EXIT_FAILURE, note};
use vmrun_base::load::{self, load};
use vmrun_base::output::print;
use vmrun_base::progress::Progress;
use vmrun_cli::CrosscheckArgs;

/// Compares the engines, and returns the exit code: 0 if they agree.
///
/// # Errors
/// Fails if the program cannot be loaded or a process cannot be started; not if the engines differ.
pub fn crosscheck(args: &CrosscheckArgs) -> Result<u8, CliError> {
    let progress = Progress::spinner("comparing");
    let module = Arc::new(load(&args.program)?.module);
    let mut plan = Plan {
        slots: args.code.slots,
        passes: args.code.passes.set,
        by_function: Vec::new(),
        fuel: args.fuel.max,
        fuel_max: None,
        stack_cells: None,
    };
    let workshop = Workshop::new()?;
    let mut subject = Subject::record(args, module, &plan)?;
    workshop.prepare(&subject)?;
    let mut verdict = workshop.run(&subject, &plan, Patience::Long)?;
    if subject.trace.overflows || verdict.traps_by(TrapCode::StackOverflow) {
        // Engines have room for different depths of calls, unless the depth is counted.
        plan.stack_cells = Some(STACK_CELLS);
        subject = subject.retraced(&plan, 0..0)?;
        workshop.prepare(&subject)?;
        verdict = workshop.run(&subject, &plan, Patience::Long)?;
    }
    if let Verdict::Differs { point, .. } = verdict {
        let window = subject.unhashed_before(point);
        if !window.is_empty() {
            // Memory may have differed before the point at which it was compared.
            subject = subject.retraced(&plan, window)?;
            workshop.prepare(&subject)?;
            verdict = workshop.run(&subject, &plan, Patience::Long)?;
        }
    }
    drop(progress);
    if verdict == Verdict::Equal {
        let n = subject.trace.points.len();
        print(&format!(
            "native code ({}) agrees with the interpreter at {n} points\n",
            args.code.slots
        ))?;
        return Ok(0);
    }
    let check = Check { args, plan, workshop };
    check.explain(&subject, &verdict)?;
    Ok(EXIT_FAILURE)
}

/// Executes the job in a folder: one native run.
///
/// # Errors
/// Fails if the job cannot be read or its result cannot be written.
pub fn native(folder: &Path) -> Result<(), CliError> {
    native::execute(folder)
}

/// A comparison that found a difference.
struct Check<'a> {
    args: &'a CrosscheckArgs,
    plan: Plan,
    workshop: Workshop,
}

impl Check<'_> {
    /// Finds the origin of a difference, reduces the program, and reports both.
    fn explain(&self, subject: &Subject, verdict: &Verdict) -> Result<(), CliError> {
        let heading = format!("native code ({}) differs from the interpreter", self.plan.slots);
        print(&format!("{heading}{}\n", self.described(subject, verdict)?))?;
        let module = &subject.module;
        let funcs = module.n_imported_funcs()..module.n_funcs();
        let differs =
            |plan: &Plan| Ok(self.workshop.run(subject, plan, Patience::Long)? != Verdict::Equal);
        let culprit = bisect::bisect(&self.plan, funcs, differs)?;
        print(&self.origin(subject, &culprit)?)?;
        let progress = Progress::spinner("reducing the program");
        let (reduced, n_checks) = self.reduce(subject, verdict, &culprit)?;
        drop(progress);
        let path = self.output();
        let text = text::print(reduced.module());
        let text = text.map_err(|error| CliError::module(&path, error))?;
        load::write(&path, text.as_bytes())?;
        let n_insts = reduce::n_insts(&reduced);
        print(&format!(
            "reduced: {n_insts} instructions, after {n_checks} checks, in {}\n{}",
            path.display(),
            self.of_reduced(subject, &reduced, verdict)?
        ))
    }

    /// The first difference, in words, after the words "differs from the interpreter".
    fn described(&self, subject: &Subject, verdict: &Verdict) -> Result<String, CliError> {
        Ok(match verdict {
            Verdict::Equal => String::new(),
            Verdict::Refused(message) => format!(": it cannot be made\n  {message}"),
            Verdict::Crashed(message) => format!(": it crashes\n  {message}"),
            Verdict::Hung(seconds) => format!(": it does not end in {seconds} s of CPU time"),
            Verdict::Differs { point, detail } => {
                let (n, module) = (subject.trace.points.len(), &subject.module);
                let lines = match subject.detail(&self.plan, *point)? {
                    Some(expected) => difference::lines(&expected, detail, module),
                    None => vec![
                        "interpreter: has ended".to_owned(),
                        format!("native code: {}", difference::event(&detail.event, module)),
                    ],
                };
                let lines: String = lines.iter().map(|line| format!("\n  {line}")).collect();
                format!(" at point {} of {n}{lines}", point + 1)
            }
        })
    }

    /// The origin of a difference, in words.
    fn origin(&self, subject: &Subject, culprit: &Culprit) -> Result<String, CliError> {
        match culprit {
            Culprit::Passes { func, is_alone, passes } => {
                let name = subject.module.func_name(*func);
                let others = if *is_alone { "" } else { ", with passes in functions before it" };
                let passes = match passes.as_slice() {
                    [] => "several; the engines differ without each one of them".to_owned(),
                    [pass] => (*pass).to_owned(),
                    several => format!("{} (each one is needed)", several.join(", ")),
                };
                let name = Printable(&name);
                Ok(format!("function: {name} (number {func}){others}\npass: {passes}\n"))
            }
            Culprit::Other => {
                let mut agreeing = Vec::new();
                for slots in SlotMode::ALL.into_iter().filter(|&slots| slots != self.plan.slots) {
                    let plan = Plan { slots, passes: PassSet::none(), ..self.plan.clone() };
                    if self.workshop.run(subject, &plan, Patience::Long)? == Verdict::Equal {
                        agreeing.push(slots.name());
                    }
                }
                let modes = if agreeing.is_empty() { "none".into() } else { agreeing.join(", ") };
                let pass = "none; the engines differ without passes, too";
                Ok(format!("pass: {pass}\nother slot modes that agree: {modes}\n"))
            }
        }
    }

    /// Reduces the program while native code fails in the same way, and, if a pass is the origin, does not without it.
    fn reduce(
        &self,
        subject: &Subject,
        verdict: &Verdict,
        culprit: &Culprit,
    ) -> Result<(Arc<VerifiedModule>, usize), CliError> {
        let sound = match culprit {
            Culprit::Passes { passes, .. } => Some(match passes.first() {
                Some(pass) => bisect::without(self.plan.passes, pass),
                None => PassSet::none(),
            }),
            Culprit::Other => None,
        };
        let sound = sound.map(|passes| Plan { passes, ..self.plan.clone() });
        let exports = subject.calls.iter().map(|call| call.name.clone());
        let mut last = subject.clone();
        let mut has_hung = false;
        let shows = |module: &Arc<VerifiedModule>| {
            let path = self.workshop.program();
            let Some(candidate) = last.replaced(&path, module.clone(), &self.plan) else {
                return Ok(false);
            };
            fs::write(&path, encode(module.module())).map_err(CliError::file(&path))?;
            self.workshop.prepare(&candidate)?;
            if has_hung && self.is_endless(&candidate)? {
                return Ok(false);
            }
            let found = self.workshop.run(&candidate, &self.plan, Patience::Short)?;
            has_hung |= matches!(
                (verdict, &found),
                (Verdict::Crashed(_) | Verdict::Differs { .. }, Verdict::Hung(_))
            );
            if !verdict.is_like(&found) {
                return Ok(false);
            }
            if let Some(sound) = &sound
                && self.workshop.run(&candidate, sound, Patience::Short)? != Verdict::Equal
            {
                return Ok(false);
            }
            last = candidate;
            Ok(true)
        };
        let exports = exports.chain(["default_size".to_owned()]).collect();
        let mut reducer = Reducer::new(subject.module.clone(), exports, shows);
        reducer.reduce()?;
        Ok(reducer.finish())
    }

    /// Whether native code uses much more fuel than the interpreter. That is found sooner than an endless loop, but
    /// fuel changes the code, so that the answer may be wrong.
    fn is_endless(&self, candidate: &Subject) -> Result<bool, CliError> {
        let plan = Plan { fuel_max: Some(candidate.fuel_max()), ..self.plan.clone() };
        let found = self.workshop.run(candidate, &plan, Patience::Short)?;
        Ok(plan.fuel.is_none() && found.traps_by(TrapCode::OutOfFuel))
    }

    /// The difference that the reduced program shows, in words.
    fn of_reduced(
        &self,
        subject: &Subject,
        reduced: &Arc<VerifiedModule>,
        verdict: &Verdict,
    ) -> Result<String, CliError> {
        let path = self.output();
        let Some(candidate) = subject.replaced(&path, reduced.clone(), &self.plan) else {
            return Ok(String::new());
        };
        self.workshop.prepare(&candidate)?;
        let found = self.workshop.run(&candidate, &self.plan, Patience::Long)?;
        if !verdict.is_like(&found) {
            note("the reduced file does not show the difference by itself");
        }
        Ok(format!("there, native code differs{}\n", self.described(&candidate, &found)?))
    }

    /// The path of the reduced program.
    fn output(&self) -> PathBuf {
        let default = || {
            let program = &self.args.program;
            let name = match load::is_standard(program) {
                true => "stdin".as_ref(),
                false => program.file_name().unwrap_or_default(),
            };
            Path::new(name).with_extension("reduced.vasm")
        };
        self.args.output.path.clone().unwrap_or_else(default)
    }
}
