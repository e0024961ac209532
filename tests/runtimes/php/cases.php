<?php
/* SPDX-License-Identifier: Apache-2.0
 *
 * Known answers: php cases.php CASE builds a chain of calls and stays in its leaf, which has said what PHP itself takes
 * its chain for (tests/runtimes/runtimes.py has the protocol). Any PHP from 7.3 on; some cases need more.
 */

/* debug_backtrace() tells of each call where it is made; here each function is with where it is. */
function chain_of(array $trace)
{
    $chain = [];
    $place = null;
    foreach ($trace as $call) {
        if ($place !== null) {
            $chain[] = [full_name($call), $place[0], $place[1]];
        }
        $place = isset($call['file']) ? [$call['file'], $call['line']] : ['[php]', 0];
    }
    if ($place[0] != '[php]') {
        $chain[] = ['{main}', $place[0], $place[1]];
    }
    return array_reverse($chain);
}

function full_name(array $call)
{
    $class = isset($call['class']) ? strstr($call['class'] . "\0", "\0", true) . '::' : '';
    return $class . $call['function'];
}

/* Says what chain its caller is in, and goes on when standard input ends. */
function tell($comm = null, $lines = [])
{
    $comm = substr($comm ?: 'php-' . $GLOBALS['argv'][1], 0, 15);
    file_put_contents('/proc/thread-self/comm', $comm);
    $chain = chain_of(debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS));
    /* A program that embeds PHP has no STDIN and STDOUT; a server's page goes to who asked for it. */
    $page = PHP_SAPI == 'fpm-fcgi';
    $out = fopen($page ? 'php://output' : 'php://stdout', 'w');
    fwrite($out, json_encode(['comm' => $comm, 'chain' => $chain, 'lines' => $lines]) . "\n");
    fwrite($out, json_encode(['ready' => getmypid()]) . "\n");
    if ($page) {
        flush();
    }
    $in = fopen('php://stdin', 'r');
    while (!feof($in)) {
        fread($in, 100);
    }
}

function leaf($comm = null)
{
    tell($comm, [__LINE__ + 2, __LINE__ + 8]);
    $x = 1;
    while (true) {
        $x = $x * 3 % 1000003;
        if ($x == 5) {
            $x = strlen(str_repeat('x', 20)) + abs(-$x);
        }
        $y = "a" . $x;
    }
}

/* --- calls --- */

function middle()
{
    leaf();
}

function plain()
{
    middle();
}

class Base
{
    public function method()
    {
        static::of_class();
    }

    public static function of_class()
    {
        (new static())->magic(1);
    }

    public function __call($name, $arguments)
    {
        $this($name);
    }

    public function __invoke()
    {
        $this->unknown_property;
    }

    public function __get($name)
    {
        from_outside();
    }

    public static function __callStatic($name, $arguments)
    {
        leaf();
    }
}

class Derived extends Base
{
    use Mixed_In;
}

function from_outside()
{
    Derived::static_magic();
}

trait Mixed_In
{
    public function of_trait()
    {
        $this->method();
    }
}

function methods()
{
    (new Derived())->of_trait();
}

function recursion($n = 200)
{
    if ($n == 0) {
        leaf();
    }
    recursion($n - 1);
}

function closures()
{
    $inner = function () {
        leaf();
    };
    $outer = static function () use ($inner) {
        $inner();
    };
    (function () use ($outer) {
        $outer();
    })->call(new Base());
}

function callbacks()
{
    array_map(function ($x) {
        $list = [3, 1, 2];
        usort($list, function ($a, $b) {
            return preg_replace_callback('/./', function ($m) {
                call_user_func_array('callbacks_inner', []);
            }, 'x');
        });
    }, [1]);
}

function callbacks_inner()
{
    iterator_apply(new ArrayIterator([1]), 'middle');
}

/* --- generators --- */

function numbers()
{
    yield 1;
    middle();
    yield 2;
}

function generator()
{
    foreach (numbers() as $n) {
    }
}

function send_generator()
{
    $generator = (function () {
        $x = yield;
        leaf();
    })();
    $generator->current();
    $generator->send(1);
}

function delegating()
{
    yield 0;
    yield from numbers();
}

function delegating_more()
{
    yield from delegating();
}

function yield_from()
{
    foreach (delegating_more() as $n) {
    }
}

class Collection implements IteratorAggregate, ArrayAccess, Countable
{
    #[\ReturnTypeWillChange]
    public function getIterator()
    {
        yield $this[1];
    }

    #[\ReturnTypeWillChange]
    public function offsetGet($offset)
    {
        return count($this);
    }

