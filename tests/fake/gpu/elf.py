"""What a shared library needs, defines and leaves undefined: its dynamic section, read from the file.

Only what 64-bit little-endian libraries of Linux have. The names are those of elf(5).
"""
import collections
import mmap
import re
import struct

DT_NEEDED = 1
SHT_DYNAMIC, SHT_DYNSYM, SHT_GNU_VERNEED, SHT_GNU_VERSYM = 6, 11, 0x6FFFFFFE, 0x6FFFFFFF
STB_WEAK = 2
STT_OBJECT = 1

Section = collections.namedtuple("Section", "name type flags addr offset size link info align entsize")
#: `library` and `node`: what the version of an undefined symbol names, else None
Symbol = collections.namedtuple("Symbol", "type library node")


class Library:
    """`needed`: sonames; `defined`: names; `undefined`: name -> Symbol, without those that may stay undefined."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        (table,) = struct.unpack_from("<Q", self.data, 0x28)
        size, count = struct.unpack_from("<HH", self.data, 0x3A)
        sections = [Section(*struct.unpack_from("<IIQQQQIIQQ", self.data, table + i * size)) for i in range(count)]
        by_type = {}
        for section in sections:
            by_type.setdefault(section.type, section)
        symbols = by_type[SHT_DYNSYM]
        self._strings = sections[symbols.link].offset
        self.needed = list(self._needed(by_type[SHT_DYNAMIC]))
        self.defined, self.undefined = set(), {}
        self._read_symbols(symbols, by_type.get(SHT_GNU_VERSYM), self._version_nodes(by_type.get(SHT_GNU_VERNEED)))

    def _text(self, offset):
        begin = self._strings + offset
        return self.data[begin : self.data.find(b"\0", begin)].decode()

    def _needed(self, dynamic):
        for at in range(dynamic.offset, dynamic.offset + dynamic.size, 16):
            tag, value = struct.unpack_from("<QQ", self.data, at)
            if tag == DT_NEEDED:
                yield self._text(value)

    def _version_nodes(self, section):
        """Version index -> (library, node)."""
        nodes = {}
        at = section.offset if section else None
        while at is not None:
            _, count, file, first, step = struct.unpack_from("<HHIII", self.data, at)
            entry = at + first
            for _ in range(count):
                _, _, index, name, next_entry = struct.unpack_from("<IHHII", self.data, entry)
                nodes[index] = (self._text(file), self._text(name))
                entry += next_entry
            at = at + step if step else None
        return nodes

    def _read_symbols(self, symbols, versions, nodes):
        for i in range(symbols.size // 24):
            name, info, _, section = struct.unpack_from("<IBBH", self.data, symbols.offset + 24 * i)
            if not name:
                continue
            text = self._text(name)
            if section:
                self.defined.add(text)
            elif info >> 4 != STB_WEAK:
                index = struct.unpack_from("<H", self.data, versions.offset + 2 * i)[0] & 0x7FFF if versions else 0
                library, node = nodes.get(index, (None, None))
                self.undefined[text] = Symbol(info & 15, library, node)

    def strings(self, pattern):
        """Whole strings of the file that match, for names that are looked up by dlsym."""
        return {found.decode() for found in re.findall(rb"\0(" + pattern + rb")(?=\0)", self.data)}
