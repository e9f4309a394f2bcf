#include <algorithm>
#include <cstdio>

#include <echopipe/tests/support/tar_builder.h>

namespace echopipe::testing {
namespace {

void Put(std::string* block, size_t at, std::string_view text) {
  std::copy(text.begin(), text.end(), block->begin() + static_cast<std::ptrdiff_t>(at));
}

std::string Octal(uint64_t value, int digits) {
  char text[32];
  std::snprintf(text, sizeof(text), "%0*llo", digits, static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

TarBuilder& TarBuilder::AddHeader(const Header& header) {
  std::string block(512, '\0');
  Put(&block, 0, std::string_view(header.name).substr(0, 100));
  Put(&block, 100, "0000644");
  Put(&block, 108, "0000000");
  Put(&block, 116, "0000000");
  Put(&block, 124, std::string_view(header.size).substr(0, 12));
  Put(&block, 136, "00000000000");
  Put(&block, 148, "        ");
  block[156] = header.type;
  if (header.magic == Magic::kUstar) Put(&block, 257, std::string_view("ustar\00000", 8));
  if (header.magic == Magic::kGnu) Put(&block, 257, std::string_view("ustar  \0", 8));
  Put(&block, 345, std::string_view(header.prefix).substr(0, 155));
  int64_t sum = 0;
  for (const char c : block) {
    sum += header.signed_checksum ? static_cast<signed char>(c) : static_cast<unsigned char>(c);
  }
  Put(&block, 148, Octal(static_cast<uint64_t>(sum), 6) + std::string("\0 ", 2));
  bytes_ += block;
  return *this;
}

TarBuilder& TarBuilder::AddData(std::string_view data) {
  bytes_ += data;
  bytes_.append((512 - data.size() % 512) % 512, '\0');
  return *this;
}

TarBuilder& TarBuilder::AddFile(const std::string& name, std::string_view data, Magic magic) {
  return AddHeader({.name = name, .size = OctalSize(data.size()), .magic = magic}).AddData(data);
}

TarBuilder& TarBuilder::AddExtension(char type, std::string_view data) {
  return AddHeader({.name = "././@extension", .size = OctalSize(data.size()), .type = type})
      .AddData(data);
}

TarBuilder& TarBuilder::AddEnd() {
  bytes_.append(1024, '\0');
  return *this;
}

TarBuilder& TarBuilder::AddBytes(std::string_view bytes) {
  bytes_ += bytes;
  return *this;
}

std::string OctalSize(uint64_t size) { return Octal(size, 11); }

std::string PaxRecord(std::string_view key, std::string_view value) {
  const size_t rest = key.size() + value.size() + 3;  // blank, equals sign, line end
  size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) ++length;
  return std::to_string(length) + " " + std::string(key) + "=" + std::string(value) + "\n";
}

}  // namespace echopipe::testing
