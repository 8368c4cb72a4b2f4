//! `poll_oneoff`: waiting for time to pass, and for descriptors to be ready.
//!
//! It has three parts, [`subscribe`], [`Wait::step`] and [`finish`], so that the caller can check between
//! two steps whether the program has been interrupted.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::time::ClockId;

use crate::clocks::host_clock;
use crate::ctx::WasiCtx;
use crate::errno::{Errno, Result};
use crate::limits::SUBSCRIPTIONS_MAX;
use crate::memory::GuestMemory;
use crate::table::{Descriptor, Kind};
use crate::types::{ClockFlags, Rights, flags};

const SUBSCRIPTION_BYTES: u32 = 48;
const EVENT_BYTES: u32 = 32;

/// The subscriptions of a program.
pub(crate) struct Wait {
    subscriptions: Vec<Subscription>,
    /// The address of the events.
    events: u32,
    /// The address of the number of events.
    n_out: u32,
}

struct Subscription {
    /// The program's tag for the subscription.
    userdata: u64,
    what: What,
}

#[derive(Copy, Clone)]
enum What {
    /// Until a clock shows a time, in nanoseconds. An error for clocks that do not support waiting.
    Clock(Result<(ClockId, u64)>),
    /// Until a descriptor is ready.
    Descriptor { fd: u32, direction: Direction },
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Direction {
    Read,
    Write,
}

/// An event that ends the wait.
pub(crate) struct Event {
    userdata: u64,
    /// The kind of the subscription.
    kind: u8,
    result: Result<Ready>,
}

/// The state of a ready descriptor; all zero for a clock.
#[derive(Copy, Clone, Default)]
struct Ready {
    n_bytes: u64,
    hangup: bool,
}

/// Reads the subscriptions of a program.
pub(crate) fn subscribe(
    ctx: &WasiCtx,
    memory: &GuestMemory<'_>,
    subscriptions: u32,
    events: u32,
    n: u32,
    n_out: u32,
) -> Result<Wait> {
    // Without subscriptions the wait would never end.
    if n == 0 || n > SUBSCRIPTIONS_MAX {
        return Err(Errno::Inval);
    }
    memory.check(subscriptions, n * SUBSCRIPTION_BYTES)?;
    memory.check(events, n * EVENT_BYTES)?;
    memory.check(n_out, 4)?;
    let places = (0..n).map(|i| subscriptions + i * SUBSCRIPTION_BYTES);
    let subscriptions = places.map(|at| subscription(ctx, memory, at)).collect::<Result<_>>()?;
    Ok(Wait { subscriptions, events, n_out })
}

fn subscription(ctx: &WasiCtx, memory: &GuestMemory<'_>, at: u32) -> Result<Subscription> {
    let descriptor = |direction| memory.u32(at + 16).map(|fd| What::Descriptor { fd, direction });
    let what = match memory.u8(at + 8)? {
        0 => clock(ctx, memory, at)?,
        1 => descriptor(Direction::Read)?,
        2 => descriptor(Direction::Write)?,
        _ => return Err(Errno::Inval),
    };
    Ok(Subscription { userdata: memory.u64(at)?, what })
}

fn clock(ctx: &WasiCtx, memory: &GuestMemory<'_>, at: u32) -> Result<What> {
    let clock = host_clock(memory.u32(at + 16)?)?;
    let time = memory.u64(at + 24)?;
    let is_absolute =
        flags::<ClockFlags>(memory.u16(at + 40)?.into())?.contains(ClockFlags::ABSTIME);
    Ok(What::Clock(match (clock, is_absolute) {
        // CPU time of the program does not advance while it waits.
        (ClockId::ProcessCPUTime | ClockId::ThreadCPUTime, _) => Err(Errno::Notsup),
        (clock, true) => Ok((clock, time)),
        // Setting a clock does not change the length of a relative wait.
        (_, false) => {
            let now = ctx.clocks.now(ClockId::Monotonic);
            Ok((ClockId::Monotonic, now.saturating_add(time)))
        }
    }))
}

impl Wait {
    /// Waits for at most `wait_max` until something happens. Returns all events.
    pub(crate) fn step(&self, ctx: &WasiCtx, wait_max: Duration) -> Result<Vec<Event>> {
        let failed: Vec<Event> = self
            .subscriptions
            .iter()
            .filter_map(|subscription| subscription.failure(ctx))
            .collect();
        let wait = if failed.is_empty() { self.wait(ctx).min(wait_max) } else { Duration::ZERO };
        let ready = self.poll(ctx, wait)?;
        let mut events = failed;
        for (subscription, ready) in self.subscriptions.iter().zip(ready) {
            events.extend(ready.map(|ready| subscription.event(Ok(ready))));
        }
        Ok(events)
    }

    /// Returns the time until the first clock is due.
    fn wait(&self, ctx: &WasiCtx) -> Duration {
        let waits = self.subscriptions.iter().filter_map(|subscription| match subscription.what {
            What::Clock(Ok((clock, time))) => Some(time.saturating_sub(ctx.clocks.now(clock))),
            _ => None,
        });
        waits.min().map_or(Duration::MAX, Duration::from_nanos)
    }

