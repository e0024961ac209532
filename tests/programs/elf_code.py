# SPDX-License-Identifier: Apache-2.0
"""The code of an ELF file (x86-64) as the judge of stacks needs it: where functions begin and end (FDEs, else symbols),
which call ends at an address, where a function jumps to that is not itself, and what a slot of the GOT leads to.

Nothing of sonde is used here: what sonde says is judged by it. Unwind tables serve for the extent of functions only.
"""
import array
import bisect
import mmap
import re
import struct
import sys

import capstone
from capstone import x86_const as x86

SHT_SYMTAB, SHT_RELA, SHT_NOBITS, SHT_DYNSYM, SHT_RELR = 2, 4, 8, 11, 19
PT_LOAD, PT_GNU_RELRO = 1, 0x6474e552
STT_NOTYPE, STT_FUNC, STT_IFUNC = 0, 2, 10
R_64, R_GLOB_DAT, R_JUMP_SLOT, R_RELATIVE, R_IRELATIVE = 1, 6, 7, 8, 37
# mov $15,%rax; syscall: the kernel returns here from signal handlers.
TRAMPOLINE = b"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"
# One function's code beyond this is not looked through: nothing is proved or refuted with it.
FUNCTION_MAX = 1 << 20
# Instructions that are followed from an entry without extent.
EXPLORE_MAX = 60000
SWITCH_MAX = 2000  # entries of a jump table
FLOW_ENDS = (x86.X86_INS_JMP, x86.X86_INS_RET, x86.X86_INS_UD2, x86.X86_INS_HLT, x86.X86_INS_INT3)


class Call:
    """The call that ends at an address: `target` (direct), `slot` (through a word of the file), or neither."""

    def __init__(self, target=None, slot=None):
        self.target = target
        self.slot = slot


class Body:
    """Where the code of a function goes besides itself."""

    def __init__(self):
        self.jumps = set()  # addresses outside of it
        self.slots = set()  # words of the file that it jumps through
        self.unknown = False  # it jumps through registers or other memory
        self.addresses = None  # of its instructions, if it has no extent: address -> size

    def covers(self, address):
        """Whether one of its instructions has this byte. (A caller's address is the call's last byte.)"""
        return any(self.addresses.get(address - d, 0) > d for d in range(15))


