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
