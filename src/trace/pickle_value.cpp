#include "trace/pickle_value.hpp"

#include <charconv>

namespace vramtrack::trace {

std::string_view tag_words(Tag tag) {
  switch (tag) {
    case Tag::none:
      return "None";
    case Tag::boolean:
      return "a boolean";
    case Tag::integer:
      return "an integer";
    case Tag::real:
      return "a float";
    case Tag::string:
      return "a string";
    case Tag::pair:
      return "a pair of integers";
    case Tag::frame:
      return "a frame";
    case Tag::stack:
      return "a list of frames";
    case Tag::repeated:
      return "something that is in the file elsewhere, too";
    case Tag::list:
      return "a list";
    case Tag::dict:
      return "a dict";
    case Tag::open:
    case Tag::record:
    case Tag::item:
      return "a list or dict of another kind";
    case Tag::opaque:
      break;
  }
  return "a value of another kind";
}

std::string_view opcode_name(std::uint8_t opcode) {
  switch (opcode) {
    case '(':
      return "MARK";
    case '.':
      return "STOP";
    case '0':
      return "POP";
    case '1':
      return "POP_MARK";
    case '2':
      return "DUP";
    case 'F':
      return "FLOAT";
    case 'I':
      return "INT";
    case 'J':
      return "BININT";
    case 'K':
      return "BININT1";
    case 'L':
      return "LONG";
    case 'M':
      return "BININT2";
    case 'N':
      return "NONE";
    case 'P':
      return "PERSID";
    case 'Q':
      return "BINPERSID";
    case 'R':
      return "REDUCE";
    case 'S':
      return "STRING";
    case 'T':
      return "BINSTRING";
    case 'U':
      return "SHORT_BINSTRING";
    case 'V':
      return "UNICODE";
    case 'X':
      return "BINUNICODE";
    case 'a':
      return "APPEND";
    case 'b':
      return "BUILD";
    case 'c':
      return "GLOBAL";
    case 'd':
      return "DICT";
    case '}':
      return "EMPTY_DICT";
    case 'e':
      return "APPENDS";
    case 'g':
      return "GET";
    case 'h':
      return "BINGET";
    case 'i':
      return "INST";
    case 'j':
      return "LONG_BINGET";
    case 'l':
      return "LIST";
    case ']':
      return "EMPTY_LIST";
    case 'o':
      return "OBJ";
    case 'p':
      return "PUT";
    case 'q':
      return "BINPUT";
    case 'r':
      return "LONG_BINPUT";
    case 's':
      return "SETITEM";
    case 't':
      return "TUPLE";
    case ')':
      return "EMPTY_TUPLE";
    case 'u':
      return "SETITEMS";
    case 'G':
      return "BINFLOAT";
    case 'B':
      return "BINBYTES";
    case 'C':
      return "SHORT_BINBYTES";
    case 0x80:
      return "PROTO";
    case 0x81:
      return "NEWOBJ";
    case 0x82:
      return "EXT1";
    case 0x83:
      return "EXT2";
    case 0x84:
      return "EXT4";
    case 0x85:
      return "TUPLE1";
    case 0x86:
      return "TUPLE2";
    case 0x87:
      return "TUPLE3";
    case 0x88:
      return "NEWTRUE";
    case 0x89:
      return "NEWFALSE";
    case 0x8a:
      return "LONG1";
    case 0x8b:
      return "LONG4";
    case 0x8c:
      return "SHORT_BINUNICODE";
    case 0x8d:
      return "BINUNICODE8";
    case 0x8e:
      return "BINBYTES8";
    case 0x8f:
      return "EMPTY_SET";
    case 0x90:
      return "ADDITEMS";
    case 0x91:
      return "FROZENSET";
    case 0x92:
      return "NEWOBJ_EX";
    case 0x93:
      return "STACK_GLOBAL";
    case 0x94:
      return "MEMOIZE";
    case 0x95:
      return "FRAME";
    case 0x96:
      return "BYTEARRAY8";
    case 0x97:
      return "NEXT_BUFFER";
    case 0x98:
      return "READONLY_BUFFER";
    default:
      return {};
  }
}

namespace {

void append_utf8(std::string& out, unsigned code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xe0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

/// Reads `digits` hexadecimal digits at text[at]; false if there are none.
bool hexadecimal(std::string_view text, std::size_t at, std::size_t digits, unsigned& out) {
  if (at + digits > text.size()) return false;
  const char* const end = text.data() + at + digits;
  return std::from_chars(text.data() + at, end, out, 16).ptr == end;
}

}  // namespace

std::string unescaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char kind = text[++i];
    unsigned code = 0;
    if ((kind == 'x' && hexadecimal(text, i + 1, 2, code)) || (kind == 'u' && hexadecimal(text, i + 1, 4, code))) {
      append_utf8(out, code);
      i += kind == 'x' ? 2 : 4;
    } else if (kind == 'n' || kind == 't') {
      out += kind == 'n' ? '\n' : '\t';
    } else if (kind == '\\' || kind == '\'' || kind == '"') {
      out += kind;
    } else {
      out += '\\';
      out += kind;
    }
  }
  return out;
}

}  // namespace vramtrack::trace
