#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
What packaging/ has: the Debian package, installed into a root of its own, systemd's unit, the DaemonSet: `package_test.py SONDE BUILD_FOLDER [TEST...]`, TAP.

By the system's python, of which the reader of YAML is a package.
"""
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import guard
import running
import tap
from command import run
from running import BUILD, SONDE, agent, run_tests, workload
from tap import Skip, check

SOURCE = Path(__file__).resolve().parent.parent.parent
PACKAGING = SOURCE / "packaging"


def capabilities():
    """Of the unit, in lower case and without "CAP_"."""
    line = re.search(r"^CapabilityBoundingSet=(.*)$", (PACKAGING / "sonde-agent.service").read_text(), re.MULTILINE)[1]
    return {name.removeprefix("CAP_").lower() for name in line.split()}


def symbol_cache():
    """Root's, as the agent has it by default."""
    return re.search(r'"(/var/cache/[^"]+)"', (SOURCE / "src/symbol/symbol_cache.c").read_text())[1]


def dpkg(*args):
    return run("dpkg", f"--root={os.getcwd()}/root", "--force-script-chrootless", "--force-depends", "--force-unsafe-io", *args)


def files(folder):
    return {str(path.relative_to(folder)) for path in Path(folder).rglob("*")
            if not path.is_dir() and not str(path.relative_to(folder)).startswith("var/lib/dpkg")}


def test_the_package_is_installed_runs_and_goes():
    if not all(map(shutil.which, ("dpkg-deb", "dpkg-shlibdeps", "apt-get"))):
        raise Skip("no dpkg-dev, or no apt")
    one, two = (run(SOURCE / "scripts/make-deb", BUILD, folder).stdout.strip() for folder in ("one", "two"))
    check(Path(one).read_bytes() == Path(two).read_bytes(), "a package is made twice, and differs")
    # All that it depends on can be had: it is here, since it was built here.
    run("apt-get", "-s", "-o", "APT::Sandbox::User=root", "--no-install-recommends", "install", one)
    for folder in ("updates", "info", "triggers"):
        os.makedirs(f"root/var/lib/dpkg/{folder}")
    Path("root/var/lib/dpkg/status").touch()
    dpkg("-i", one)
    there = files("root")
    check({"usr/bin/sonde", "usr/share/man/man1/sonde.1.gz", "lib/systemd/system/sonde-agent.service", "etc/sonde/agent.conf",
           "usr/share/doc/sonde/copyright", "usr/share/doc/sonde/agent.md"} <= there, there)
    check(stat.S_IMODE(os.stat("root/etc/sonde/agent.conf").st_mode) == 0o640 and os.stat("root/etc/sonde/agent.conf").st_uid == 0,
          "others read the configuration")
    check(all(os.stat(f"root/{path}").st_uid == 0 and not os.stat(f"root/{path}").st_mode & 0o022 for path in there), there)
    # As it comes it is read, and says what is missing.
    done = run("root/usr/bin/sonde", "agent", "--config", "root/etc/sonde/agent.conf", status=2)
    check("say where reports go" in done.stderr, done)
    # Each line that is commented out is an option.
    config = Path("root/etc/sonde/agent.conf").read_text()
    for line in re.findall(r"^#(\S+ = .*)$", config, re.MULTILINE):
        Path("line").write_text(line + "\n")
        check(line in run("root/usr/bin/sonde", "agent", "--config", "line", "--print-config").stdout, line)
    check("TH SONDE" in run("zcat", "root/usr/share/man/man1/sonde.1.gz").stdout.upper(), "no manual")
    # What is stripped works: by the capabilities that the unit leaves it.
    Path("conf").write_text(config + "output-dir = out\nreporter-interval = 0.2\n")
    running.SONDE = os.path.abspath("limited")
    Path("limited").write_text("#!/bin/sh\nexec setpriv --no-new-privs --inh-caps=-all --bounding-set=-all,%s %s/root/usr/bin/sonde \"$@\"\n" %
                               (",".join("+" + name for name in sorted(capabilities())), os.getcwd()))
    os.chmod("limited", 0o755)
    with workload(sys.executable, "-c", "while True: pass"), agent("--config", "conf", "--metrics-listen", "127.0.0.1:0", "-v") as a:
        port = a.wait_for(r"metrics are at http://127\.0\.0\.1:(\d+)/")[1]
        a.wait_for("the agent samples")
        while not re.search(r'sonde_runtime_samples_total\{runtime="python"\} [1-9]', run("curl", "-s", f"http://127.0.0.1:{port}/metrics").stdout):
            a.wait_for(r"report \d+: ")
        held = re.search(r"^CapBnd:\s*(\w+)$", Path(f"/proc/{a.process.pid}/status").read_text(), re.MULTILINE)[1]
        # It has given up that one, and may have others.
        setpcap = 1 << 8
        check(not int(held, 16) & setpcap and bin(int(held, 16)).count("1") < len(capabilities()), held)
        a.end()
    dpkg("-r", "sonde")
    check(files("root") == {"etc/sonde/agent.conf"}, files("root"))
    # Reports, and tables of symbols.
    for folder in "root/var/lib/sonde/out", f"root{symbol_cache()}":
        os.makedirs(folder)
        Path(folder, "left").touch()
    dpkg("-P", "sonde")
    check(not files("root") and not {"lib/sonde", "cache/sonde"} & {str(path.relative_to("root/var")) for path in Path("root/var").rglob("*")}, files("root"))


