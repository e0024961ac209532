# SPDX-License-Identifier: Apache-2.0
# Methods, blocks and methods in C that are entered and left all the time, in every way: who called what, and from which line,
# must be so at every instruction. Ruby 2.5 and later.
class Num; include Comparable; attr_reader :n; def initialize(n); @n = n; end
  def <=>(other); small(n) <=> other.n; end
  def coerce(other); [Num.new(other), self]; end
  def +(other); Num.new(n + other.n); end
  def to_s; small(n).inspect; end
  def each; yield 1; yield 2; self; end
  def method_missing(name, *args); small(args.size); end
  def respond_to_missing?(*); true; end
end
def small(n); n + 1; end
def fib(n); n < 2 ? n : fib(n - 1) + fib(n - 2); end
def even(n); n == 0 ? true : odd(n - 1); end
def odd(n); n == 0 ? false : even(n - 1); end
def blocks; [3, 1, 2].each { |x| small(x) }; end
def maps; [3, 1].map { |x| small(x) }.sort_by { |x| small(x) }; end
def times; 3.times { |i| small(i) }; end
def sorts; [3, 1, 2].sort { |a, b| small(a) <=> small(b) }; end
def compares; Num.new(1) < Num.new(2); end
def adds; Num.new(1) + Num.new(2); end
def strings; "#{Num.new(1)}#{Num.new(2)}"; end
def yields; Num.new(1).each { |x| small(x) }; end
def misses; Num.new(1).anything(1, 2); end
def sends; send(:small, 1) + __send__(:small, 2) + method(:small).call(3); end
def lambdas; (-> (x) { small(x) }).call(1); end
def procs; proc { |x| small(x) }.(1); end
def rescues; begin; raises(1); rescue ArgumentError; small(1); end; end
def raises(n); n == 0 ? raise(ArgumentError) : raises(n - 1); end
def ensures; begin; small(1); ensure; small(2); end; end
def throws; catch(:done) { [1].each { |x| throw :done, small(x) } }; end
def breaks; [1, 2, 3].each { |x| break small(x) if x == 2 }; end
def returns; [1, 2, 3].each { |x| return small(x) if x == 2 }; end
def evals; instance_eval { small(1) }; end
def execs; instance_exec(1) { |x| small(x) }; end
def taps; 1.tap { |x| small(x) }; end
def hashes; { a: 1, b: 2 }.each { |k, v| small(v) }; end
def injects; [1, 2, 3].inject { |a, b| a + small(b) }; end
def symbols; [1, 2].map(&:succ); end
def gsubs; "banana".gsub("a") { |x| small(1).to_s }; end
def loops; (n = 0; loop { n = small(n); break if n > 2 }); end
def defined_by; made(1); end
define_method(:made) { |x| small(x) }
def enums; (e = [1, 2].each; e.next; e.next); end
def fibers; (f = Fiber.new { |x| small(x) }; f.resume(1)); end
def plain; (small(1); small(2); small(3); fib(4); even(3)); end
def round; (plain; blocks; maps; times; sorts; compares; adds; strings; yields; misses; sends; lambdas; procs; rescues; ensures; throws; breaks; returns; evals; execs; taps; hashes; injects; symbols; gsubs; loops; defined_by; enums; fibers); end
ARGV[0].to_i.times { round }
$stdout.sync = true
puts "{\"ready\": #{$$}}"
round while true
