#pragma once

#include <string>
#include <string_view>

namespace echopipe::cli {

/// The text as a terminal may be given it: what is no UTF-8 and what could end a line or move the
/// cursor (C0 and C1 control characters, DEL) becomes "\n", "\t", "\r" or "\x1b".
std::string Printable(std::string_view text);

}  // namespace echopipe::cli