def test_systemd_takes_the_unit():
    if not shutil.which("systemd-analyze"):
        return (), "there is no systemd-analyze"
    unit = (PACKAGING / "sonde-agent.service").read_text().replace("/usr/bin/sonde", SONDE)
    Path("sonde-agent.service").write_text(unit)
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", "./sonde-agent.service"], capture_output=True, text=True, check=False)
    check("sonde-agent.service" not in done.stderr, done)


def test_the_daemonset_says_what_the_agent_knows():
    documents = {document["kind"]: document for document in yaml.safe_load_all((PACKAGING / "kubernetes/daemonset.yaml").read_text())}
    spec = documents["DaemonSet"]["spec"]
    check(spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items(), "it selects others")
    pod = spec["template"]["spec"]
    container = pod["containers"][0]
    check(pod["hostPID"] is True, pod)
    check({name.lower() for name in container["securityContext"]["capabilities"]["add"]} == capabilities(), "the unit has other capabilities")
    volumes, mounts = {volume["name"]: volume for volume in pod["volumes"]}, {mount["name"]: mount for mount in container["volumeMounts"]}
    check(volumes.keys() == mounts.keys(), (volumes, mounts))
    # Its root is read-only: only there symbols are kept, over restarts too. An emptyDir would be anybody's to write into.
    check(container["securityContext"]["readOnlyRootFilesystem"] is True and Path(mounts["cache"]["mountPath"]) in Path(symbol_cache()).parents, mounts)
    check(volumes["cache"]["hostPath"] == {"path": mounts["cache"]["mountPath"], "type": "DirectoryOrCreate"}, volumes)
    config = documents["ConfigMap"]
    check(volumes["config"]["configMap"]["name"] == config["metadata"]["name"], volumes)
    check({document["metadata"].get("namespace") for document in documents.values()} == {None, documents["Namespace"]["metadata"]["name"]}, "namespaces")
    for name, text in config["data"].items():
        Path(name).write_text(text)
    args = [arg.replace(mounts["config"]["mountPath"], os.getcwd()) for arg in container["args"]]
    printed = run(SONDE, "agent", *args, "--print-config").stdout
    port = container["ports"][0]
    check(f"metrics-listen = 0.0.0.0:{port['containerPort']}\n" in printed, printed)
    check(spec["template"]["metadata"]["annotations"]["prometheus.io/port"] == str(port["containerPort"]), spec["template"]["metadata"])
    for probe in "livenessProbe", "readinessProbe":
        check(container[probe]["httpGet"]["port"] == port["name"] and container[probe]["httpGet"]["path"] in ("/healthz", "/readyz"), probe)


def test_the_docs_have_the_units_capabilities():
    table = (SOURCE / "docs/agent.md").read_text().partition("\n| CAP_ | for |\n|---|---|\n")[2].partition("\n\n")[0]
    named = {name.lower() for row in table.splitlines() for name in row.split("|")[1].strip().split(", ")}
    check(named == capabilities(), named)


def test_the_container_file_names_what_there_is():
    """No container engine is here: what it calls and copies is looked for."""
    text = (PACKAGING / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#")]
    check({word for word, _ in lines} == {"FROM", "COPY", "WORKDIR", "RUN", "ENTRYPOINT"}, lines)
    stages = {rest.split(" AS ")[1] for word, rest in lines if word == "FROM" and " AS " in rest}
    copied = [rest.split() for word, rest in lines if word == "COPY"]
    check(all(stage.removeprefix("--from=") in stages for stage, *_ in copied if stage.startswith("--from=")), copied)
    first, second = (rest for word, rest in lines if word == "RUN")
    script, kind = re.match(r"(\S+) (\S+) && ", first).groups()
    check(os.access(SOURCE / script, os.X_OK) and re.search(rf"\b{kind}\b", (SOURCE / script).read_text()), first)
    check(re.search(r"^deb:", (SOURCE / "Makefile").read_text(), re.MULTILINE) and " make MESON_FLAGS=" in first and first.split(" && ")[1].endswith(" deb"), first)
    check("MESON_FLAGS" in (SOURCE / "Makefile").read_text(), "nobody reads MESON_FLAGS")
    kept = re.search(r"mv build/sonde_\*\.deb (\S+)$", first)[1]
    check(copied[-1] == ["--from=build", kept, f"/tmp{kept}"] and f"/tmp{kept} " in second, (copied, second))
    check(["ENTRYPOINT", '["/usr/bin/sonde", "agent"]'] in lines, lines)


if __name__ == "__main__":
    try:
        import yaml
    except ImportError:
        sys.exit(tap.skip_all("the system's python has no yaml (package python3-yaml)"))
    sys.exit(guard.run(lambda: run_tests(globals(), "sonde-package-")))
