//! A program with a handler of its own, installed before ours or after.

use std::os::unix::process::ExitStatusExt as _;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::guest::Guest;
use crate::{check_in_child, in_child};

const PAGE_BYTES: usize = 65_536;

/// The page that the program's own handler makes accessible.
static PAGE: AtomicUsize = AtomicUsize::new(0);
/// Number of repairs.
static N_REPAIRED: AtomicUsize = AtomicUsize::new(0);
/// The handler that the program's own one passes other faults on to, if it does.
static NEXT: AtomicUsize = AtomicUsize::new(0);

type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

extern "C" fn repair(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system passes what belongs to the signal.
    let address = unsafe { (*info).si_addr() }.addr();
    let page = PAGE.load(SeqCst);
    if (page..page + PAGE_BYTES).contains(&address) {
        protect(ptr::with_exposed_provenance_mut(page), libc::PROT_READ | libc::PROT_WRITE);
        N_REPAIRED.fetch_add(1, SeqCst);
    } else if NEXT.load(SeqCst) != 0 {
        // SAFETY: the address of a handler with three parameters.
        let next = unsafe { std::mem::transmute::<usize, Handler>(NEXT.load(SeqCst)) };
        next(signal, info, context);
    } else {
        // SAFETY: the default action of a signal can be restored at any time.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Installs the program's own handler, and returns the one before.
fn install_repair() -> libc::sigaction {
    // SAFETY: the handler has the signature that SA_SIGINFO demands, and calls only what a handler may.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let mut previous = action;
        action.sa_sigaction = repair as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        assert_eq!(libc::sigaction(libc::SIGSEGV, &action, &mut previous), 0);
        previous
    }
}

fn protect(page: *mut u8, protection: libc::c_int) {
    // SAFETY: the tests' pages are their own, or of a memory that they only access by guest code.
    assert_eq!(unsafe { libc::mprotect(page.cast(), PAGE_BYTES, protection) }, 0);
}

/// A new page that cannot be accessed, which the program's handler is in charge of.
fn protected_page() -> *mut u8 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address that the system picks.
    let page = unsafe { libc::mmap(ptr::null_mut(), PAGE_BYTES, libc::PROT_NONE, flags, -1, 0) };
    assert_ne!(page, libc::MAP_FAILED);
    PAGE.store(page.expose_provenance(), SeqCst);
    page.cast()
}

/// Faults of the host, which the program's handler repairs.
fn fault_in_the_host() -> i32 {
    let page = protected_page();
    let before = N_REPAIRED.load(SeqCst);
    // SAFETY: the page is accessible as soon as it was repaired.
    unsafe { page.add(77).write_volatile(7) };
    assert_eq!(N_REPAIRED.load(SeqCst), before + 1);
    // SAFETY: the page is accessible now.
    i32::from(unsafe { page.add(77).read_volatile() })
}

/// Faults of the host, below guest code too, and of guest code in a page that the host has protected,
/// all of which the program's handler repairs; traps in between.
fn fault_and_trap(guest: &mut Guest) {
    for _ in 0..10 {
        assert_eq!(fault_in_the_host(), 7);
        guest.trap(8);
        assert_eq!(guest.call("through", 5).unwrap(), 12);
        guest.trap(8);
        let memory = guest.memory();
        PAGE.store(memory.expose_provenance(), SeqCst);
        for name in ["load", "store"] {
            protect(memory, libc::PROT_NONE);
            let before = N_REPAIRED.load(SeqCst);
            assert!(guest.call(name, 1).is_ok());
            assert_eq!(N_REPAIRED.load(SeqCst), before + 1, "{name}");
        }
        guest.trap(8);
    }
    guest.trap_in_other_ways();
}

#[test]
fn a_handler_installed_before_ours_repairs_its_faults() {
    check_in_child("foreign::a_handler_installed_before_ours_repairs_its_faults", || {
        install_repair();
        fault_and_trap(&mut Guest::with_host(|n: i32| n + fault_in_the_host()));
    });
}

#[test]
fn a_handler_installed_after_ours_repairs_its_faults() {
    let status = in_child("foreign::a_handler_installed_after_ours_repairs_its_faults", || {
        let mut guest = Guest::with_host(|n: i32| n + fault_in_the_host());
        guest.trap(8);
        let ours = install_repair();
        assert!(ours.sa_flags & libc::SA_SIGINFO != 0);
        NEXT.store(ours.sa_sigaction, SeqCst);
        fault_and_trap(&mut guest);
        crash();
    });
    // By `crash`.
    assert_eq!(status.signal(), Some(libc::SIGSEGV));
}

/// Faults without a handler that repairs it.
fn crash() -> i32 {
    let page = protected_page();
    PAGE.store(0, SeqCst);
    // SAFETY: none; it is to fault.
    i32::from(unsafe { page.read_volatile() })
}

#[test]
fn a_crash_of_the_host_stays_one() {
    let status = in_child("foreign::a_crash_of_the_host_stays_one", || {
        let mut guest = Guest::with_host(|n: i32| if n == 1 { crash() } else { n });
        guest.trap(100);
        assert_eq!(guest.call("through", 2).unwrap(), 2);
        _ = guest.call("through", 1);
    });
    assert_eq!(status.signal(), Some(libc::SIGSEGV));
}

/// Rust's own handler reports it, and aborts.
#[test]
fn a_stack_overflow_of_the_host_stays_one() {
    fn recurse(n: i32) -> i32 {
        let here = std::hint::black_box([n; 100]);
        if here[0] < 0 { 0 } else { recurse(here[0] | 1) + here[99] }
    }
    let status = in_child("foreign::a_stack_overflow_of_the_host_stays_one", || {
        let mut guest = Guest::with_host(recurse);
        guest.trap(8);
        _ = guest.call("through", 1);
    });
    assert_eq!(status.signal(), Some(libc::SIGABRT));
}