    #[\ReturnTypeWillChange]
    public function count()
    {
        return strlen($this);
    }

    #[\ReturnTypeWillChange]
    public function offsetSet($offset, $value)
    {
    }

    #[\ReturnTypeWillChange]
    public function offsetExists($offset)
    {
    }

    #[\ReturnTypeWillChange]
    public function offsetUnset($offset)
    {
    }

    public function __toString()
    {
        leaf();
    }
}

function interfaces()
{
    foreach (new Collection() as $x) {
    }
}

/* --- the ends of things --- */

class Ends
{
    public function __destruct()
    {
        leaf();
    }
}

function has_local()
{
    $local = new Ends();
    return 1;
}

function destructor()
{
    return has_local() + 1;
}

function top_destructor()
{
    return array_map('has_local', [1]);
}

function unset_destructor()
{
    $object = new Ends();
    unset($object);
}

function exceptions()
{
    try {
        try {
            throw new RuntimeException('x');
        } finally {
            $x = 1;
        }
    } catch (RuntimeException $e) {
        middle();
    }
}

function in_handler()
{
    set_error_handler(function () {
        leaf();
    });
    echo $undefined;
}

/* --- code of other files --- */

function included()
{
    file_put_contents($GLOBALS['argv'][2] . '/second.inc', "<?php\n\nfunction of_file()\n{\n    eval('middle();');\n}\nof_file();\n");
    file_put_contents($GLOBALS['argv'][2] . '/first.inc', "<?php\nreturn require_once __DIR__ . '/second.inc';\n");
    include $GLOBALS['argv'][2] . '/first.inc';
}

function autoload()
{
    spl_autoload_register(function ($class) {
        leaf();
    });
    new Nobody_Knows_It();
}

function in_shutdown()
{
    register_shutdown_function('middle');
    exit(0);
}

function anonymous()
{
    $object = new class() {
        public function run()
        {
            leaf();
        }
    };
    $object->run();
}

function forked()
{
    if (pcntl_fork() == 0) {
        middle();
    }
    pcntl_wait($status);
}

function fiber()
{
    $fiber = new Fiber(function () {
        Fiber::suspend();
        middle();
    });
    $fiber->start();
    $fiber->resume();
}

/* Fibers that begin, are left and gone on with, and end all the time; see php_test.py */

function fiber_brief()
{
    for ($x = $i = 0; $i < 20; $i++) {
        $x += $i;
    }
}

function fiber_nested()
{
    (new Fiber('fiber_brief'))->start();
}

function fiber_deep($n)
{
    if ($n) {
        fiber_deep($n - 1);
    }
    while (true) {
        Fiber::suspend();
    }
}

function fiber_resume($n, $fiber)
{
    if ($n) {
        fiber_resume($n - 1, $fiber);
        return;
    }
    for ($i = 0; $i < 30; $i++) {
        $fiber->resume();
    }
}

function fibers()
{
    $deep = new Fiber('fiber_deep');
    $deep->start(15);
    tell('fibers');
    while (true) {
        (new Fiber('fiber_brief'))->start();
        (new Fiber('fiber_nested'))->start();
        (new Fiber('str_repeat'))->start('x', 4000);
        fiber_resume(15, $deep);
    }
}

/* --- code in no file that is not PHP's: PCRE's JIT --- */

function patterns()
{
    tell(null, [__LINE__ + 2, __LINE__ + 7]);
    $text = str_repeat('123-abc 4567-defg some text here 89-x aaaa bbbb ', 100);
    while (true) {
        preg_match_all('/\b(\d+)-(\w+)\b/', $text);
        preg_match('/(a+)+b|(\w+\s)*x$/', substr($text, 0, 200));
        preg_replace_callback('/[a-d]{4}/', function ($m) {
            return strlen($m[0]);
        }, $text);
    }
}

/* --- churn: functions made and dropped all the time; see php_test.py --- */

function churn()
{
    tell('churn');
    for ($i = 0;; $i++) {
        $name = $i % 1000;
        /* 7.3 tells classes without names apart by where in memory their text was: it makes an older one there. */
        $made = eval(str_repeat(' ', $i) . "return new class() { function caller_$name(\$f) { return \$f(); } };");
        if (!method_exists($made, "caller_$name")) {
            continue;
        }
        $leaf = eval(str_repeat("\n", $name % 7) . "return function () { \$x = 0; for (\$i = 0; \$i < 300; \$i++) \$x += \$i * $name; return \$x; };");
        $made->{"caller_$name"}($leaf);
        if ($i > 2000) {
            pcntl_exec(PHP_BINARY, $_SERVER['argv']);
        }
    }
}

