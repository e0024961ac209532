# SPDX-License-Identifier: Apache-2.0
"""Stacks without end: what one program does to the profile's memory."""


def attack_none(arena):
    """Nobody attacks: the victims are judged as they should be."""
    arena.record("32M", "--tracers", "all")
    arena.start_victim(seconds=0.5)
    arena.run_python_victim(seconds=0.5)
    return arena.judge()


def attack_endless(arena):
    """The profile is full in less than a second. The victim's stacks, which it has by then, go on counting."""
    arena.program("endless_stacks")  # compiled before the victim begins, which does not wait for that
    arena.record("32M", "--tracers", "all", frequency=4999)
    # Until then it is alone: what it has not shown until then may be new when the profile is full.
    arena.wait_until_burnt(arena.start_victim(seconds=2).process, 0.5)
    arena.attack("endless_stacks", 2)
    arena.wait_for_victims()
    recording = arena.end()
    # Not all: an instruction of the leaf that is first met when the profile is full is a new stack. 92 to 100 % were seen.
    problems, note = arena.judge(delivered=0.6, recording=recording)
    if not recording.lost().get("out_of_memory"):
        problems.append("the profile was never full: lost %s" % recording.lost())
    if recording.lost().get("unknown_stack", 0) > 50:
        problems.append("known stacks were forgotten: lost %s" % recording.lost())
    if "were new when --memory-limit was reached" not in recording.errors:
        problems.append("what was dropped is not said: %s" % recording.errors)
    return problems, "%s; lost %s" % (note, recording.lost())


def attack_same_hash(arena):
    """Stacks of one process would have the hash of another's, if that were no secret. If they have, they are not counted as that."""
    arena.program("same_hash")
    arena.record("64M", frequency=999)
    arena.attack("same_hash", until_line=True)
    arena.run_victim(seconds=0.5)
    recording = arena.end()
    problems, note = arena.judge(recording=recording)
    wrong = samples = 0
    for s in recording.stacks or []:
        if s.comm == "same-child":
            samples += s.count
            wrong += s.count if "slot_0" in s.user else 0
    if wrong:
        problems.append("%d of %d samples of the child are shown where its parent was" % (wrong, samples))
    if recording.lost().get("unknown_stack"):
        problems.append("the kernel took stacks of the child for its parent's")
    if samples < 600:  # of 1,200
        problems.append("%d samples of the child: lost %s" % (samples, recording.lost()))
    return problems, "%d samples of the child, lost %s; %s" % (samples, recording.lost(), note)
