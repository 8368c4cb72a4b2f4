//! The calls that run a program.
//!
//! A WASI program exports `_start`, and ends with an exit code. Any other program exports `main`. The `i32`
//! parameter of `main`, if it has one, is the first program argument, or the exported global `default_size`
//! without arguments. `--invoke` calls any exported function. Before `main` or an invoked function, an exported
//! `_initialize` is called.

use slotvm::{Extern, Func, Instance, Store, Val, ValType};
use slotvm_bytecode::printable::Printable;
use slotvm_cases::values;

use crate::error::CliError;

/// A call of an exported function.
#[derive(Clone, Debug)]
pub struct EntryCall {
    /// The name of the export.
    pub name: String,
    /// The function.
    pub func: Func,
    /// Its parameters.
    pub params: Vec<Val>,
}

/// The calls that run a program with these arguments, in order. If a function is named, they are its values.
///
/// # Errors
/// Fails if the program does not export the function, or the arguments do not fit it.
pub fn calls<T: 'static>(
    invoke: Option<&str>,
    args: &[String],
    store: &Store<T>,
    instance: &Instance,
) -> Result<Vec<EntryCall>, CliError> {
    if invoke.is_none()
        && let Some(start) = without_values(store, instance, "_start")?
    {
        return Ok(vec![start]);
    }
    let mut calls: Vec<EntryCall> =
        without_values(store, instance, "_initialize")?.into_iter().collect();
    calls.push(match invoke {
        Some(name) => invoked(store, instance, name, args)?,
        None => main(args, store, instance)?,
    });
    Ok(calls)
}

/// The call of a function without parameters and results, if it is exported.
fn without_values<T: 'static>(
    store: &Store<T>,
    instance: &Instance,
    name: &str,
) -> Result<Option<EntryCall>, CliError> {
    let Some(func) = instance.get_func(store, name) else { return Ok(None) };
    let ty = func.ty(store);
    if !ty.params.is_empty() || !ty.results.is_empty() {
        return Err(CliError::Usage(format!("`{name}` has type {ty}; expected () -> ()")));
    }
    Ok(Some(EntryCall { name: name.to_owned(), func, params: Vec::new() }))
}

fn main<T: 'static>(
    args: &[String],
    store: &Store<T>,
    instance: &Instance,
) -> Result<EntryCall, CliError> {
    let Some(func) = instance.get_func(store, "main") else {
        let message = "the program exports no function `main`; call another one with --invoke";
        return Err(CliError::Usage(message.into()));
    };
    let ty = func.ty(store);
    let params = match ty.params.as_slice() {
        [] => vec![],
        [ValType::I32] => vec![Val::I32(size(args, store, instance)?)],
        _ => {
            return Err(CliError::Usage(format!(
                "`main` has type {ty}; expected no parameters or one i32"
            )));
        }
    };
    Ok(EntryCall { name: "main".to_owned(), func, params })
}

/// The size to run a program with.
fn size<T: 'static>(
    args: &[String],
    store: &Store<T>,
    instance: &Instance,
) -> Result<i32, CliError> {
    if let Some(arg) = args.first() {
        return arg.parse().map_err(|_| {
            CliError::Usage(format!(
                "the first program argument {arg:?} is not a size; expected an i32"
            ))
        });
    }
    match instance.get_global(store, "default_size").map(|global| global.get(store)) {
        Some(Val::I32(size)) => Ok(size),
        _ => Err(CliError::Usage("`main` takes an i32; write it after the program".into())),
    }
}

fn invoked<T: 'static>(
    store: &Store<T>,
    instance: &Instance,
    name: &str,
    args: &[String],
) -> Result<EntryCall, CliError> {
    let Some(func) = instance.get_func(store, name) else {
        let exports = instance.exports(store).into_iter();
        let funcs = exports.filter(|(_, export)| matches!(export, Extern::Func(_)));
        let message = no_function("exports", name, funcs.map(|(name, _)| name));
        return Err(CliError::Usage(message));
    };
    let ty = func.ty(store);
    if args.len() != ty.params.len() {
        let (wanted, given) = (ty.params.len(), args.len());
        let message = format!("`{name}` has type {ty}: expected {wanted} values, found {given}");
        return Err(CliError::Usage(message));
    }
    let mut params = Vec::with_capacity(args.len());
    for (i, (arg, &ty)) in args.iter().zip(&ty.params).enumerate() {
        let bad = |message| CliError::Usage(format!("value {} of `{name}`: {message}", i + 1));
        params.push(values::parse_val(arg, ty).map_err(bad)?);
    }
    Ok(EntryCall { name: name.to_owned(), func, params })
}

impl EntryCall {
    /// Makes the call, and returns the results.
    ///
    /// # Errors
    /// Fails if the program does.
    pub fn run<T: 'static>(&self, store: &mut Store<T>) -> Result<Vec<Val>, slotvm::Error> {
        let ty = self.func.ty(&*store);
        let mut results: Vec<Val> = ty.results.iter().map(|&ty| Val::default_for(ty)).collect();
        self.func.call(store, &self.params, &mut results)?;
        Ok(results)
    }
}

/// The message for an unknown function name, with the known names.
pub fn no_function(how: &str, name: &str, funcs: impl Iterator<Item = String>) -> String {
    /// Names that the message lists.
    const SHOWN_NAMES_MAX: usize = 20;
    let mut names: Vec<String> = funcs.map(|name| format!("`{}`", Printable(&name))).collect();
    let n_more = names.len().saturating_sub(SHOWN_NAMES_MAX);
    names.truncate(SHOWN_NAMES_MAX);
    if n_more > 0 {
        names.push(format!("{n_more} more"));
    }
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    format!("the program {how} no function `{name}`; it {how} {names}")
}
