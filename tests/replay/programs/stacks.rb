# SPDX-License-Identifier: Apache-2.0
# Threads with stacks worth keeping, for every Ruby. Prints "ready" when they are there, and waits to be killed.
#
# Waiting: the main thread below blocks, a sort and a singleton method; another in an enumerator's fiber.
# Working: a third, whose stack is whatever it is when the process is stopped.
READY = Queue.new

class Thing
  def key(value)
    READY << true
    if Thread.current == Thread.main
      3.times { READY.pop }
      $stdout.puts("ready")
      $stdout.flush
    end
    sleep
    value
  end
end

module Holder
  def self.sorted
    [2, 1].sort_by { |x| Thing.new.key(x) }
  end

  define_method(:by_block) { |depth| depth.zero? ? Holder.sorted : by_block(depth - 1) }
  module_function :by_block
end

def generating
  Enumerator.new { |y| y << [1].map { |x| Thing.new.key(x) } }.next
end

def multiply(a, b)
  a * b % 1_000_003
end

def work
  READY << true
  value = 1
  loop { 1000.times { |i| value = multiply(value, i) + 1 } }
end

Thread.new { generating }
Thread.new { work }
Holder.by_block(2)
