//! A calculator with functions, compiled to native code: the tutorial of the README.
//!
//! ```text
//! cargo run --release --bin calculator -- examples/calculator/demo.calc
//! ```
//!
//! Each line of a program defines a function or is an expression, whose value is printed:
//!
//! ```text
//! def square(x) = x * x
//! def fact(n) = if n < 2 then 1 else n * fact(n - 1)
//! square(fact(5)) / 2
//! ```
//!
//! There are three steps, as in any front end: [`tokens`] splits a line into words, [`mod@compile`] turns them
//! into bytecode, and this file runs the result.

mod compile;
mod tokens;

use std::error::Error;
use std::io::Read;
use std::process::ExitCode;

use slotvm::{Engine, Linker, Module, Store};

use crate::compile::{MATH, Program, compile};

fn main() -> ExitCode {
    match read_source().and_then(|source| run(&source)) {
        Ok(values) => {
            for (line, value) in values {
                println!("line {line}: {value}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The file that is named, or else standard input.
fn read_source() -> Result<String, Box<dyn Error>> {
    let mut source = String::new();
    match std::env::args().nth(1) {
        Some(file) => {
            source = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
        }
        None => {
            std::io::stdin().read_to_string(&mut source)?;
        }
    }
    Ok(source)
}

/// Compiles and runs a program. Returns the line and the value of each expression.
fn run(source: &str) -> Result<Vec<(u32, f64)>, Box<dyn Error>> {
    let Program { module, expressions } = compile(source)?;
    let engine = Engine::default();
    let module = Module::from_bytecode(&engine, module)?;

    // What the bytecode cannot do itself, closures of the host do.
    let mut linker = Linker::new(&engine);
    for (name, function) in MATH {
        linker.func_wrap("math", name, function)?;
    }
    let mut store = Store::new(&engine, ());
    let instance = linker.instantiate(&mut store, &module)?;

    let mut values = Vec::new();
    for line in expressions {
        let name = compile::export_name(line);
        let expression = instance.get_typed_func::<(), f64>(&store, &name)?;
        values.push((line, expression.call(&mut store, ())?));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(source: &str) -> Vec<f64> {
        run(source).expect("it runs").into_iter().map(|(_, value)| value).collect()
    }

    fn error(source: &str) -> String {
        run(source).expect_err("it is wrong").to_string()
    }

    #[test]
    fn operators_bind_as_in_arithmetic() {
        assert_eq!(values("1 + 2 * 3\n(1 + 2) * 3\n2 - 3 - 4\n-2 * -3"), [7.0, 9.0, -5.0, 6.0]);
        assert_eq!(values("1 + 1 == 2\n1 < 2 + 3\n2 <= 1\n3 != 3"), [1.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn a_line_may_be_long() {
        assert_eq!(values(&["1"; 200_000].join(" + ")), [200_000.0]);
    }

    #[test]
    fn the_demonstration_prints_what_its_comments_say() {
        let source = include_str!("demo.calc");
        let expected: Vec<f64> =
            source.lines().filter_map(|line| line.split_once("# gives ")?.1.parse().ok()).collect();
        assert_eq!(values(source), expected);
        assert_eq!(expected.len(), 5);
    }

    #[test]
    fn errors_name_the_place_and_the_rule() {
        assert_eq!(
            error("1 +"),
            "line 1, column 4: an expression is expected, not the end of the line"
        );
        assert_eq!(error("\ndef f(x) = y"), "line 2, column 12: unknown parameter `y`");
        assert_eq!(error("f(1)"), "line 1, column 1: unknown function `f`");
        assert_eq!(error("sqrt(1, 2)"), "line 1, column 1: `sqrt` takes 1 argument, not 2");
        assert_eq!(error("1 2"), "line 1, column 3: an operator is expected, not `2`");
        assert_eq!(error("1 $ 2"), "line 1, column 3: `$` means nothing here");
        assert_eq!(error("def f(x, x) = x"), "line 1, column 10: there is a parameter `x` already");
        assert_eq!(
            error("def f() = 1\ndef f() = 2"),
            "line 2, column 5: there is a function `f` already"
        );
        let params: Vec<String> = (0..100_000).map(|i| format!("p{i}")).collect();
        let too_many = error(&format!("def f({}) = 1", params.join(", ")));
        assert!(too_many.starts_with("line 1") && too_many.contains("LOCALS_MAX"), "{too_many}");
        let nested = "(".repeat(1_000_000);
        assert_eq!(error(&nested), "line 1, column 201: expressions are nested more than 200 deep");
    }

    #[test]
    fn endless_recursion_is_a_trap() {
        let trap = error("def f(x) = f(x + 1) + 1\nf(0)");
        assert!(trap.starts_with("call stack exhausted"), "{trap}");
        assert!(trap.contains("line 1"), "{trap}");
    }
}