class ElfCode:
    def __init__(self, path):
        self.path = path
        with open(path, "rb") as f:
            self.data = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
        if self.data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", self.data, 18)[0] != 62:
            raise ValueError("%s: no x86-64 ELF file" % path)
        self.is_movable = struct.unpack_from("<H", self.data, 16)[0] == 3
        self.entry, phoff, shoff = struct.unpack_from("<QQQ", self.data, 24)
        phnum, shnum = struct.unpack_from("<H", self.data, 56)[0], struct.unpack_from("<H", self.data, 60)[0]
        self.relro = []
        self.segments = []  # (vaddr, end, offset, executable)
        for i in range(phnum):
            kind, flags, offset, vaddr, _, size, _, _ = struct.unpack_from("<IIQQQQQQ", self.data, phoff + 56 * i)
            if kind == PT_LOAD:
                self.segments.append((vaddr, vaddr + size, offset, bool(flags & 1)))
            elif kind == PT_GNU_RELRO:
                self.relro.append((vaddr, vaddr + size))
        self.sections = self._read_sections(shoff, shnum)
        self.plts = [(s[2], s[4], 8 if s[6] == 8 else 16) for s in self.sections
                     if s[1] != SHT_NOBITS and (s[0].startswith(".plt") or s[0] == ".iplt")]
        self.md = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
        self.md.detail = True
        self.md.skipdata = True
        self.fde_starts, self.fde_ends, self.fde_undefined = [], [], {}
        self._read_fdes()
        self.symbols, self.symbol_extents, self.exports = {}, [], {}
        self._read_symbols()
        self.slots = None
        self.bodies, self.call_maps = {}, {}
        self.starts, self._taken = None, None

    # --- bytes ---

    def offset(self, vaddr):
        for start, end, offset, _ in self.segments:
            if start <= vaddr < end:
                return offset + vaddr - start
        return None

    def bytes_at(self, vaddr, size):
        for start, end, offset, _ in self.segments:
            if start <= vaddr < end:
                at = offset + vaddr - start
                return self.data[at:at + min(size, end - vaddr)]
        return b""

    def is_code(self, vaddr):
        return any(s <= vaddr < e and x for s, e, _, x in self.segments)

    def _read_sections(self, shoff, shnum):
        """A list of (name, type, vaddr, offset, size, link, entry size)."""
        if not shoff or not shnum:
            return []
        raw = [struct.unpack_from("<IIQQQQIIQQ", self.data, shoff + 64 * i) for i in range(shnum)]
        names = struct.unpack_from("<H", self.data, 62)[0]
        table = raw[names][4] if names < shnum else 0
        return [(self._text(table + s[0]), s[1], s[3], s[4], s[5], s[6], s[9]) for s in raw]

    def _text(self, offset):
        return self.data[offset:self.data.find(b"\0", offset)].decode("utf-8", "replace")

    def section(self, name):
        return next((s for s in self.sections if s[0] == name), None)

    # --- functions ---

    def _read_fdes(self):
        """Of .eh_frame, by its headers; and of .debug_frame, if it is there uncompressed."""
        fdes = {}
        for name in (".debug_frame", ".eh_frame"):
            s = self.section(name)
            if s and s[1] != SHT_NOBITS:
                self._read_frame_section(s, name == ".eh_frame", fdes)
        starts = sorted(x for x in fdes if x and fdes[x][0])
        self.fde_starts = array.array("Q", starts)
        self.fde_ends = array.array("Q", [x + fdes[x][0] for x in starts])
        self.fde_undefined = {x for x in starts if fdes[x][1]}

    def _read_frame_section(self, section, is_eh, fdes):
        data, (_, _, vaddr, offset, size, _, _) = self.data, section
        if data[offset:offset + 4] == b"ZLIB":
            return
        cies = {}
        at, end = offset, offset + size
        while at + 8 <= end:
            length, ident = struct.unpack_from("<II", data, at)
            if length >= 0xfffffff0 or (not length and not is_eh):
                break
            if not length:
                at += 4
                continue
            if is_eh and ident:
                cie = at + 4 - ident
                if cie not in cies:
                    cies[cie] = self._cie(cie)
                encoding, undefined = cies[cie]
                where = vaddr + at + 8 - offset
                r = self._range(at + 8, where, encoding)
                if r:
                    instructions = data[at + 8:at + 4 + length]
                    fdes[r[0]] = (r[1], undefined or b"\x07\x10" in instructions[8:])
            elif not is_eh and ident != 0xffffffff:
                start, count = struct.unpack_from("<QQ", data, at + 8)
                fdes[start] = (count, False)
            at += 4 + length

    def _cie(self, at):
        """The encoding of addresses, and whether its instructions say that there is no caller."""
        data = self.data
        length = struct.unpack_from("<I", data, at)[0]
        end = at + 4 + length
        p = at + 9
        augmentation = data[p:data.find(b"\0", p)]
        p += len(augmentation) + 1

        def uleb(p):
            value = shift = 0
            while True:
                b = data[p]
                p += 1
                value |= (b & 127) << shift
                shift += 7
                if b < 128:
                    return value, p

        _, p = uleb(p)
        _, p = uleb(p)
        _, p = uleb(p)
        encoding = 0
        if augmentation.startswith(b"z"):
            n, p = uleb(p)
            body = p + n
            for c in augmentation[1:]:
                if c == ord("R"):
                    encoding = data[p]
                    p += 1
                elif c == ord("P"):
                    kind = data[p] & 15
                    p += 1 + {0: 8, 2: 2, 3: 4, 4: 8, 10: 2, 11: 4, 12: 8}.get(kind, 4)
                elif c == ord("L"):
                    p += 1
            p = body
        return encoding, b"\x07\x10" in data[p:end]

    def _range(self, at, where, encoding):
        formats = {0: "<QQ", 3: "<II", 4: "<QQ", 11: "<iI", 12: "<qQ"}
        f = formats.get(encoding & 15)
        if not f or encoding & 0x70 not in (0, 0x10):
            return None
        start, count = struct.unpack_from(f, self.data, at)
        if encoding & 0x70 == 0x10:
            start += where
        return start, count

    def _read_symbols(self):
        extents = []
        for _, kind, _, offset, size, link, _ in self.sections:
            if kind not in (SHT_SYMTAB, SHT_DYNSYM):
                continue
            strings = self.sections[link][3]
            for at in range(offset + 24, offset + size - 23, 24):
                name, info, _, shndx, value, length = struct.unpack_from("<IBBHQQ", self.data, at)
                if not shndx or not value or info & 15 not in (STT_NOTYPE, STT_FUNC, STT_IFUNC):
                    continue
                if kind == SHT_DYNSYM and info >> 4:
                    self.exports.setdefault(self._text(strings + name).split("@")[0], []).append((value, info & 15))
                self.symbols.setdefault(value, (strings + name, info & 15))
                if length and info & 15 != STT_NOTYPE:
                    extents.append((value, value + length))
        self.symbol_extents = sorted(set(extents))

    def name(self, vaddr):
        """Whose symbol it is, if one begins there."""
        s = self.symbols.get(vaddr)
        return self._text(s[0]) if s else ""

    def extent(self, vaddr):
        """(start, end) of the function at an address, or None."""
        i = bisect.bisect_right(self.fde_starts, vaddr) - 1
        if i >= 0 and vaddr < self.fde_ends[i]:
            return self.fde_starts[i], self.fde_ends[i]
        i = bisect.bisect_right(self.symbol_extents, (vaddr, 1 << 63)) - 1
        if i >= 0 and vaddr < self.symbol_extents[i][1]:
            return self.symbol_extents[i]
        return None

    def is_outermost(self, vaddr):
        """Whether nothing calls the function at this address: the CFI says so, or it is the entry point."""
        i = bisect.bisect_right(self.fde_starts, vaddr) - 1
        if i >= 0 and vaddr < self.fde_ends[i]:
            start = self.fde_starts[i]
            return start in self.fde_undefined or start <= self.entry < self.fde_ends[i]
        return 0 <= vaddr - self.entry < 128

    def is_first_by_hand(self, vaddr):
        """Go's goexit: its second byte is the return address of a goroutine's first function."""
        code = self.bytes_at(vaddr, 7)
        return len(code) == 7 and code[:2] == b"\x90\xe8" and code[6] == 0x90

    def begins_stack(self, vaddr):
        """Go's mcall and the like, which zero rbp on a stack that they went over to, and clone's child, which ends the thread."""
        before, behind = self.bytes_at(vaddr - 40, 40), self.bytes_at(vaddr + 1, 32)
        if b"\x48\xc7\xc5\0\0\0\0" in before or b"\xb8\x3c\0\0\0\x0f\x05" in behind:
            return True
        # The entry point jumps to rt0_go, by way of another jump.
        start = self.entry
        for _ in range(2):
            jump = self.bytes_at(start, 16).find(b"\xe9")
            if jump < 0:
                return False
            start += jump + 5 + struct.unpack("<i", self.bytes_at(start + jump + 1, 4))[0]
        return 0 <= vaddr - start < 512

    def never_returns(self, vaddr):
        """
        The first function of a stack of its own, as Ruby's fiber_entry(): its address is taken, it goes straight on
        to its end, which is a call. Nobody is above that could ever be gone back to.
        """
        extent = self.extent(vaddr)
        if not extent or not self.reached_otherwise(extent[0]):
            return False
        last = None
        for last in self._instructions(*extent):
            if last.group(capstone.CS_GRP_JUMP) or last.group(capstone.CS_GRP_RET):
                return False
        return last is not None and last.id == x86.X86_INS_CALL and last.address + last.size == extent[1]

    def rewrites_itself(self, vaddr):
        """Where libgcc puts the registers of an exception's handler over its own saved ones, return address included."""
        extent = self.extent(vaddr)
        return bool(extent) and self.name(extent[0]).startswith("_Unwind_")

    def goes_to_handler(self, vaddr):
        """The jump by which libgcc goes on in an exception's handler, which has no call before it."""
        return self.rewrites_itself(vaddr) and self.bytes_at(vaddr - 1, 3) == b"\x59\xff\xe1"  # pop %rcx; jmp *%rcx

    def deoptimized_goes_on(self, behind):
        """The first byte of a builtin that V8 lets a frame return to of which it has taken the optimized code away."""
        return re.fullmatch(r"Builtins_(BaselineOr)?InterpreterEnterAt(Next)?Bytecode", self.name(behind)) is not None

    def may_be_called_anywhere(self, vaddr):
        """Go's asyncPreempt, which begins by saving the flags: its signal handler makes an interrupted goroutine call it."""
        begins = b"\xcc\x55\x48\x89\xe5\x9c"  # the gap between functions; push, mov, pushfq
        before = self.bytes_at(vaddr - 1024, 1024 + len(begins) - 1)  # it may be interrupted before the first of these
        begin = before.rfind(begins)
        return begin >= 0 and b"\xcc" * 2 not in before[begin + 1:]

    def is_trampoline(self, vaddr):
        # A handler's return address is its first byte; an interrupted pc may be between the two instructions, or, in the system call,
        # behind them.
        return any(self.bytes_at(vaddr - d, 9) == TRAMPOLINE for d in (0, 7, 9)) or \
            self.bytes_at(vaddr + 1, 9) == TRAMPOLINE

    # --- PLTs and the GOT ---

    def stub(self, vaddr):
        """The section of stubs and the stub in it, or None."""
        for start, size, step in self.plts:
            if start <= vaddr < start + size:
                return start, start + (vaddr - start) // step * step
        return None

    def _read_slots(self):
        self.slots = {}
        for _, kind, _, offset, size, link, _ in self.sections:
            if kind == SHT_RELA:
                symtab = self.sections[link] if link else None
                for at in range(offset, offset + size - 23, 24):
                    where, info, addend = struct.unpack_from("<QQq", self.data, at)
                    reloc = info & 0xffffffff
                    if reloc in (R_GLOB_DAT, R_JUMP_SLOT, R_64) and symtab:
                        sym = symtab[3] + 24 * (info >> 32)
                        name, _, _, shndx, value, _ = struct.unpack_from("<IBBHQQ", self.data, sym)
                        text = self._text(self.sections[symtab[5]][3] + name).split("@")[0]
                        self.slots[where] = ("name", text, value if shndx else 0)
                    elif reloc == R_RELATIVE:
                        self.slots[where] = ("address", addend & (1 << 64) - 1)
                    elif reloc == R_IRELATIVE:
                        self.slots[where] = ("ifunc", addend & (1 << 64) - 1)
            elif kind == SHT_RELR:
                self._read_relr(offset, size)

    def _read_relr(self, offset, size):
        at = 0

        def add(where):
            raw = self.bytes_at(where, 8)
            if len(raw) == 8:
                self.slots.setdefault(where, ("address", struct.unpack("<Q", raw)[0]))

        for (word,) in struct.iter_unpack("<Q", self.data[offset:offset + size // 8 * 8]):
            if not word & 1:
                add(word)
                at = word + 8
            else:
                for bit in range(63):
                    if word >> bit + 1 & 1:
                        add(at + 8 * bit)
                at += 63 * 8

    def slot(self, vaddr):
        """
        ("name", text, value), ("address", vaddr), ("ifunc", resolver's vaddr), or None: it is not known, or may
        change while the program runs.
        """
        if self.slots is None:
            self._read_slots()
        return self.slots.get(vaddr) if self._is_constant(vaddr) else None

    def _is_constant(self, vaddr):
        if any(s <= vaddr < e for s, e in self.relro):
            return True
        return any(s[2] <= vaddr < s[2] + s[4] for s in self.sections if s[0].startswith(".got"))

    # --- instructions ---

    def _instructions(self, start, end):
        return self.md.disasm(self.bytes_at(start, end - start), start)

    @staticmethod
    def _memory_slot(insn):
        """The word that a jump or call through memory reads, or None."""
        op = insn.operands[0]
        if op.type != x86.X86_OP_MEM:
            return None
        if op.mem.base == x86.X86_REG_RIP and not op.mem.index:
            return insn.address + insn.size + op.mem.disp
        if not op.mem.base and not op.mem.index and not op.mem.segment:
            return op.mem.disp & (1 << 64) - 1
        return None

    def _calls(self, extent):
        """Calls of a function by the address behind them."""
        calls = self.call_maps.get(extent)
        if calls is None:
            calls = {}
            for insn in self._instructions(*extent):
                if insn.id in (x86.X86_INS_CALL, x86.X86_INS_LCALL):
                    op = insn.operands[0]
                    if op.type == x86.X86_OP_IMM:
                        calls[insn.address + insn.size] = Call(target=op.imm & (1 << 64) - 1)
                    else:
                        calls[insn.address + insn.size] = Call(slot=self._memory_slot(insn))
            self.call_maps[extent] = calls
        return calls

    def calls_before(self, behind):
        """The calls that may end at an address: one, if the function's extent is known."""
        extent = self.extent(behind - 1)
        if extent and extent[1] - extent[0] <= FUNCTION_MAX:
            call = self._calls(extent).get(behind)
            if call:
                return [call]
        found = []
        code = self.bytes_at(behind - 8, 8)
        if len(code) < 8:
            return found
        if code[3] == 0xe8:
            found.append(Call(target=behind + struct.unpack_from("<i", code, 4)[0] & (1 << 64) - 1))
        for size in (2, 3, 4, 6, 7, 8):
            insn = next(self.md.disasm(code[8 - size:], behind - size), None)
            if insn and insn.size == size and insn.id == x86.X86_INS_CALL and \
                    insn.operands[0].type != x86.X86_OP_IMM:
                found.append(Call(slot=self._memory_slot(insn)))
        return found

    def body(self, entry):
        """The Body of the function with this entry."""
        extent = self.extent(entry)
        key = extent or entry
        body = self.bodies.get(key)
        if body is None:
            if extent and extent[1] - extent[0] > FUNCTION_MAX:
                body = Body()
                body.unknown = True
            else:
                body = self._sweep(*extent) if extent else self._explore(entry)
            self.bodies[key] = body
        return body

    def body_of_stub(self, start):
        """Of a PLT's stub: the slot that it jumps through, if that can be seen, and PLT0."""
        body = self.bodies.get(("stub", start))
        if body is None:
            body = Body()
            for insn in self._instructions(start, start + 16):
                if insn.id == x86.X86_INS_JMP:
                    op = insn.operands[0]
                    if op.type == x86.X86_OP_MEM:
                        body.slots.add(self._memory_slot(insn))
                    break
            body.unknown = not body.slots
            self.bodies[("stub", start)] = body
        return body

    def _sweep(self, start, end):
        body = Body()
        recent = []
        for insn in self._instructions(start, end):
            recent.append(insn)
            if insn.id and insn.group(capstone.CS_GRP_JUMP):
                op = insn.operands[0]
                if op.type == x86.X86_OP_IMM:
                    if not start <= op.imm < end:
                        body.jumps.add(op.imm & (1 << 64) - 1)
                else:
                    self._indirect(insn, recent, body, start, end)
            if len(recent) > 24:
                del recent[:12]
        # What runs off the end runs into what is behind it.
        if recent and not self._ends(recent[-1]) and self.is_code(end):
            body.jumps.add(end)
        return body

    @staticmethod
    def _ends(insn):
        return insn.id in (x86.X86_INS_JMP, x86.X86_INS_RET, x86.X86_INS_RETF, x86.X86_INS_UD2, x86.X86_INS_HLT,
                           x86.X86_INS_INT3, x86.X86_INS_CALL, x86.X86_INS_NOP, x86.X86_INS_IRETQ) or not insn.id

    def _indirect(self, insn, recent, body, start, end):
        slot = self._memory_slot(insn)
        if slot is not None:
            body.slots.add(slot)
        elif insn.operands[0].type == x86.X86_OP_MEM:
            # A switch's table of addresses leads into the function, one of functions elsewhere.
            table = self._table(insn, recent)
            first = self._word(table) if table else None
            body.unknown |= first is None or not start <= first < end
        elif not self._is_switch(insn, recent):
            body.unknown = True

    def _word(self, vaddr):
        slot = self.slot(vaddr)
        if slot:
            return slot[1] if slot[0] == "address" else None
        raw = self.bytes_at(vaddr, 8)
        return int.from_bytes(raw, "little") if len(raw) == 8 else None

    @staticmethod
    def _is_switch(insn, recent):
        """A jump through a table: its target was loaded by an index of 4 or 8 bytes a step."""
        op = insn.operands[0]
        if op.type == x86.X86_OP_MEM:
            return op.mem.scale == 8 and op.mem.index != 0
        added = False
        for i in reversed(recent[:-1]):
            if i.id == x86.X86_INS_ADD and i.operands[0].type == x86.X86_OP_REG and i.operands[0].reg == op.reg:
                added = True
            if added and i.id in (x86.X86_INS_MOVSXD, x86.X86_INS_MOV) and len(i.operands) == 2 \
                    and i.operands[1].type == x86.X86_OP_MEM and i.operands[1].mem.scale == 4:
                return True
            if i.id == x86.X86_INS_CALL:
                break
        return False

    def _explore(self, entry):
        """Follows all ways from an entry, where nothing tells the function's extent."""
        body = Body()
        body.addresses = {}
        todo = [entry]
        while todo and len(body.addresses) < EXPLORE_MAX:
            self._explore_line(todo.pop(), body, todo)
        if todo:
            body.unknown = True
        return body

    def _explore_line(self, at, body, todo):
        """Adds the instructions from an address on until one that does not go on behind itself."""
        recent = []
        while at not in body.addresses and self.is_code(at):
            before = at
            for insn in self.md.disasm(self.bytes_at(at, 256), at):
                if insn.address in body.addresses or not insn.id:
                    return
                body.addresses[insn.address] = insn.size
                recent.append(insn)
                at = insn.address + insn.size
                if insn.group(capstone.CS_GRP_JUMP):
                    self._explore_jump(insn, recent, body, todo)
                if insn.id in FLOW_ENDS:
                    return
                if at - before > 240:
                    break  # what follows may have been cut off
            if at == before:
                return

    def _explore_jump(self, insn, recent, body, todo):
        op = insn.operands[0]
        if op.type != x86.X86_OP_IMM:
            self._explore_indirect(insn, recent, body, todo)
        elif self.stub(op.imm):
            body.jumps.add(op.imm)
        else:
            todo.append(op.imm)

    def _explore_indirect(self, insn, recent, body, todo):
        slot = self._memory_slot(insn)
        if slot is not None:
            body.slots.add(slot)
            return
        table = self._table(insn, recent)
        if not table:
            body.unknown = True
            return
        if insn.operands[0].type == x86.X86_OP_MEM:
            body.unknown = True  # a table of functions looks the same
        targets = self._entries(table, "<i", table)
        body.unknown |= not targets
        todo += targets

    def _table(self, insn, recent):
        """Where a switch's table lies, or None."""
        if not self._is_switch(insn, recent):
            return None
        if insn.operands[0].type == x86.X86_OP_MEM and not insn.operands[0].mem.base:
            return insn.operands[0].mem.disp
        for i in reversed(recent):
            if i.id == x86.X86_INS_LEA and i.operands[1].mem.base == x86.X86_REG_RIP:
                return i.address + i.size + i.operands[1].mem.disp
        return None

    def _entries(self, table, form, base):
        targets = []
        size = struct.calcsize(form)
        raw = self.bytes_at(table, SWITCH_MAX * size)
        for (value,) in struct.iter_unpack(form, raw[:len(raw) // size * size]):
            target = base + value
            if not self.is_code(target) or abs(target - table) > 1 << 31 or \
                    targets and abs(target - targets[0]) > 1 << 17:
                break
            targets.append(target)
        return targets

    # --- whose address is taken ---

    def reached_otherwise(self, start):
        """
        Whether something but a direct call may lead to the function that begins here: its address is taken (a
        relocation, a symbol for others, lea, a constant), or another function may jump to it or into it. Too many
        rather than too few: bytes that look like such an instruction count.
        """
        if self._taken is None:
            self.starts = set(self.fde_starts).union(x for x, _ in self.symbol_extents)
            self._taken = self._scan()
        return start in self._taken or start not in self.starts or self._short_jump_to(start)

    def _scan(self):
        if self.slots is None:
            self._read_slots()
        # The loader calls the resolver of an ifunc through a pointer, too.
        taken = {x[1] for x in self.slots.values() if x[0] in ("address", "ifunc")}
        taken.update(x[2] for x in self.slots.values() if x[0] == "name")
        taken.update(v for values in self.exports.values() for v, _ in values)
        taken.add(self.entry)
        starts = self.starts
        for start, end, offset, is_code in self.segments:
            raw = self.data[offset:offset + end - start]
            if is_code:
                self._scan_code(start, raw, sorted(starts), taken)
            if not self.is_movable:
                # A pointer or a constant is the bare address.
                for shift in range(4):
                    words = array.array("I", raw[shift:shift + (len(raw) - shift) // 4 * 4])
                    taken.update(starts.intersection(words))
        return taken

    @staticmethod
    def _scan_code(base, raw, starts, taken):
        far = re.compile(rb"(?=(?:[\x48-\x4f]\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d]|\xe9|\x0f[\x80-\x8f])(....))", re.DOTALL)
        for m in far.finditer(raw):
            at = m.start(1)
            target = at + 4 + int.from_bytes(raw[at:at + 4], "little", signed=True)
            if 0 <= target < len(raw):
                i = bisect.bisect_right(starts, base + target) - 1
                if starts[i] > base + at or i + 1 < len(starts) and starts[i + 1] <= base + at \
                        or starts[i] == base + target:
                    taken.add(starts[i])

    def _short_jump_to(self, start):
        low = start - 130
        raw = self.bytes_at(low, 262)
        for i in range(len(raw) - 1):
            if raw[i] == 0xeb or 0x70 <= raw[i] <= 0x7f:
                if low + i + 2 + (raw[i + 1] ^ 128) - 128 == start:
                    return True
        return False


if __name__ == "__main__":
    code = ElfCode(sys.argv[1])
    print("%d FDEs, %d symbols, %d exports, entry %#x" % (
        len(code.fde_starts), len(code.symbols), len(code.exports), code.entry))