    /// Waits, then returns for each subscription whether it is ready.
    fn poll(&self, ctx: &WasiCtx, wait: Duration) -> Result<Vec<Option<Ready>>> {
        let hosts: Vec<Option<(BorrowedFd<'_>, PollFlags)>> =
            self.subscriptions.iter().map(|subscription| subscription.host(ctx)).collect();
        let polled = hosts.iter().flatten();
        let mut polled: Vec<_> =
            polled.map(|&(fd, flags)| PollFd::from_borrowed_fd(fd, flags)).collect();
        // A descriptor without one of the host is always ready.
        let is_ready_now =
            self.subscriptions.iter().zip(&hosts).any(|(subscription, host)| {
                host.is_none() && subscription.is_usable_descriptor(ctx)
            });
        let wait = if is_ready_now { Duration::ZERO } else { wait };
        let timeout =
            Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
        match rustix::event::poll(&mut polled, Some(&timeout)) {
            // A signal ends a step, not the wait.
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut happened = polled.iter().map(PollFd::revents);
        let ready = self.subscriptions.iter().zip(&hosts).map(|(subscription, host)| {
            let happened = host.map(|_| happened.next().expect("each was polled"));
            subscription.ready(ctx, happened)
        });
        Ok(ready.collect())
    }
}

impl Subscription {
    fn event(&self, result: Result<Ready>) -> Event {
        let kind = match self.what {
            What::Clock(_) => 0,
            What::Descriptor { direction: Direction::Read, .. } => 1,
            What::Descriptor { direction: Direction::Write, .. } => 2,
        };
        Event { userdata: self.userdata, kind, result }
    }

    /// Returns an error event if the subscription can never be ready.
    fn failure(&self, ctx: &WasiCtx) -> Option<Event> {
        let error = match self.what {
            What::Clock(clock) => clock.err(),
            What::Descriptor { fd, direction } => usable(ctx, fd, direction).err(),
        };
        error.map(|error| self.event(Err(error)))
    }

    fn is_usable_descriptor(&self, ctx: &WasiCtx) -> bool {
        match self.what {
            What::Clock(_) => false,
            What::Descriptor { fd, direction } => usable(ctx, fd, direction).is_ok(),
        }
    }

    /// Returns the host's descriptor to poll, and the events to poll for.
    fn host<'a>(&self, ctx: &'a WasiCtx) -> Option<(BorrowedFd<'a>, PollFlags)> {
        use std::os::fd::AsFd;
        let What::Descriptor { fd, direction } = self.what else { return None };
        let fd = match &usable(ctx, fd, direction).ok()?.kind {
            Kind::Input(input) => input.host()?,
            Kind::Output(output) => output.host()?,
            Kind::File(file) => file.as_fd(),
            Kind::Directory(_) => return None,
        };
        let flags = if direction == Direction::Read { PollFlags::IN } else { PollFlags::OUT };
        Some((fd, flags))
    }

    /// Returns the state if it is ready, given the events of the host's descriptor.
    fn ready(&self, ctx: &WasiCtx, happened: Option<PollFlags>) -> Option<Ready> {
        let What::Descriptor { fd, direction } = self.what else {
            let What::Clock(Ok((clock, time))) = self.what else { return None };
            return (ctx.clocks.now(clock) >= time).then(Ready::default);
        };
        let descriptor = usable(ctx, fd, direction).ok()?;
        let happened = happened.unwrap_or(PollFlags::IN);
        if happened.is_empty() {
            return None;
        }
        let n_bytes = match direction {
            Direction::Read => bytes_to_read(descriptor),
            Direction::Write => 1,
        };
        Some(Ready { n_bytes, hangup: happened.contains(PollFlags::HUP) })
    }
}

/// Returns the descriptor if it supports waiting.
fn usable(ctx: &WasiCtx, fd: u32, direction: Direction) -> Result<&Descriptor> {
    let descriptor = ctx.table.get(fd)?;
    let fits = match direction {
        Direction::Read => matches!(descriptor.kind, Kind::Input(_) | Kind::File(_)),
        Direction::Write => matches!(descriptor.kind, Kind::Output(_) | Kind::File(_)),
    };
    if !fits {
        return Err(Errno::Badf);
    }
    let right = match direction {
        Direction::Read => Rights::FD_READ,
        Direction::Write => Rights::FD_WRITE,
    };
    descriptor.need(right | Rights::POLL_FD_READWRITE)?;
    Ok(descriptor)
}

/// Returns the number of readable bytes, or 1 if it is unknown.
fn bytes_to_read(descriptor: &Descriptor) -> u64 {
    use std::io::Seek;
    let n = match &descriptor.kind {
        Kind::Input(input) => input.host().and_then(|fd| rustix::io::ioctl_fionread(fd).ok()),
        Kind::File(file) => {
            let mut position = file;
            let size = file.metadata().map(|metadata| metadata.len());
            size.and_then(|size| Ok(size.saturating_sub(position.stream_position()?))).ok()
        }
        Kind::Output(_) | Kind::Directory(_) => None,
    };
    n.unwrap_or(1)
}

/// Writes the events for the program.
pub(crate) fn finish(wait: &Wait, memory: &mut GuestMemory<'_>, events: &[Event]) -> Result<()> {
    for (at, event) in (wait.events..).step_by(EVENT_BYTES as usize).zip(events) {
        memory.write(at, &event.to_bytes())?;
    }
    memory.write_u32(wait.n_out, events.len() as u32)
}

impl Event {
    fn to_bytes(&self) -> [u8; EVENT_BYTES as usize] {
        let (error, ready) = match self.result {
            Ok(ready) => (Errno::SUCCESS, ready),
            Err(error) => (error.code(), Ready::default()),
        };
        let mut bytes = [0; EVENT_BYTES as usize];
        bytes[0..8].copy_from_slice(&self.userdata.to_le_bytes());
        bytes[8..10].copy_from_slice(&(error as u16).to_le_bytes());
        bytes[10] = self.kind;
        bytes[16..24].copy_from_slice(&ready.n_bytes.to_le_bytes());
        bytes[24] = ready.hangup.into();
        bytes
    }
}
