// SPDX-License-Identifier: Apache-2.0
// Rust: modules, generics, traits, closures, inlined chains.
use std::hint::black_box;

extern "C" {
    fn mark(name: *const u8);
}

mod inner {
    use super::{black_box, mark};

    pub struct Point<T> {
        pub x: T,
    }

    pub trait Area {
        fn area(&self) -> u64;
    }

    impl<T: Copy + Into<u64>> Area for Point<T> {
        #[inline(never)]
        fn area(&self) -> u64 {
            unsafe { mark(b"area\0".as_ptr()) }; // @area.0 <calls::inner::Point<T> as calls::inner::Area>::area|<calls::inner::Point<u32> as calls::inner::Area>::area
            black_box(self.x.into())
        }
    }

    impl<T: Copy> Point<T> {
        #[inline(never)]
        pub fn get(&self) -> T {
            unsafe { mark(b"get\0".as_ptr()) }; // @get.0 calls::inner::Point<T>::get|<calls::inner::Point<u32>>::get
            black_box(self.x)
        }
    }

    #[inline(always)]
    pub fn leaf(x: u64) -> u64 {
        unsafe { mark(b"leaf\0".as_ptr()) }; // @leaf.0 calls::inner::leaf
        x + 1
    }

    #[inline(always)]
    pub fn middle(x: u64) -> u64 {
        leaf(x) * 2 // @leaf.1 calls::inner::middle
    }
}

use inner::Area;

#[inline(never)]
fn outer(x: u64) -> u64 {
    black_box(inner::middle(x)) // @leaf.2 calls::outer
}

#[inline(never)]
fn generic<T: std::fmt::Debug>(x: T) -> T {
    unsafe { mark(b"generic\0".as_ptr()) }; // @generic.0 calls::generic|calls::generic::<u8>
    black_box(x)
}

#[inline(never)]
fn apply<F: Fn(u64) -> u64>(f: F) -> u64 {
    black_box(f(black_box(3)))
}

fn main() {
    unsafe { mark(b"main\0".as_ptr()) }; // @main.0 calls::main
    let p = inner::Point { x: 7u32 };
    black_box(p.area());
    black_box(p.get());
    black_box(outer(1));
    black_box(generic(5u8));
    let y = black_box(2);
    black_box(apply(
        #[inline(never)]
        |x| {
            unsafe { mark(b"closure\0".as_ptr()) }; // @closure.0 calls::main::{{closure}}|calls::main::{closure#0}
            black_box(x + y)
        },
    ));
}
