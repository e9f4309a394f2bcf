#include <cstddef>
#include <cstdint>

#include <echopipe/cli/printable.h>

namespace echopipe::cli {
namespace {

uint8_t At(std::string_view text, size_t i) {
  return i < text.size() ? static_cast<uint8_t>(text[i]) : 0;
}

// Bytes of the printable character that the text begins with; 0 if it begins with none (the table
// of well-formed sequences in the Unicode standard, section 3.9).
size_t CharacterSize(std::string_view text) {
  const uint8_t first = At(text, 0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  if (first < 0xc2 || first > 0xf4) return 0;
  const size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  for (size_t i = 1; i < size; ++i) {
    if ((At(text, i) & 0xc0) != 0x80) return 0;
  }
  const uint8_t second = At(text, 1);
  const bool control = first == 0xc2 && second < 0xa0;
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool no_character = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return control || overlong || no_character ? 0 : size;
}

void AppendEscaped(char c, std::string* text) {
  constexpr char kHex[] = "0123456789abcdef";
  const auto byte = static_cast<uint8_t>(c);
  switch (c) {
    case '\n':
      *text += "\\n";
      break;
    case '\r':
      *text += "\\r";
      break;
    case '\t':
      *text += "\\t";
      break;
    default:
      *text += {'\\', 'x', kHex[byte / 16], kHex[byte % 16]};
  }
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string printable;
  printable.reserve(text.size());
  while (!text.empty()) {
    const size_t size = CharacterSize(text);
    if (size > 0) {
      printable += text.substr(0, size);
    } else {
      AppendEscaped(text[0], &printable);
    }
    text.remove_prefix(size > 0 ? size : 1);
  }
  return printable;
}

}  // namespace echopipe::cli
