# SPDX-License-Identifier: Apache-2.0
# The life of a process (life_test.py): `begun` works in it, then `forked` in a child, then it executes itself, where
# `executed` works.
def spin
  cpu = ->() { Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) }
  last = cpu.call + ENV["SECONDS"].to_f
  i = 0
  i += 1 while i % 100 != 0 || cpu.call < last
  i
end

def ruby_begun; spin + 1; end
def ruby_forked; spin + 2; end
def ruby_executed; spin + 3; end

def ruby_life(phase)
  return ruby_executed + 1 if phase == "executed"

  ruby_begun
  Process.wait(fork { ruby_forked })
  exec(RbConfig.ruby, __FILE__, "executed")
end

ruby_life(ARGV[0] || "begun")