/* --- closures that are made, called and dropped all the time; see php_test.py --- */

/* Works; the first time in each chain it keeps that. */
function brief_leaf($chains, $n)
{
    if ($chains) {
        $chains[] = chain_of(debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS));
    }
    for ($x = $i = 0; $i < 100; $i++) {
        $x += $i * $n;
    }
    return $x;
}

class Brief
{
    public $n = 0;

    public function make($chains)
    {
        return function () use ($chains) {
            return brief_leaf($chains, $this->n);
        };
    }

    public static function of_class($chains)
    {
        array_map(static function ($n) use ($chains) {
            return brief_leaf($chains, $n);
        }, [1, 2]);
    }

    public function NamedHere($chains)
    {
        return brief_leaf($chains, 1);
    }
}

function brief_turn($brief, $n, $chains = null)
{
    (function () use ($n, $chains) {
        return brief_leaf($chains, $n);
    })();
    $brief->make($chains)();
    Brief::of_class($chains);
    (function () use ($chains) {
        return brief_leaf($chains, $this->n);
    })->call($brief);
}

/* The chains stand where other cases have lines. */
function brief()
{
    $chains = new ArrayObject();
    $brief = new Brief();
    brief_turn($brief, 0, $chains);
    $named = Closure::fromCallable([$brief, 'NamedHere']);
    $named($chains);
    tell('brief', $chains->getArrayCopy());
    for ($n = 0;; $n++) {
        brief_turn($brief, $n);
        $named(null);
    }
}

/* --- files that have run as soon as they are included, from a method; see php_test.py --- */

class BriefFiles
{
    public $n = 0;

    public function run($file, $chains)
    {
        return include $file;
    }

    public static function of_class($file, $chains)
    {
        return require $file;
    }
}

function brief_files()
{
    $chains = new ArrayObject();
    $brief = new BriefFiles();
    $files = [];
    for ($i = 0; $i < 4; $i++) {
        $files[] = $file = $GLOBALS['argv'][2] . "/brief_$i.inc";
        file_put_contents($file, "<?php\n" . str_repeat("\n", $i) . "return brief_leaf(\$chains, $i);\n");
        $brief->run($file, $chains);
        BriefFiles::of_class($file, $chains);
    }
    tell('brief_files', $chains->getArrayCopy());
    for ($i = 0;; $i++) {
        $brief->run($files[$i & 3], null);
        BriefFiles::of_class($files[$i & 3], null);
    }
}

/* Functions whose loops take another way time and again: the JIT makes code all the time, where traces begin and where they are
   left; see php_test.py. Begins anew before it has made all that it may. */
function exits()
{
    $file = $GLOBALS['argv'][2] . '/exits.inc';
    $text = "<?php\n";
    for ($i = 0; $i < 1000; $i++) {
        $text .= "function exit_$i(\$n) { \$s = 0; for (\$k = 0; \$k < 40; \$k++) { \$x = \$k * \$n % 7; if (\$x == 1) \$s += \$k; "
            . "elseif (\$x == 2) \$s = (int)\$s * 3 % 1001; elseif (\$x == 3) \$s = (int)\$s ^ \$k; elseif (\$x == 4) \$s = 0.5 + (int)\$s; "
            . "elseif (\$x == 5) \$s = (int)\$s + $i; else \$s = (int)\$s - \$x; } return \$s; }\n";
    }
    file_put_contents($file, $text);
    include $file;
    tell('exits');
    for ($i = 0; $i < 1000; $i++) {
        for ($k = 0; $k < 30; $k++) {
            ("exit_" . $i)($k);
        }
    }
    $argv = explode("\0", file_get_contents('/proc/self/cmdline'));
    pcntl_exec(PHP_BINARY, array_slice($argv, 1, -1));
}

/* What opcache's JIT makes code of, called from C and calling that. */
function primes($end)
{
    $is = array_fill(0, $end + 1, true);
    for ($i = 2; $i * $i <= $end; $i++) {
        if ($is[$i]) {
            for ($j = $i * $i; $j <= $end; $j += $i) {
                $is[$j] = false;
            }
        }
    }
    return count(array_filter($is)) + count(array_map(function ($x) { return md5($x); }, range(1, 500)));
}

function jit()
{
    tell(null, [__LINE__ + 2, __LINE__ + 3]);
    while (true) {
        primes(20000);
    }
}

$argv = $argv ?? explode('+', $_SERVER['QUERY_STRING']);
$argv[1]();
