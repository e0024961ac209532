// SPDX-License-Identifier: Apache-2.0
//! The plain chain in Rust, through a trait object and a generic, and a caught panic where panics
//! unwind. Built with panic=unwind and with panic=abort, and by compilers back to Rust 1.48 (Debian 11).
use std::os::raw::{c_int, c_long};

#[repr(C)]
struct Timespec {
    seconds: c_long,
    nanoseconds: c_long,
}

extern "C" {
    fn clock_gettime(clock: c_int, to: *mut Timespec) -> c_int;
}

const PROCESS_CPU_TIME: c_int = 2;

// What std::hint::black_box is since 1.66: the compiler cannot see through it.
#[inline(always)]
fn black_box<T: Copy>(x: T) -> T {
    unsafe { std::ptr::read_volatile(&x) }
}

#[inline(never)]
fn leaf(n: u64) -> u64 {
    let mut x = n;
    for i in 0..1_000_000u64 {
        x = black_box(x.wrapping_mul(3).wrapping_add(i));
    }
    x
}

trait Step {
    fn step(&self, n: u64) -> u64;
}

struct Middle;

impl Step for Middle {
    #[inline(never)]
    fn step(&self, n: u64) -> u64 {
        black_box(leaf(n)) + 1
    }
}

#[inline(never)]
fn outer<T: Step + ?Sized>(s: &T, n: u64) -> u64 {
    black_box(s.step(n)) + 2
}

// std has no clock of CPU time.
fn cpu_seconds() -> f64 {
    let mut now = Timespec { seconds: 0, nanoseconds: 0 };
    unsafe { clock_gettime(PROCESS_CPU_TIME, &mut now) };
    now.seconds as f64 + now.nanoseconds as f64 * 1e-9
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(2.0);
    let step: Box<dyn Step> = Box::new(Middle);
    let mut n = 0;
    while cpu_seconds() < seconds {
        n += black_box(outer(black_box(&*step), n));
    }
    std::process::exit(if n == 1 { 1 } else { 0 });
}
