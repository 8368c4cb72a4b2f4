//! Host functions with state: a game in bytecode that looks around in a world that Rust owns.
//!
//! ```text
//! cargo run --release --bin host_functions
//! ```
//!
//! The state is the store's data. Host functions are closures; their first parameter, a [`Caller`], leads
//! to that state, to the memory of whoever called, and to the rest of the store. A host function that
//! fails ends the guest code that called it, and its error arrives at the host's call as it is.

use std::process::ExitCode;

use slotvm::{Caller, Engine, Linker, Module, Store};

/// State that the guest reaches only by functions of the host.
#[derive(Debug, Default, PartialEq)]
struct World {
    /// The robot's position.
    position: (i32, i32),
    /// Walls.
    walls: Vec<(i32, i32)>,
    /// The robot's messages.
    said: Vec<String>,
}

/// The robot has walked into a wall.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("there is a wall at {0:?}")]
struct Bump((i32, i32));

/// The robot walks east until it has made `n` steps, and says so.
const ROBOT: &str = r#"
    import "robot" "walk" func walk(i32, i32) -> i32
    import "robot" "say" func say(i32, i32)
    memory m 1
    data d at i32.const 16 "step" "arrived"
    export "memory" memory m
    export "east" func east
    func east(n: i32) -> i32 {
      local x: i32
    next:
      local.get n  i32.eqz  br_if done
      i32.const 1  i32.const 0  call walk  local.set x
      i32.const 16  i32.const 4  call say
      local.get n  i32.const 1  i32.sub  local.set n
      br next
    done:
      i32.const 20  i32.const 7  call say
      local.get x  return
    }"#;

fn robot_functions(engine: &Engine) -> Result<Linker<World>, slotvm::Error> {
    let mut linker = Linker::new(engine);
    // State is read and written through the caller. The error is the host's own type.
    linker.func_wrap("robot", "walk", |mut caller: Caller<'_, World>, dx: i32, dy: i32| {
        let world = caller.data_mut();
        let next = (world.position.0 + dx, world.position.1 + dy);
        if world.walls.contains(&next) {
            return Err(slotvm::Error::host(Bump(next)));
        }
        world.position = next;
        Ok(next.0)
    })?;
    // Strings are an address and a length; both come from the guest, so nothing may rely on them.
    linker.func_wrap("robot", "say", |mut caller: Caller<'_, World>, at: u32, len: u32| {
        let Some(memory) = caller.memory() else {
            return Err(slotvm::Error::host("the robot has no memory"));
        };
        let (bytes, world) = memory.data_and_store_mut(&mut caller);
        let (start, end) = (at as usize, at as usize + len as usize);
        let Some(text) = bytes.get(start..end) else {
            return Err(slotvm::Error::host(format!("no text of {len} bytes is at {at}")));
        };
        world.said.push(String::from_utf8_lossy(text).into_owned());
        Ok(())
    })?;
    Ok(linker)
}

/// Lets the robot walk. Returns where it is and what the world looks like then.
fn walk(world: World, steps: i32) -> (Result<i32, slotvm::Error>, World) {
    let engine = Engine::default();
    let mut store = Store::new(&engine, world);
    let x = Module::from_text(&engine, ROBOT).and_then(|module| {
        let instance = robot_functions(&engine)?.instantiate(&mut store, &module)?;
        instance.get_typed_func::<i32, i32>(&store, "east")?.call(&mut store, steps)
    });
    (x, store.into_data())
}

fn main() -> ExitCode {
    for (steps, walls) in [(3, vec![]), (3, vec![(2, 0)])] {
        let (result, world) = walk(World { walls, ..World::default() }, steps);
        match result {
            Ok(x) => println!("the robot is at x = {x}; it said {:?}", world.said),
            Err(error) => println!("the robot stopped: {error}; it said {:?}", world.said),
        }
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_outlives_the_calls() {
        let (x, world) = walk(World::default(), 2);
        assert_eq!(x.unwrap(), 2);
        assert_eq!(world.position, (2, 0));
        assert_eq!(world.said, ["step", "step", "arrived"]);
    }

    #[test]
    fn an_error_of_the_host_arrives_as_it_is() {
        let (result, world) = walk(World { walls: vec![(2, 0)], ..World::default() }, 5);
        let slotvm::Error::Host(error) = result.unwrap_err() else {
            panic!("no error of the host")
        };
        assert_eq!(error.downcast_ref(), Some(&Bump((2, 0))));
        assert_eq!((world.position, world.said.len()), ((1, 0), 1));
    }

    #[test]
    fn a_text_behind_the_memory_is_an_error() -> Result<(), slotvm::Error> {
        let engine = Engine::default();
        let source = r#"
            import "robot" "say" func say(i32, i32)
            memory m 1
            export "f" func f
            func f(at: i32, len: i32) { local.get at  local.get len  call say  return }"#;
        let module = Module::from_text(&engine, source)?;
        let mut store = Store::new(&engine, World::default());
        let instance = robot_functions(&engine)?.instantiate(&mut store, &module)?;
        let f = instance.get_typed_func::<(u32, u32), ()>(&store, "f")?;
        f.call(&mut store, (65_536, 0))?;
        for (at, len) in [(65_536, 1), (0, 65_537), (u32::MAX, u32::MAX)] {
            let error = f.call(&mut store, (at, len)).unwrap_err().to_string();
            assert_eq!(error, format!("no text of {len} bytes is at {at}"));
        }
        assert_eq!(store.data().said, [""]);
        Ok(())
    }
}
