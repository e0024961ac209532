# SPDX-License-Identifier: Apache-2.0
# Known answers: cases.rb CASE builds a chain of calls and stays in its leaf, which has said what this Ruby itself takes
# its chain for (tests/runtimes/runtimes.py has the protocol). Ruby 2.5 and later.
#
# A truth has, besides `comm` and `chain` ([label, path, line], outermost first; of methods in C the label only counts):
# `lines`, those of the leaf; `names`, what Sonde must show, class and all, from that frame on that the first one names.
$stdout.sync = true
$mutex = Mutex.new

def quoted(text)
  '"' + text.gsub(/["\\]/) { |c| "\\" + c } + '"'
end

def json(value)
  case value
  when Hash then "{" + value.map { |k, v| quoted(k.to_s) + ":" + json(v) }.join(",") + "}"
  when Array then "[" + value.map { |v| json(v) }.join(",") + "]"
  when String then quoted(value)
  when nil then "null"
  else value.to_s
  end
end

def rename(comm)
  File.write("/proc/thread-self/comm", comm)
end

$expected = 1
$told = 0

def tell(locations, more)
  comm = (more.delete(:comm) || "rb-" + ARGV[0])[0, 15]
  rename(comm)
  chain = locations.reverse.map { |l| [l.label, l.path, l.lineno] }
  $mutex.synchronize do
    puts json({ comm: comm, chain: chain }.merge(more))
    $told += 1
    puts json(ready: $$) if $told == $expected
  end
  wait_for_go
end

# Until standard input ends: all are there, and sonde is.
def wait_for_go
  nil while $stdin.read(1)
end

def leaf(names = nil, more = {})
  first = __LINE__
  # It may be sampled when it has just come back from there.
  tell(caller_locations(0), more.merge(names: names, lines: [first + 2, first + 8]))
  x = 1
  while true
    x = x * 3 %
        1000003
    x += 1
  end
end

# --- methods ---

class Base
  def inherited(names)
    second(names)
  end
end

module Mixed
  def mixed(names)
    inherited(names)
  end

  def self.of_module(names)
    Derived.new.mixed(names)
  end
end

class Derived < Base
  include Mixed

  def self.of_class(names)
    Mixed.of_module(names)
  end

  def second(names)
    third(
      names
    )
  end

  def third(names)
    leaf(names)
  end

  class Inner
    def deep
      leaf(["Derived::Inner#deep", "Object#leaf"])
    end
  end
end

def plain
  Derived.of_class(["<main>", "Object#plain", "Derived.of_class", "Mixed.of_module", "Mixed#mixed", "Base#inherited", "Derived#second",
                    "Derived#third", "Object#leaf"])
end

def recursion(n = 900)
  recursion(n - 1) if n > 0
  leaf
end

class Dynamic
  define_method(:defined) { |x| sent(x) }

  def sent(x)
    send(:private_one, x)
  end

  def method_missing(name, *args)
    name == :missing ? leaf(["Object#dynamic", "block in <class:Dynamic>", "Dynamic#sent", "Dynamic#private_one", "BasicObject#instance_eval",
                             "block in Dynamic#private_one", "Dynamic#method_missing", "Object#leaf"]) : super
  end

  def respond_to_missing?(*)
    true
  end

  private

  def private_one(x)
    instance_eval { missing(x) }
  end
end

def dynamic
  Dynamic.new.defined(1)
end

def singleton
  object = Object.new
  def object.only_mine
    Class.new { def anonymous; Derived::Inner.new.deep; end }.new.anonymous
  end
  object.only_mine
end

class Klass
  @found = [1].each { |_| $from_class = -> { leaf(["Object#from_class", "block (2 levels) in <class:Klass>", "Object#leaf"]) } }
end

def from_class
  $from_class.call
end

# --- blocks and methods written in C ---

def blocks
  [3].each do |a|
    { a => 1 }.each_pair do |_, _|
      1.times { (1..1).inject(0) { |*| [2, 1].sort_by { |_| called } } }
    end
  end
end

def called
  p = proc { |x| lambda { |y| yielding(y) { leaf } }.call(x) }
  p.call(1)
end

def yielding(y)
  yield y
end

def comparing
  [Compared.new, Compared.new].sort
end

class Compared
  include Comparable

  def <=>(other)
    leaf(["Object#comparing", "Array#sort", "Compared#<=>", "Object#leaf"])
  end
end

def enumerating
  e = Enumerator.new { |y| y << 1; leaf }
  e.lazy.map { |x| x + 1 }.each { |x| x }
end

def symbol_proc
  [Derived::Inner.new].each(&:deep)
end

def method_object
  [1].each(&method(:with_argument))
end

def with_argument(_)
  leaf
end

def evaluated
  eval("[1].each { |x|\n leaf(nil) }", binding, "/made/up.rb", 70)
end

def rescued
  begin
    raise "x"
  rescue
    begin
      in_ensure
    ensure
      leaf
    end
  end
end

def in_ensure
  begin
    raise ArgumentError
  ensure
    1.times { leaf(["Integer#times", "block in Object#in_ensure", "Object#leaf"]) }
  end
end

def thrown
  catch(:done) { [1].each { |_| leaf } }
end

def loaded
  path = File.join(ARGV[1] || "/tmp", "rb-loaded-#{$$}.rb")
  File.write(path, "class Loaded\n def run\n  leaf\n end\nend\nLoaded.new.run\n")
  at_exit { File.unlink(path) }
  require path
end

# While an extension is initialized there is a frame marked as a loop's last, but no loop.
def extension
  def Object.inherited(_)
    leaf
  end
  require "date_core"
end

def umläute
  größe
end

def größe
  leaf(["Object#umläute", "Object#größe", "Object#leaf"])
end

def traced
  TracePoint.new(:call) { |t| leaf if t.method_id == :nothing }.enable { nothing }
end

def nothing; end

def in_signal
  Signal.trap("USR1") { leaf }
  Process.kill("USR1", $$)
  x = 0
  x += 1 while true
end

def refined
  require "set"
  Set.new([1]).each { |_| [[1]].each { |a| a.map { |_| leaf } } }
end

def kernel_loop
  loop { tap { then_leaf } }
end

def then_leaf
  leaf
end

# --- called by other C code ---

# A function of libc's, which Ruby calls through libffi, calls Ruby back through libffi.
def fiddle
  require "fiddle"
  compare = Fiddle::Closure::BlockCaller.new(Fiddle::TYPE_INT, [Fiddle::TYPE_VOIDP] * 2) { |_, _| then_leaf }
  qsort = Fiddle::Function.new(Fiddle::Handle::DEFAULT["qsort"], [Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T, Fiddle::TYPE_SIZE_T, Fiddle::TYPE_VOIDP],
                               Fiddle::TYPE_VOID)
  qsort.call("2  1", 2, 2, compare)
end

# --- fibers, threads, processes ---

def fibers
  Fiber.new { 1.times { Fiber.new { in_fiber }.resume } }.resume
end

def in_fiber
  leaf
end

def external_enumerator
  e = [1, 2].each
  e.next
  f = Enumerator.new { |y| y << 1; in_fiber }
  f.next
  f.next
end

def threads
  $expected = 3
  list = Array.new(2) { |i| Thread.new { in_thread(i) } }
  leaf(nil, comm: "rb-threads")
  list.each(&:join)
end

def in_thread(i)
  [i].each { |_| leaf(nil, comm: "rb-thread-#{i}") }
end

# What is to be said is said by the main one: no other may use global variables.
def ractor
  $VERBOSE = nil
  other = Ractor.new { [1].each { |_| in_ractor } }
  puts json(Ractor.receive)
  puts json(ready: $$)
  wait_for_go
  other.send("rb-ractor")
  sleep
end

def in_ractor
  first = __LINE__
  Ractor.main.send({ comm: "rb-ractor", chain: caller_locations(0).reverse.map { |l| [l.label, l.path, l.lineno] },
                     names: ["block in Object#ractor", "Array#each", "block (2 levels) in Object#ractor", "Object#in_ractor"],
                     lines: [first + 5, first + 10] })
  # Samples of its waiting, which have other frames, have another thread's name.
  rename(Ractor.receive)
  x = 1
  while true
    x = x * 3 %
        1000003
    x += 1
  end
end

def forked
  pid = fork { leaf }
  Process.wait(pid)
end

# In embed.c's program, whose function through_c() calls back.
def embedded
  through_c(:back)
end

def back
  names = ["Object#embedded", "Kernel#through_c", "Object#back", "Array#each", "block in Object#back", "Object#leaf"]
  [1].each { |_| leaf(names, comm: "rb-in-" + ARGV[1]) }
end

def compacting
  $expected = 1
  Thread.new { wait_for_go; loop { Array.new(1000) { Object.new }; GC.compact; sleep 0.005 } } if GC.respond_to?(:compact)
  blocks
end

# --- functions made and dropped ---

def churn
  rename("rb-churn")
  puts json(ready: $$)
  wait_for_go
  i = 0
  while true
    i += 1
    mod = Module.new
    mod.module_eval("def self.caller_#{i}\n  leaf_#{i}(1)\nend\n\n\ndef self.leaf_#{i}(x)\n x += 1 while x < 20000\nend\n",
                    "/churn/#{i}.rb")
    mod.send("caller_#{i}")
    GC.start if i % 20 == 0
  end
end

def waiting
  $expected = 2
  Thread.new { in_waiting }
  sleep 0.001 while $told < 1
  rename("rb-w-main")
  puts json(comm: "rb-w-main", chain: caller_locations(0).reverse.map { |l| [l.label, l.path, l.lineno] }[0..-2], waits: true)
  puts json(ready: $$)
  [1].each { |_| sleep }
end

def in_waiting
  rename("rb-w-thread")
  puts json(comm: "rb-w-thread", chain: caller_locations(0).reverse.map { |l| [l.label, l.path, l.lineno] }[0..-2], waits: true)
  $told += 1
  Queue.new.pop
end

Process.setrlimit(Process::RLIMIT_CPU, ENV["CPU_SECONDS"].to_i, 60) if ENV["CPU_SECONDS"]
send(ARGV[0])
