# SPDX-License-Identifier: Apache-2.0
# Says that it is there, waits until standard input ends, then works (unknown_test.py).
def leaf(n)
  x = n
  10_000.times { |i| x = (x * 3 + i) % 1_000_003 }
  x
end

def middle(n)
  leaf(n) + 1
end

$stdout.sync = true
puts %({"ready": #{$$}})
$stdin.read
n = 0
n = middle(n) while true
