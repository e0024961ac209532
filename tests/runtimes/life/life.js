// SPDX-License-Identifier: Apache-2.0
// The life of a process (life_test.py): `begun` works in it, then `forked` in a child, then a shell executes it anew, and
// `executed` works there: Node.js has no exec().
const { fork, spawnSync } = require("child_process");

function spin() {
  const end = process.cpuUsage().user / 1e6 + Number(process.env.SECONDS);
  let x = 0;
  while (process.cpuUsage().user / 1e6 < end) for (let i = 0; i < 1000; i++) x += i;
  return x;
}

function nodeBegun() {
  return spin() + 1;
}

function nodeForked() {
  return spin() + 2;
}

function nodeExecuted() {
  return spin() + 3;
}

function nodeLife(phase) {
  if (phase === "executed") return nodeExecuted() + 1;
  if (phase === "forked") return nodeForked() + 1;
  const x = nodeBegun();
  fork(__filename, ["forked"]).on("exit", () =>
    spawnSync("/bin/sh", ["-c", 'exec "$0" "$1" executed', process.execPath, __filename], { stdio: "inherit" }));
  return x + 1;
}

nodeLife(process.argv[2] || "begun");
